//! What does a step cost per request?
//!
//! Targets for a steady decode step (`schedule` + `update_from_output`, block size 16, one core): 40 ns per request at
//! 256 running, 45 ns at 1,024, 80 ns at 8,192. Divide the time of a step by its requests.

#![expect(clippy::disallowed_types, reason = "a bench reads the clock")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stepline_config::EngineArgs;
use stepline_scheduler::{
    EngineCoreOutputs, ModelRunnerOutput, Nanos, NewRequest, SamplingParams, Scheduler, SchedulerOutput,
};

const BLOCK_SIZE: u32 = 16;
const MAX_MODEL_LEN: u32 = 1 << 20;

fn scheduler(num_requests: u32, num_blocks: u32) -> Scheduler {
    let args = EngineArgs {
        max_model_len: Some(MAX_MODEL_LEN),
        block_size: Some(BLOCK_SIZE),
        max_num_seqs: Some(num_requests),
        max_num_batched_tokens: Some(65_536),
        ..EngineArgs::default()
    };
    Scheduler::new(&args.resolve().expect("valid"), num_blocks).expect("valid")
}

fn prompt(request: u32, len: u32) -> Vec<u32> {
    (0..len).map(|i| request.wrapping_mul(7_919).wrapping_add(i)).collect()
}

/// A scheduler whose requests all decode, with the buffers that a caller reuses.
struct Decoding {
    scheduler: Scheduler,
    plan: SchedulerOutput,
    result: ModelRunnerOutput,
    outputs: EngineCoreOutputs,
}

impl Decoding {
    fn new(num_requests: u32) -> Self {
        // Room for 64k more tokens in all before the pool is full: the benches stay far below.
        let mut scheduler = scheduler(num_requests, num_requests * 512);
        for request in 0..num_requests {
            let sampling = SamplingParams { max_tokens: Some(MAX_MODEL_LEN - 64), ..SamplingParams::default() };
            let new = NewRequest::new(format!("r{request}"), prompt(request, 32), sampling);
            scheduler.add_request(new, Nanos(0), &mut ()).expect("added");
        }
        let mut decoding = Self {
            scheduler,
            plan: SchedulerOutput::default(),
            result: ModelRunnerOutput::default(),
            outputs: EngineCoreOutputs::default(),
        };
        while decoding.scheduler.num_waiting() > 0 {
            decoding.step();
        }
        decoding.step();
        decoding
    }

    fn step(&mut self) {
        self.scheduler.schedule_into(Nanos(0), &mut (), &mut self.plan);
        self.result.clear();
        for scheduled in &self.plan.num_scheduled_tokens {
            self.result.push(if scheduled.samples { &[42] } else { &[] });
        }
        self.scheduler
            .update_from_output_into(&self.plan, &self.result, Nanos(0), &mut (), &mut self.outputs)
            .expect("one list per request");
    }
}

fn decode_steady(c: &mut Criterion) {
    let mut group = c.benchmark_group("schedule/decode_steady");
    for num_requests in [256, 1_024, 8_192] {
        group.throughput(Throughput::Elements(u64::from(num_requests)));
        group.bench_function(BenchmarkId::from_parameter(num_requests), |b| {
            // A new scheduler now and then, so that the pool never fills.
            b.iter_custom(|num_steps| {
                let mut elapsed = std::time::Duration::ZERO;
                let mut left = num_steps;
                while left > 0 {
                    let steps = left.min(4_000);
                    let mut decoding = Decoding::new(num_requests);
                    let start = std::time::Instant::now();
                    for _ in 0..steps {
                        decoding.step();
                    }
                    elapsed += start.elapsed();
                    black_box(&decoding.outputs);
                    left -= steps;
                }
                elapsed
            });
        });
    }
    group.finish();
}

fn add_request(c: &mut Criterion) {
    let mut group = c.benchmark_group("add_request/prompt");
    for len in [128, 8_192] {
        group.throughput(Throughput::Elements(u64::from(len)));
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            let mut scheduler = scheduler(256, 1_000);
            let tokens: std::sync::Arc<[u32]> = prompt(1, len).into();
            b.iter(|| {
                let sampling = SamplingParams { max_tokens: Some(1), ..SamplingParams::default() };
                let new = NewRequest::new("r", tokens.clone(), sampling);
                scheduler.add_request(new, Nanos(0), &mut ()).expect("added");
                let abort = stepline_scheduler::ExternalFinish::Aborted;
                scheduler.finish_requests(["r"], abort, Nanos(0), &mut ());
                scheduler.schedule(Nanos(0), &mut ())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode_steady, add_request);
criterion_main!(benches);
