//! The numbered examples of the spec, and the cases that have surprised users, as a reader thinks of them.

mod common;

use std::collections::VecDeque;

use common::{Harness, args, prompt, request};
use expect_test::{Expect, expect};
use stepline_config::{EngineArgs, SchedulingPolicy};
use stepline_scheduler::{
    ExternalFinish, FinishReason, LoraRequest, ModelRunnerOutput, Nanos, NewRequest, SamplingParams, StopReason,
};

#[track_caller]
fn check(lines: &str, expected: &Expect) {
    expected.assert_eq(lines);
}

fn shared_prompt(n: u32) -> Vec<u32> {
    prompt(9, n)
}

/// scheduler 2, example 1.
#[test]
fn the_long_prefill_cap_is_off_for_a_single_request_and_may_adapt() {
    let capped = EngineArgs { long_prefill_token_threshold: Some(8), ..args() };
    let mut alone = Harness::new(capped.clone(), 40);
    alone.add(request("a", prompt(1, 40), 1));
    let mut two = Harness::new(capped.clone(), 40);
    two.add(request("a", prompt(1, 40), 1));
    two.add(request("b", prompt(2, 3), 1));
    let mut adaptive = Harness::new(EngineArgs { long_prefill_token_threshold_adaptive: Some(true), ..capped }, 40);
    for (id, n) in [("a", 40), ("b", 3), ("c", 40)] {
        adaptive.add(request(id, prompt(u32::from(id.as_bytes()[0]), n), 1));
    }
    let tokens = |harness: &mut Harness| {
        harness.step().num_scheduled_tokens.iter().map(|scheduled| scheduled.num_tokens).collect::<Vec<_>>()
    };
    assert_eq!(tokens(&mut alone), [40]);
    assert_eq!(tokens(&mut two), [8, 3]);
    assert_eq!(tokens(&mut adaptive), [21, 3, 21]);
}

/// scheduler 2, example 2.
#[test]
fn fcfs_preempts_the_last_admitted_request() {
    let mut harness = Harness::new(args(), 6);
    harness.add(request("A", prompt(1, 8), 20));
    harness.add(request("B", prompt(2, 8), 20));
    check(
        &harness.step_lines(7),
        &expect![[r#"
            1 | A:8 B:8 | free 5 6
            2 | A:1 B:1 | free 
            3 | A:1 B:1 | free 
            4 | A:1 B:1 | free 
            5 | A:1 B:1 | free 
            6 | A:1 | preempt B | free 4 3
            7 | A:1 | free 4 3
        "#]],
    );
    assert_eq!(harness.table("A"), [1, 2, 5, 6]);
}

/// scheduler 2, example 3: a request that was already scheduled in the step gives its tokens back.
#[test]
fn a_scheduled_victim_leaves_the_step() {
    let priority = EngineArgs { scheduling_policy: Some(SchedulingPolicy::Priority), ..args() };
    let mut harness = Harness::new(priority, 7);
    harness.add(NewRequest { priority: 5, ..request("lo", prompt(1, 7), 30) });
    let first = harness.step_line();
    harness.add(NewRequest { priority: 0, ..request("hi", prompt(2, 7), 30) });
    harness.add(NewRequest { priority: 3, ..request("mid", prompt(3, 7), 30) });
    check(
        &(first + "\n" + &harness.step_lines(3)),
        &expect![[r#"
            1 | lo:7 | free 3 4 5 6 7
            2 | lo:1 hi:7 mid:7 | free 7
            3 | lo:1 hi:1 mid:1 | free 
            4 | hi:1 mid:1 | preempt lo | free 1
        "#]],
    );
}

/// scheduler 2, example 4: the pass stops although `h1`, which is not visited, could run.
#[test]
fn a_request_that_preempts_itself_stops_the_pass() {
    let priority = EngineArgs { scheduling_policy: Some(SchedulingPolicy::Priority), ..args() };
    let mut harness = Harness::new(priority, 4);
    harness.add(NewRequest { priority: 9, ..request("lo", prompt(1, 7), 30) });
    harness.step();
    harness.add(NewRequest { priority: 1, ..request("h1", prompt(2, 6), 30) });
    check(
        &harness.step_lines(3),
        &expect![[r#"
            2 | lo:1 h1:6 | free 
            3 |  | preempt lo | free 2 1
            4 | h1:1 | free 2 1
        "#]],
    );
}

/// scheduler 4: without the full-sequence check a request larger than the pool preempts itself, then waits for ever.
#[test]
fn a_request_larger_than_the_pool_waits_for_ever() {
    let unchecked = EngineArgs { scheduler_reserve_full_isl: Some(false), ..args() };
    let mut harness = Harness::new(unchecked, 2);
    harness.add(request("big", prompt(1, 8), 8));
    check(
        &harness.step_lines(4),
        &expect![[r#"
            1 | big:8 | free 
            2 |  | preempt big | free 2 1
            3 |  | free 2 1
            4 |  | free 2 1
        "#]],
    );
    let mut checked = Harness::new(args(), 2);
    checked.add(request("big", prompt(1, 9), 8));
    checked.add(request("small", prompt(2, 4), 1));
    assert_eq!(checked.step().num_scheduled_tokens, [], "the head of the queue holds up everybody");
    assert!(!checked.scheduler.fits_cache(9, 8));
    assert!(checked.scheduler.fits_cache(8, 1), "the last token needs no slot");
    assert!(!checked.scheduler.fits_cache(8, 2));
}

/// scheduler 7, example 1.
#[test]
fn priorities_decide_the_order_of_admission() {
    let mut harness = Harness::new(EngineArgs { scheduling_policy: Some(SchedulingPolicy::Priority), ..args() }, 40);
    for (id, priority, arrival) in [("z", 1, 3), ("y", 1, 2), ("x", 0, 9), ("w", 1, 2)] {
        let arrival_time = Some(Nanos(arrival));
        harness.add(NewRequest { priority, arrival_time, ..request(id, prompt(u32::from(id.as_bytes()[0]), 4), 4) });
    }
    check(
        &harness.step_line(),
        &expect![
            "1 | x:4 w:4 y:4 z:4 | free 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40"
        ],
    );
}

/// scheduler 7, example 3.
#[test]
fn requests_of_one_adapter_too_many_are_passed_over_and_keep_their_place() {
    let one_adapter = EngineArgs { enable_lora: Some(true), max_loras: Some(1), ..args() };
    let mut harness = Harness::new(one_adapter, 40);
    for (id, adapter) in [("a", 1), ("b", 2), ("c", 1), ("d", 0), ("e", 3)] {
        let lora = LoraRequest { name: format!("l{adapter}").into(), id: adapter, path: "/".into() };
        let lora = (adapter > 0).then_some(lora);
        harness.add(NewRequest { lora, ..request(id, prompt(u32::from(id.as_bytes()[0]), 4), 1) });
    }
    assert!(harness.step_line().starts_with("1 | a:4 c:4 d:4 |"));
    assert_eq!(harness.scheduler.waiting().map(ToString::to_string).collect::<Vec<_>>(), ["b", "e"]);
    assert_eq!(harness.scheduler.deferred().count(), 2);
    assert_eq!(harness.outputs[0].scheduler_stats.num_waiting_reqs, 0);
    assert_eq!(harness.outputs[0].scheduler_stats.num_skipped_waiting_reqs, 2);
    assert!(harness.step_line().starts_with("2 | b:4 |"));
    assert!(harness.step_line().starts_with("3 | e:4 |"));
}

/// scheduler 8, examples 1 and 2.
#[test]
fn aborted_requests_give_no_output_and_are_reported_by_one_more_step() {
    let mut harness = Harness::new(args(), 10);
    harness.add(request("A", shared_prompt(10), 4));
    harness.add(request("B", shared_prompt(10), 4));
    let plan = harness.scheduler.schedule(Nanos(0), &mut ());
    assert_eq!((harness.table("A"), harness.table("B")), (vec![1, 2, 3], vec![1, 2, 4]));
    for (id, free) in [("A", "3 5 6 7 8 9 10"), ("B", "4 3 5 6 7 8 9 10 2 1")] {
        let ended = harness.scheduler.finish_requests([id], ExternalFinish::Aborted, Nanos(0), &mut ());
        assert_eq!(ended.len(), 1);
        assert_eq!(harness.free(), free);
    }
    harness.finish_step(&plan, &mut ());
    assert!(harness.outputs[0].outputs.is_empty());
    assert!(harness.scheduler.has_requests());
    check(&harness.step_line(), &expect!["2 |  | finish A B | free 4 3 5 6 7 8 9 10 2 1"]);
    assert!(!harness.scheduler.has_requests());
}

/// scheduler 8: ids that are unknown or have ended are passed over, also twice in one call.
#[test]
fn an_abort_of_an_unknown_request_does_nothing() {
    let mut harness = Harness::new(args(), 10);
    harness.add(request("A", prompt(1, 4), 4));
    let ids = ["nobody", "A", "A"];
    let ended = harness.scheduler.finish_requests(ids, ExternalFinish::Aborted, Nanos(0), &mut ());
    assert_eq!(ended.len(), 1);
}

/// scheduler 2.4: a step that preempts admits nobody, though there is room for `small`.
#[test]
fn a_step_that_preempts_admits_nobody() {
    let priority = EngineArgs { scheduling_policy: Some(SchedulingPolicy::Priority), ..args() };
    let mut harness = Harness::new(priority, 7);
    harness.add(NewRequest { priority: 0, ..request("A", prompt(1, 8), 20) });
    harness.add(NewRequest { priority: 9, ..request("B", prompt(2, 12), 20) });
    harness.step_lines(5);
    harness.add(NewRequest { priority: 1, ..request("small", prompt(3, 1), 1) });
    check(
        &harness.step_lines(2),
        &expect![[r#"
            6 | A:1 | preempt B | free 5 4 3
            7 | A:1 small:1 | free 4 3
        "#]],
    );
}

/// scheduler 2.4.2: `max_num_active_seqs`, not `max_num_seqs`, limits who runs.
#[test]
fn no_more_requests_run_than_may_be_active() {
    let mut harness = Harness::new(EngineArgs { max_num_active_seqs: Some(2), ..args() }, 20);
    for id in ["a", "b", "c"] {
        harness.add(request(id, prompt(u32::from(id.as_bytes()[0]), 4), 2));
    }
    assert_eq!(harness.step().num_scheduled_tokens.len(), 2);
    assert_eq!(harness.scheduler.num_waiting(), 1);
}

/// scheduler 2.4.5 and 5, "Stale output after preemption": with two steps in flight, a preempted request waits for the
/// output of its last run, which is delivered, before it resumes.
#[test]
fn a_preempted_request_resumes_only_after_its_stale_output() {
    let settings = EngineArgs {
        scheduling_policy: Some(SchedulingPolicy::Priority),
        scheduler_reserve_full_isl: Some(false),
        max_num_scheduled_tokens: Some(4),
        ..args()
    };
    let mut harness = Harness::new(settings, 3);
    harness.add(NewRequest { priority: 9, ..request("lo", prompt(1, 4), 30) });
    let mut in_flight = VecDeque::new();
    let mut plan = |harness: &mut Harness| {
        let plan = harness.scheduler.schedule(Nanos(0), &mut ());
        let line = harness.line(&plan) + "\n";
        in_flight.push_back(plan);
        line
    };
    let mut lines = plan(&mut harness);
    harness.add(NewRequest { priority: 0, ..request("hi", prompt(2, 12), 1) });
    for _ in 0..3 {
        lines += &plan(&mut harness);
    }
    // Now there is room for `lo`, but its output of step 1 is still to come.
    harness.scheduler.finish_requests(["hi"], ExternalFinish::Aborted, Nanos(0), &mut ());
    lines += &plan(&mut harness);
    assert_eq!(harness.scheduler.deferred().count(), 1);
    for plan in in_flight {
        harness.finish_step(&plan, &mut ());
    }
    assert_eq!(harness.outputs[0].outputs.len(), 1, "stale output is delivered");
    lines += &harness.step_line();
    check(
        &lines,
        &expect![[r#"
        1 | lo:4 | free 2 3
        2 | hi:4 | free 3
        3 | hi:4 | free 
        4 | hi:4 | preempt lo | free 
        5 |  | finish hi | free 1 3 2
        6 | lo:4 | free 3 2"#]],
    );
}

/// requests-and-outputs 5: statistics of the first admission stay through a preemption before the first output.
#[test]
fn prefill_statistics_are_those_of_the_first_admission() {
    let mut harness = Harness::new(args(), 10);
    harness.add(request("A", shared_prompt(9), 1));
    harness.step();
    harness.add(request("B", shared_prompt(9), 4));
    let plan = harness.scheduler.schedule(Nanos(0), &mut ());
    assert_eq!(plan.scheduled_new_reqs[0].num_computed_tokens, 8);
    assert!(harness.scheduler.reset_prefix_cache(true, Nanos(0), &mut ()));
    harness.finish_step(&plan, &mut ());
    assert_eq!(harness.step().total_num_scheduled_tokens, 9, "nothing is cached any more");
    let first = &harness.outputs.last().expect("processed").outputs[0];
    assert_eq!(first.prefill_stats().expect("first record").num_cached_tokens, 8);
}

/// scheduler 10, example 3.
#[test]
fn a_forced_reset_preempts_from_the_back_and_the_first_resumes_first() {
    let mut harness = Harness::new(args(), 19);
    harness.add(request("a", prompt(1, 10), 9));
    harness.add(request("b", prompt(2, 10), 9));
    harness.step();
    assert!(!harness.scheduler.reset_prefix_cache(false, Nanos(0), &mut ()));
    assert!(harness.scheduler.reset_prefix_cache(true, Nanos(0), &mut ()));
    assert_eq!(harness.free(), "3 6 7 8 9 10 11 12 13 14 15 16 17 18 19 5 4 2 1");
    let plan = harness.step();
    let resumed: Vec<_> = plan.scheduled_cached_reqs.iter().map(|c| (c.resumed, c.num_computed_tokens)).collect();
    assert_eq!(resumed, [(true, 0), (true, 0)]);
    assert_eq!(plan.preempted_req_ids.len(), 2);
}

/// A reset while a step is in flight drops that step's output; the requests recompute from the tokens they had.
#[test]
fn output_in_flight_at_a_forced_reset_is_dropped() {
    let mut harness = Harness::new(args(), 19);
    harness.add(request("a", prompt(1, 10), 3));
    harness.step();
    let in_flight = harness.scheduler.schedule(Nanos(0), &mut ());
    assert!(harness.scheduler.reset_prefix_cache(true, Nanos(0), &mut ()));
    let resumed = harness.scheduler.schedule(Nanos(0), &mut ());
    assert_eq!(resumed.total_num_scheduled_tokens, 11, "prompt and one output");
    harness.finish_step(&in_flight, &mut ());
    assert!(harness.outputs.last().expect("processed").outputs.is_empty());
    harness.finish_step(&resumed, &mut ());
    assert_eq!(harness.outputs.last().expect("processed").outputs.len(), 1);
}

/// kv-cache 5, example 1, and its sibling one token longer.
#[test]
fn the_last_token_is_always_recomputed() {
    for (n, scheduled, hit) in [(8, 4, 4), (9, 1, 8)] {
        let mut harness = Harness::new(args(), 10);
        harness.add(request("first", shared_prompt(n), 1));
        harness.step();
        harness.add(request("second", shared_prompt(n), 1));
        let plan = harness.step();
        assert_eq!(plan.total_num_scheduled_tokens, scheduled);
        assert_eq!(plan.scheduled_new_reqs[0].num_computed_tokens, hit);
    }
}

/// requests-and-outputs 5 example 2 and 7 example 1: a prompt is hit in the very step that computes it.
#[test]
fn equal_prompts_in_one_step_share_their_blocks() {
    let mut harness = Harness::new(args(), 10);
    harness.add(request("A", shared_prompt(10), 4));
    harness.add(request("B", shared_prompt(10), 4));
    check(&harness.step_line(), &expect!["1 | A:10 B:2 | free 5 6 7 8 9 10"]);
    let outputs = &harness.outputs[0];
    let stats = outputs.scheduler_stats.prefix_cache_stats;
    assert_eq!((stats.requests, stats.queries, stats.hits), (2, 20, 8));
    let prefill: Vec<_> = outputs
        .outputs
        .iter()
        .map(|output| output.prefill_stats().expect("first record"))
        .map(|stats| (stats.num_computed_tokens(), stats.num_cached_tokens, stats.num_cache_creation_tokens))
        .collect();
    assert_eq!(prefill, [(10, 0, 8), (2, 8, 0)]);
}

#[test]
fn three_prompts_that_share_sixteen_of_seventeen_tokens_compute_one_token_each_but_the_first() {
    let mut harness = Harness::new(args(), 20);
    for (id, last) in [("a", 1), ("b", 2), ("c", 3)] {
        let mut tokens = shared_prompt(16);
        tokens.push(last);
        harness.add(request(id, tokens, 1));
    }
    let plan = harness.step();
    assert_eq!(plan.num_scheduled_tokens.iter().map(|s| s.num_tokens).collect::<Vec<_>>(), [17, 1, 1]);
    let stats = harness.outputs[0].scheduler_stats.prefix_cache_stats;
    assert_eq!((stats.queries, stats.hits), (51, 32));
}

/// kv-cache 6: hits of resumed requests have their own counters.
#[test]
fn a_resumed_request_does_not_move_the_hit_rate() {
    let mut harness = Harness::new(args(), 6);
    harness.add(request("a", prompt(1, 12), 6));
    harness.add(request("b", prompt(2, 12), 6));
    let mut preempted = (0, 0, 0);
    let mut normal = (0, 0, 0);
    let mut resumed_at = None;
    while harness.scheduler.has_unfinished_requests() {
        let plan = harness.step();
        if let Some(cached) = plan.scheduled_cached_reqs.iter().find(|cached| cached.resumed) {
            resumed_at = Some((plan.step, cached.num_computed_tokens));
        }
        let stats = harness.outputs.last().expect("processed").scheduler_stats.prefix_cache_stats;
        normal = (normal.0 + stats.requests, normal.1 + stats.queries, normal.2 + stats.hits);
        preempted.0 += stats.preempted_requests;
        preempted.1 += stats.preempted_queries;
        preempted.2 += stats.preempted_hits;
    }
    assert_eq!(normal, (2, 24, 0));
    assert_eq!(preempted.0, 1);
    assert_eq!(resumed_at.map(|(_, hit)| u64::from(hit)), Some(preempted.2));
}

/// A failed try counts no hits and changes nothing; hits are counted once, at admission.
#[test]
fn a_request_that_does_not_fit_changes_nothing_while_it_waits() {
    let mut harness = Harness::new(args(), 8);
    harness.add(request("big", prompt(1, 20), 8));
    harness.step();
    harness.add(request("c", prompt(2, 24), 1));
    let mut queries = 0;
    for _ in 0..7 {
        let plan = harness.step();
        assert!(plan.scheduled_new_reqs.is_empty());
        queries += harness.outputs.last().expect("processed").scheduler_stats.prefix_cache_stats.queries;
    }
    assert_eq!(queries, 0);
}

/// requests-and-outputs 4, examples 1 to 4.
#[test]
fn stop_conditions_are_checked_in_their_order() {
    type Case<'a> = (SamplingParams, &'a [u32], FinishReason, Option<StopReason>, usize);
    let base = SamplingParams { max_tokens: Some(8), ..SamplingParams::default() };
    let eos = SamplingParams { eos_token_id: Some(9), ..base.clone() };
    let cases: [Case<'_>; 6] = [
        (SamplingParams { max_tokens: Some(1), ..eos.clone() }, &[9], FinishReason::Stop, None, 1),
        (
            SamplingParams { stop_token_ids: vec![8], ..base.clone() },
            &[8],
            FinishReason::Stop,
            Some(StopReason::Token(8)),
            1,
        ),
        (SamplingParams { stop_token_ids: vec![9], ..eos.clone() }, &[9], FinishReason::Stop, None, 1),
        // `min_tokens` does not guard the stop tokens.
        (SamplingParams { min_tokens: 3, ..eos.clone() }, &[9], FinishReason::Stop, None, 1),
        (eos, &[1, 9, 2], FinishReason::Stop, None, 2),
        (SamplingParams { max_tokens: None, ..base }, &[1, 2, 3], FinishReason::Length, None, 2),
    ];
    for (sampling, sampled, finish_reason, stop_reason, num_kept) in cases {
        let mut harness = Harness::new(EngineArgs { max_model_len: Some(6), max_num_seqs: Some(1), ..args() }, 10);
        harness.add(NewRequest::new("r", prompt(1, 4), sampling));
        let plan = harness.scheduler.schedule(Nanos(0), &mut ());
        let mut result = ModelRunnerOutput::default();
        result.push(sampled);
        let outputs = harness.scheduler.update_from_output(&plan, &result, Nanos(0), &mut ()).expect("accepted");
        let output = &outputs.outputs[0];
        assert_eq!((output.finish_reason, output.stop_reason), (Some(finish_reason), stop_reason));
        assert_eq!(outputs.new_token_ids(output).len(), num_kept);
    }
}

/// scheduler 2.4.12.
#[test]
fn without_chunked_prefill_a_prompt_waits_for_a_step_that_takes_it_whole() {
    let whole = EngineArgs {
        enable_chunked_prefill: Some(false),
        max_num_batched_tokens: Some(64),
        max_num_scheduled_tokens: Some(12),
        ..args()
    };
    let mut harness = Harness::new(whole, 20);
    harness.add(request("a", prompt(1, 8), 3));
    harness.add(request("b", prompt(2, 8), 3));
    check(
        &harness.step_lines(2),
        &expect![[r#"
            1 | a:8 | free 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
            2 | a:1 b:8 | free 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20
        "#]],
    );
}

/// kv-cache 4, example 2.
#[test]
fn the_watermark_counts_only_while_others_run() {
    let watermark = EngineArgs { watermark: Some(0.1), max_model_len: Some(80), ..args() };
    let mut harness = Harness::new(EngineArgs { max_num_batched_tokens: Some(80), ..watermark }, 19);
    harness.add(request("alone", prompt(1, 72), 8));
    harness.add(request("next", prompt(2, 4), 8));
    // 18 of 19 blocks are taken although 2 should stay free; `next` would need 1 and leave 0.
    assert_eq!(harness.step().num_scheduled_tokens.len(), 1);
}

/// kv-cache 9.
#[test]
fn a_reset_forgets_prefixes_and_is_told_once() {
    let mut harness = Harness::new(args(), 10);
    harness.add(request("a", shared_prompt(9), 1));
    harness.step();
    assert!(harness.scheduler.reset_prefix_cache(false, Nanos(0), &mut ()));
    harness.add(request("b", shared_prompt(9), 1));
    assert_eq!(harness.step().total_num_scheduled_tokens, 9);
    harness.step();
    let resets: Vec<bool> = harness.outputs.iter().map(|o| o.scheduler_stats.prefix_cache_stats.reset).collect();
    assert_eq!(resets, [false, true, false]);
}
