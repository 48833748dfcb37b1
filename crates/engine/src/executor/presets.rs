//! Step-time models of measured machines.

use super::step_time::StepTimeModel;

/// A machine and a model on it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ExecutorPreset {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The model.
    pub model: &'static str,
    /// The machine.
    pub gpu: &'static str,
    /// Where its figures are from.
    pub source: &'static str,
    /// Blocks of its KV cache at [`BLOCK_SIZE`](Self::BLOCK_SIZE), the null block included.
    pub num_gpu_blocks: u32,
    /// Where `num_gpu_blocks` is from.
    pub num_gpu_blocks_source: &'static str,
    /// Its times.
    pub step_time: StepTimeModel,
}

/// The presets; the first is the default. `docs/step-time.md` says how the coefficients were found.
pub const EXECUTOR_PRESETS: &[ExecutorPreset] = &[
    ExecutorPreset {
        name: "rtxpro6000-llama-3.1-8b",
        model: "Llama-3.1-8B, bf16",
        gpu: "NVIDIA RTX PRO 6000, 96 GB",
        source: "kernel times of vLLM 0.19.0, LLMServingSim commit 5daddb2",
        num_gpu_blocks: 35_000,
        num_gpu_blocks_source: "estimated from the size of the card",
        step_time: StepTimeModel {
            base_us: 11_064.4,
            prefill_token_us: 27.8078,
            decode_token_us: 18.7124,
            kv_token_us: 0.106_852,
            attention_pair_us: 0.002_471_58,
        },
    },
    ExecutorPreset {
        name: "rtx4090-llama-3.1-8b",
        model: "Llama-3.1-8B, bf16",
        gpu: "NVIDIA GeForce RTX 4090, 24 GB",
        source: "kernel times of vLLM 0.19.0, LLMServingSim commit 5daddb2",
        num_gpu_blocks: 2_588,
        num_gpu_blocks_source: "as vLLM 0.19.0 reported it",
        step_time: StepTimeModel {
            base_us: 15_976.8,
            prefill_token_us: 64.9568,
            decode_token_us: 46.8078,
            kv_token_us: 0.249_162,
            attention_pair_us: 0.004_288_9,
        },
    },
];

impl ExecutorPreset {
    /// Tokens per block that [`num_gpu_blocks`](Self::num_gpu_blocks) is stated for.
    pub const BLOCK_SIZE: u32 = 16;

    /// Blocks of `block_size` tokens in the same memory, rounded down.
    ///
    /// 0 if not even one fits, or if `block_size` is 0.
    #[must_use]
    pub fn num_gpu_blocks_of(&self, block_size: u32) -> u32 {
        let num_tokens = u64::from(self.num_gpu_blocks) * u64::from(Self::BLOCK_SIZE);
        let num_blocks = num_tokens.checked_div(u64::from(block_size)).unwrap_or(0);
        u32::try_from(num_blocks).unwrap_or(u32::MAX)
    }

    /// The preset of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        EXECUTOR_PRESETS.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::StepWork;

    #[test]
    fn presets_are_valid_and_have_names_of_their_own() {
        for (i, preset) in EXECUTOR_PRESETS.iter().enumerate() {
            assert_eq!(preset.step_time.validate(), Ok(()), "{}", preset.name);
            assert_eq!(ExecutorPreset::find(preset.name), Some(&EXECUTOR_PRESETS[i]));
        }
    }

    #[test]
    fn other_block_sizes_share_the_same_memory() {
        let preset = ExecutorPreset::find("rtx4090-llama-3.1-8b").expect("a preset");
        assert_eq!([16, 32, 48, 0].map(|size| preset.num_gpu_blocks_of(size)), [2588, 1294, 862, 0]);
        assert_eq!(preset.num_gpu_blocks_of(u32::MAX), 0);
    }

    /// The measured kernels of a step, summed as `tools/fit_step_time.py` does.
    #[test]
    fn presets_are_within_a_fifth_of_the_kernels_that_they_were_fitted_to() {
        // A prompt of 2,048 tokens; 32 requests that decode at 1,024 tokens of context.
        let cases = [("rtx4090-llama-3.1-8b", 193_005.0, 23_920.0), ("rtxpro6000-llama-3.1-8b", 82_945.0, 15_116.0)];
        for (name, prefill_us, decode_us) in cases {
            let model = ExecutorPreset::find(name).expect("a preset").step_time;
            let mut prefill = StepWork::default();
            prefill.add(0, 2048, true);
            let mut decode = StepWork::default();
            (0..32).for_each(|_| decode.add(1023, 1, true));
            for (work, measured_us) in [(prefill, prefill_us), (decode, decode_us)] {
                let ratio = model.duration(&work).as_secs_f64() * 1e6 / measured_us;
                assert!((0.8..1.2).contains(&ratio), "{name}: {ratio} for {work:?}");
            }
        }
    }
}
