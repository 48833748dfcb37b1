//! What a steady decode step allocates: nothing.

#![allow(unsafe_code, reason = "a global allocator that counts")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Harness, args, prompt, request, tracer, tracing};
use stepline_config::EngineArgs;
use stepline_scheduler::trace::StepTrace;
use stepline_scheduler::{EngineCoreOutputs, ModelRunnerOutput, Nanos, SchedulerOutput};

struct Counting;

static NUM_ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        NUM_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        NUM_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The buffers that a caller keeps.
#[derive(Default)]
struct Buffers {
    plan: SchedulerOutput,
    result: ModelRunnerOutput,
    outputs: EngineCoreOutputs,
}

fn step(harness: &mut Harness, buffers: &mut Buffers, trace: &mut impl StepTrace) {
    let scheduler = &mut harness.scheduler;
    scheduler.schedule_into(Nanos(0), trace, &mut buffers.plan);
    buffers.result.clear();
    for scheduled in &buffers.plan.num_scheduled_tokens {
        buffers.result.push(if scheduled.samples { &[1] } else { &[] });
    }
    scheduler
        .update_from_output_into(&buffers.plan, &buffers.result, Nanos(0), trace, &mut buffers.outputs)
        .expect("one list per request");
}

/// Lists of tokens, hashes and blocks grow by doubling; between two growths a step allocates nothing, whatever the
/// batch, also with tracing on if the step is not sampled. (Debug builds check invariants, which allocates, so this is
/// a test of release builds.)
#[test]
#[cfg_attr(debug_assertions, ignore = "debug builds check every invariant after every step, which allocates")]
fn a_steady_decode_step_allocates_nothing() {
    for num_requests in [1, 64, 512] {
        let settings = EngineArgs {
            block_size: Some(64),
            max_model_len: Some(1_024),
            max_num_seqs: Some(num_requests),
            max_num_batched_tokens: Some(64 * num_requests),
            ..args()
        };
        let mut harness = Harness::new(settings, 2 * num_requests);
        for family in 0..num_requests {
            harness.add(request(&format!("r{family}"), prompt(family, 20), 100));
        }
        let mut buffers = Buffers::default();
        let (mut unsampled, _) = tracer(tracing(0.0, 1.0, 7));
        for _ in 0..9 {
            step(&mut harness, &mut buffers, &mut unsampled);
        }
        let before = NUM_ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..3 {
            step(&mut harness, &mut buffers, &mut ());
            step(&mut harness, &mut buffers, &mut unsampled);
        }
        assert_eq!(buffers.outputs.outputs.len(), num_requests as usize, "everybody decodes");
        assert_eq!(NUM_ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{num_requests} requests");
    }
}
