//! Records on lines of JSON: form, order, and reading back.
#![cfg(feature = "serde")]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use stepline_tracing_schema::{
    BatchSummary, FinishStatus, JourneyEvent, JourneyEventKind, RequestPhase, RequestSnapshot, ScheduleKind,
    TraceRecord,
};

fn summary() -> BatchSummary {
    BatchSummary {
        step_id: 7,
        ts_start_ns: 1_000,
        ts_end_ns: 4_999,
        duration_us: 3,
        running_depth: 2,
        waiting_depth: 1,
        num_prefill_reqs: 1,
        num_decode_reqs: 1,
        scheduled_tokens: 11,
        prefill_tokens: 10,
        decode_tokens: 1,
        num_finished: 0,
        num_preempted: 0,
        kv_usage_gpu_ratio: 0.001_001_001_001_000_978_4,
        kv_blocks_total_gpu: 999,
        kv_blocks_free_gpu: 998,
    }
}

fn snapshot() -> RequestSnapshot {
    RequestSnapshot {
        step_id: 7,
        request_id: "a \"quoted\" id".into(),
        phase: RequestPhase::Prefill,
        num_prompt_tokens: 10,
        num_computed_tokens: 0,
        num_output_tokens: 0,
        num_preemptions: 0,
        scheduled_tokens_this_step: 10,
        kv_blocks_allocated_gpu: 1,
        kv_blocks_cached_gpu: 0,
        effective_prompt_len: None,
    }
}

fn journey(kind: JourneyEventKind) -> JourneyEvent {
    JourneyEvent {
        request_id: "A".into(),
        kind,
        ts_monotonic_ns: 1_500_000_000,
        scheduler_step: 1,
        phase: RequestPhase::Decode,
        prefill_done_tokens: 10,
        prefill_total_tokens: 10,
        decode_done_tokens: 1,
        decode_max_tokens: 4,
        num_preemptions: 0,
    }
}

#[track_caller]
fn check_line(record: impl Into<TraceRecord>, expected: &Expect) {
    let record = record.into();
    let line = serde_json::to_string(&record).expect("a record is JSON");
    expected.assert_eq(&line);
    assert_eq!(serde_json::from_str::<TraceRecord>(&line).expect("what was written can be read"), record);
}

#[track_caller]
fn check_refused(line: &str, expected: &Expect) {
    let error = serde_json::from_str::<TraceRecord>(line).expect_err("the line is wrong");
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_summary_is_one_flat_object_with_the_reference_keys() {
    check_line(
        summary(),
        &expect![[
            r#"{"name":"step.BATCH_SUMMARY","step.id":7,"step.ts_start_ns":1000,"step.ts_end_ns":4999,"step.duration_us":3,"queue.running_depth":2,"queue.waiting_depth":1,"batch.num_prefill_reqs":1,"batch.num_decode_reqs":1,"batch.scheduled_tokens":11,"batch.prefill_tokens":10,"batch.decode_tokens":1,"batch.num_finished":0,"batch.num_preempted":0,"kv.usage_gpu_ratio":0.0010010010010009784,"kv.blocks_total_gpu":999,"kv.blocks_free_gpu":998}"#
        ]],
    );
}

#[test]
fn a_snapshot_leaves_out_an_effective_prompt_length_it_does_not_have() {
    check_line(
        snapshot(),
        &expect![[
            r#"{"name":"step.REQUEST_SNAPSHOT","step.id":7,"request.id":"a \"quoted\" id","request.phase":"PREFILL","request.num_prompt_tokens":10,"request.num_computed_tokens":0,"request.num_output_tokens":0,"request.num_preemptions":0,"request.scheduled_tokens_this_step":10,"kv.blocks_allocated_gpu":1,"kv.blocks_cached_gpu":0}"#
        ]],
    );
}

#[test]
fn a_journey_event_says_whose_it_is_and_how_it_ended() {
    check_line(
        journey(JourneyEventKind::Finished(FinishStatus::Length)),
        &expect![[
            r#"{"name":"journey.FINISHED","request.id":"A","event.type":"FINISHED","ts.monotonic":1.5,"ts.monotonic_ns":1500000000,"scheduler.step":1,"phase":"DECODE","prefill.done_tokens":10,"prefill.total_tokens":10,"decode.done_tokens":1,"decode.max_tokens":4,"num_preemptions":0,"finish.status":"length"}"#
        ]],
    );
}

#[test]
fn a_wrong_line_says_what_is_wrong_and_where() {
    check_refused("{}", &expect!["missing field `name` at line 1 column 2"]);
    check_refused(r#"{"step.id":1}"#, &expect!["the first key is `step.id`, expected `name` at line 1 column 10"]);
    check_refused(
        r#"{"name":"step.SUMMARY"}"#,
        &expect![
            "unknown event `step.SUMMARY`, expected one of step.BATCH_SUMMARY, step.REQUEST_SNAPSHOT, journey.QUEUED, journey.SCHEDULED, journey.FIRST_TOKEN, journey.PREEMPTED, journey.FINISHED at line 1 column 23"
        ],
    );
    check_refused(
        r#"{"name":"step.BATCH_SUMMARY","step.id":1}"#,
        &expect!["missing field `step.ts_start_ns` at line 1 column 41"],
    );
    check_refused(
        r#"{"name":"step.BATCH_SUMMARY","step.id":1,"step.id":2}"#,
        &expect!["duplicate field `step.id` at line 1 column 53"],
    );
    check_refused(
        r#"{"name":"step.BATCH_SUMMARY","step.id":-1}"#,
        &expect!["invalid value: integer `-1`, expected u64 at line 1 column 41"],
    );
}

#[test]
fn a_journey_line_that_contradicts_itself_is_refused() {
    let scheduled = serde_json::to_string(&journey(JourneyEventKind::Scheduled(ScheduleKind::Resume))).expect("JSON");
    let refused = |from: &str, to: &str| {
        let line = scheduled.replace(from, to);
        assert_ne!(line, scheduled, "`{from}` is not in the line");
        serde_json::from_str::<JourneyEvent>(&line).expect_err("the line is wrong").to_string()
    };
    expect!["event `journey.QUEUED` has `event.type` `SCHEDULED` at line 1 column 292"]
        .assert_eq(&refused("journey.SCHEDULED", "journey.QUEUED"));
    expect!["a `SCHEDULED` event has no `schedule.kind` at line 1 column 270"]
        .assert_eq(&refused(r#","schedule.kind":"RESUME""#, ""));
    expect!["a `SCHEDULED` event has `finish.status`, which belongs to `FINISHED` events at line 1 column 320"]
        .assert_eq(&refused("num_preemptions\":0", "num_preemptions\":0,\"finish.status\":\"length\""));
    expect!["unknown schedule kind `SECOND`, expected one of FIRST, RESUME at line 1 column 295"]
        .assert_eq(&refused("RESUME", "SECOND"));
}

prop_compose! {
    fn any_summary()(
        // OTLP and JSON readers alike take integers up to `i64::MAX`.
        wide in prop::array::uniform4(0..=u64::try_from(i64::MAX).unwrap_or(0)),
        counts in prop::array::uniform11(any::<u32>()),
        kv_usage_gpu_ratio in 0.0..=1.0_f64,
    ) -> BatchSummary {
        let [step_id, ts_start_ns, ts_end_ns, duration_us] = wide;
        let [
            running_depth, waiting_depth, num_prefill_reqs, num_decode_reqs, scheduled_tokens, prefill_tokens,
            decode_tokens, num_finished, num_preempted, kv_blocks_total_gpu, kv_blocks_free_gpu,
        ] = counts;
        BatchSummary {
            step_id, ts_start_ns, ts_end_ns, duration_us, running_depth, waiting_depth, num_prefill_reqs,
            num_decode_reqs, scheduled_tokens, prefill_tokens, decode_tokens, num_finished, num_preempted,
            kv_usage_gpu_ratio, kv_blocks_total_gpu, kv_blocks_free_gpu,
        }
    }
}

prop_compose! {
    fn any_snapshot()(
        step_id in 0..1_u64 << 62,
        request_id in any::<String>(),
        num_output_tokens in any::<u32>(),
        counts in prop::array::uniform6(any::<u32>()),
        effective_prompt_len in any::<Option<u32>>(),
    ) -> RequestSnapshot {
        let [
            num_prompt_tokens, num_computed_tokens, num_preemptions, scheduled_tokens_this_step,
            kv_blocks_allocated_gpu, kv_blocks_cached_gpu,
        ] = counts;
        RequestSnapshot {
            step_id, request_id: request_id.into(), phase: RequestPhase::of_admitted(num_output_tokens),
            num_prompt_tokens, num_computed_tokens, num_output_tokens, num_preemptions, scheduled_tokens_this_step,
            kv_blocks_allocated_gpu, kv_blocks_cached_gpu, effective_prompt_len,
        }
    }
}

fn any_kind() -> impl Strategy<Value = JourneyEventKind> {
    let scheduled = [ScheduleKind::First, ScheduleKind::Resume].map(JourneyEventKind::Scheduled);
    let finished = [
        FinishStatus::Stopped,
        FinishStatus::Length,
        FinishStatus::Aborted,
        FinishStatus::Ignored,
        FinishStatus::Error,
    ]
    .map(JourneyEventKind::Finished);
    let plain = [JourneyEventKind::Queued, JourneyEventKind::FirstToken, JourneyEventKind::Preempted];
    prop::sample::select([&scheduled[..], &finished, &plain].concat())
}

proptest! {
    #[test]
    fn every_record_reads_back_equal(
        summary in any_summary(),
        snapshot in any_snapshot(),
        kind in any_kind(),
        ts_monotonic_ns in 0..1_u64 << 63,
    ) {
        let journey = JourneyEvent { ts_monotonic_ns, ..journey(kind) };
        for record in [TraceRecord::from(summary), snapshot.into(), journey.into()] {
            let line = serde_json::to_string(&record).expect("a record is JSON");
            prop_assert!(!line.contains('\n'), "a record stays on its line");
            prop_assert_eq!(serde_json::from_str::<TraceRecord>(&line).expect("it can be read"), record);
        }
    }
}

#[cfg(feature = "schema")]
#[test]
fn every_line_has_the_keys_that_the_schema_asks_for_and_no_others() {
    let schema = stepline_tracing_schema::schema::line_schema();
    let finished = JourneyEventKind::Finished(FinishStatus::Error);
    let complete = RequestSnapshot { effective_prompt_len: Some(3), ..snapshot() };
    let records = [
        summary().into(),
        snapshot().into(),
        complete.into(),
        TraceRecord::from(journey(JourneyEventKind::Queued)),
        journey(JourneyEventKind::Scheduled(ScheduleKind::First)).into(),
        journey(JourneyEventKind::FirstToken).into(),
        journey(JourneyEventKind::Preempted).into(),
        journey(finished).into(),
    ];
    for record in records {
        let line = serde_json::to_value(&record).expect("a record is JSON");
        let line = line.as_object().expect("a record is an object");
        let event = &schema.as_value()["$defs"][record.name()];
        let properties = event["properties"].as_object().expect("the event is in the schema");
        let unknown: Vec<_> = line.keys().filter(|key| !properties.contains_key(*key)).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?} is not in the schema", record.name());
        let required = event["required"].as_array().expect("a list");
        let missing: Vec<_> = required.iter().filter(|key| !line.contains_key(key.as_str().expect("a key"))).collect();
        assert!(missing.is_empty(), "{}: the line has no {missing:?}", record.name());
    }
}
