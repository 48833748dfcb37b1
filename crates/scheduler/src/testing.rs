//! A judge of outputs, for property tests and simulations.

use std::collections::BTreeMap;

use crate::ids::{BlockId, RequestHandle, RequestSlot};
use crate::output::SchedulerOutput;

/// The limits that a judge holds outputs against.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    /// Tokens per step at most.
    pub max_tokens_per_step: u32,
    /// Requests per step at most.
    pub max_num_seqs: u32,
    /// Tokens per block.
    pub block_size: u32,
    /// Blocks of the pool, the null block included.
    pub num_gpu_blocks: u32,
}

/// A request as an executor would know it from outputs alone.
#[derive(Clone, Debug)]
struct Known {
    generation: u32,
    num_computed_tokens: u32,
    blocks: Vec<BlockId>,
}

/// Sees what an executor sees, in order, and objects to what an executor could not do.
///
/// It shares no code with the scheduler: it knows requests and block tables from outputs alone.
#[derive(Debug)]
pub struct OutputChecker {
    limits: OutputLimits,
    known: BTreeMap<RequestSlot, Known>,
    last_step: u64,
}

impl OutputChecker {
    /// A judge that has seen nothing.
    #[must_use]
    pub const fn new(limits: OutputLimits) -> Self {
        Self { limits, known: BTreeMap::new(), last_step: 0 }
    }

    /// Takes notice of a step.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn see(&mut self, output: &SchedulerOutput) -> Result<(), String> {
        let step = output.step;
        ensure(step == self.last_step + 1, || format!("step {step} follows step {}", self.last_step))?;
        self.last_step = step;
        // A request that a reset preempted may be resumed in the same step: its old blocks go first.
        for preempted in &output.preempted_req_ids {
            if let Some(known) = self.known.get_mut(&preempted.handle.slot) {
                known.blocks.clear();
            }
        }
        for finished in &output.finished_req_ids {
            self.known.remove(&finished.handle.slot);
        }
        self.see_tables(output)?;
        self.check_budget(output)?;
        self.check_tokens(output)?;
        self.check_blocks()
    }

    fn see_tables(&mut self, output: &SchedulerOutput) -> Result<(), String> {
        for new in &output.scheduled_new_reqs {
            let handle = new.request.handle;
            let known = Known {
                generation: handle.generation,
                num_computed_tokens: new.num_computed_tokens,
                blocks: output.block_ids(new).to_vec(),
            };
            let before = self.known.insert(handle.slot, known);
            ensure(before.is_none(), || format!("{} is new but its slot is in use", new.request.id))?;
        }
        for cached in &output.scheduled_cached_reqs {
            let known = self.known_mut(cached.request)?;
            if cached.resumed {
                known.blocks.clear();
                known.num_computed_tokens = cached.num_computed_tokens;
            }
            ensure(known.num_computed_tokens == cached.num_computed_tokens, || {
                format!(
                    "{:?} has {} computed tokens, told {}",
                    cached.request, known.num_computed_tokens, cached.num_computed_tokens
                )
            })?;
            known.blocks.extend_from_slice(output.new_block_ids(cached));
        }
        Ok(())
    }

    fn check_budget(&self, output: &SchedulerOutput) -> Result<(), String> {
        let total: u32 = output.num_scheduled_tokens.iter().map(|scheduled| scheduled.num_tokens).sum();
        ensure(total == output.total_num_scheduled_tokens, || format!("{total} tokens, total says otherwise"))?;
        ensure(total <= self.limits.max_tokens_per_step, || format!("{total} tokens in a step"))?;
        let num_seqs = output.num_scheduled_tokens.len();
        ensure(num_seqs <= self.limits.max_num_seqs as usize, || format!("{num_seqs} requests in a step"))?;
        let described = output.scheduled_new_reqs.len() + output.scheduled_cached_reqs.len();
        ensure(num_seqs == described, || format!("{num_seqs} requests get tokens, {described} are described"))
    }

    /// Every computed token has a slot.
    fn check_tokens(&mut self, output: &SchedulerOutput) -> Result<(), String> {
        let block_size = self.limits.block_size as usize;
        for scheduled in &output.num_scheduled_tokens {
            let known = self.known_mut(scheduled.request)?;
            known.num_computed_tokens += scheduled.num_tokens;
            let (num_tokens, num_slots) = (known.num_computed_tokens as usize, known.blocks.len() * block_size);
            ensure(scheduled.num_tokens > 0, || format!("{:?} is scheduled without tokens", scheduled.request))?;
            ensure(num_tokens <= num_slots, || format!("{num_tokens} tokens in {num_slots} slots"))?;
        }
        Ok(())
    }

    /// Blocks exist, and two requests share a block only at the same position, as a prefix.
    fn check_blocks(&self) -> Result<(), String> {
        let mut position = BTreeMap::new();
        for known in self.known.values() {
            for (idx, id) in known.blocks.iter().enumerate() {
                ensure(id.0 > 0 && id.0 < self.limits.num_gpu_blocks, || format!("block {} is not of the pool", id.0))?;
                let other = *position.entry(*id).or_insert(idx);
                ensure(other == idx, || format!("block {} is at positions {other} and {idx}", id.0))?;
            }
        }
        Ok(())
    }

    fn known_mut(&mut self, handle: RequestHandle) -> Result<&mut Known, String> {
        let known = self.known.get_mut(&handle.slot).filter(|known| known.generation == handle.generation);
        known.ok_or_else(|| format!("{handle:?} was never introduced"))
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
