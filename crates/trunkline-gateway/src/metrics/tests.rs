use super::*;
use crate::failure::{Done, Failure, Reason, Stage};
use crate::pool::InstanceStatus;

const MS: Duration = Duration::from_millis(1);

/// The samples, without HELP and TYPE lines.
fn samples(metrics: &Metrics) -> Vec<String> {
    let text = metrics.render();
    assert!(text.ends_with('\n'));
    text.lines().filter(|it| !it.starts_with('#')).map(str::to_owned).collect()
}

fn check(metrics: &Metrics, expected: &[&str]) {
    let found = samples(metrics);
    for it in expected {
        assert!(found.iter().any(|line| line == it), "{it} is not among {found:#?}");
    }
}

#[test]
fn a_call_is_counted_where_it_belongs() {
    let metrics = Metrics::default();
    metrics.call_finished("time", Method::of("tools/call"), Outcome::Ok, (Instant::now(), MS));
    metrics.call_finished("time", Method::of("tools/call"), Outcome::Ok, (Instant::now(), 40 * MS));
    metrics.call_finished(
        "time",
        Method::of("tools/call"),
        Outcome::TimedOut,
        (Instant::now(), 90_000 * MS),
    );
    metrics.call_finished(
        "time",
        Method::of("made/up"),
        Outcome::Error,
        (Instant::now(), Duration::ZERO),
    );
    let labels = r#"server="time",method="tools/call",outcome="ok""#;
    let name = "trunkline_route_duration_seconds";
    check(
        &metrics,
        &[
            &format!("{name}_bucket{{{labels},le=\"0.0005\"}} 0"),
            &format!("{name}_bucket{{{labels},le=\"0.001\"}} 1"),
            &format!("{name}_bucket{{{labels},le=\"0.025\"}} 1"),
            &format!("{name}_bucket{{{labels},le=\"0.05\"}} 2"),
            &format!("{name}_bucket{{{labels},le=\"60\"}} 2"),
            &format!("{name}_bucket{{{labels},le=\"+Inf\"}} 2"),
            &format!("{name}_sum{{{labels}}} 0.041"),
            &format!("{name}_count{{{labels}}} 2"),
            r#"trunkline_route_duration_seconds_bucket{server="time",method="tools/call",outcome="timed_out",le="60"} 0"#,
            r#"trunkline_route_duration_seconds_count{server="time",method="tools/call",outcome="timed_out"} 1"#,
            r#"trunkline_route_duration_seconds_count{server="time",method="other",outcome="error"} 1"#,
        ],
    );
}

#[test]
fn every_method_and_every_outcome_has_a_line_of_its_own() {
    let methods = TABLE.iter().map(|it| (it.name, Outcome::Ok));
    for (method, outcome) in methods.chain(OUTCOMES.map(|it| ("tools/call", it))) {
        let metrics = Metrics::default();
        metrics.call_finished("time", Method::of(method), outcome, (Instant::now(), MS));
        let word = outcome.word();
        let labels = format!(r#"server="time",method="{method}",outcome="{word}""#);
        check(&metrics, &[&format!("trunkline_route_duration_seconds_count{{{labels}}} 1")]);
    }
}

fn instance(state: &'static str, in_flight: usize) -> InstanceStatus {
    InstanceStatus {
        id: 1,
        state,
        in_flight,
        bound: false,
        profile: 0,
        cause: Cause::Call,
        age_ms: 0,
        idle_ms: None,
    }
}

#[test]
fn gauges_go_up_and_down() {
    let metrics = Metrics::default();
    let git = metrics.server("git");
    let mut status = PoolStatus {
        state: "ready",
        instances: vec![instance("busy", 2), instance("starting", 0), instance("draining", 1)],
        attempt: 0,
        next_retry_ms: None,
        last_error: None,
        starts: BTreeMap::new(),
        stops: BTreeMap::new(),
        waiters: 3,
        clients: 1,
        acquire_failures: BTreeMap::new(),
    };
    git.pool_status(&status, 8);
    metrics.now(2, 1, 3);
    check(
        &metrics,
        &[
            r#"trunkline_inflight_routes{server="git"} 6"#,
            r#"trunkline_pool_waiters{server="git"} 3"#,
            r#"trunkline_pool_capacity_ratio{server="git"} 0.75"#,
            r#"trunkline_active_instances{server="git"} 2"#,
            r#"trunkline_instance_starting{server="git"} 1"#,
            "trunkline_clients 2",
            "trunkline_parked_calls 1",
        ],
    );
    (status.instances, status.waiters) = (Vec::new(), 0);
    git.pool_status(&status, 8);
    check(
        &metrics,
        &[
            r#"trunkline_inflight_routes{server="git"} 0"#,
            r#"trunkline_active_instances{server="git"} 0"#,
        ],
    );
    metrics.forget("git");
    assert!(!metrics.render().contains("\"git\""));
}

#[test]
fn the_life_of_an_instance_is_counted() {
    let metrics = Metrics::default();
    let git = metrics.server("git");
    let (id, cause, took) = (1, Cause::Call, 120 * MS);
    let failure = Failure::new(Reason::SpawnFailed, Stage::Spawn, "It is not there.");
    for event in [
        Event::Starting { id, cause },
        Event::Started { id, cause, took },
        Event::Starting { id, cause },
        Event::StartFailed { id, cause, took, failure },
        Event::Starting { id, cause: Cause::AlwaysOn },
        Event::BackingOff { attempt: 1, pause: took },
        Event::Suspended { attempt: 5 },
        Event::Waited { took, served: true },
        Event::Refused { reason: "busy" },
        Event::Stopping { id, why: Why::Idle, detail: None },
        Event::Stopped { id, why: Why::NoClients, took },
    ] {
        git.pool_event(&event);
    }
    check(
        &metrics,
        &[
            r#"trunkline_instance_starts_total{server="git",cause="call"} 2"#,
            r#"trunkline_instance_starts_total{server="git",cause="always_on"} 1"#,
            r#"trunkline_instance_start_result_total{server="git",result="ok"} 1"#,
            r#"trunkline_instance_start_result_total{server="git",result="spawn_failed"} 1"#,
            r#"trunkline_instance_start_duration_seconds_count{server="git"} 1"#,
            r#"trunkline_instance_backoff_total{server="git"} 1"#,
            r#"trunkline_instance_suspended_total{server="git"} 1"#,
            r#"trunkline_pool_wait_seconds_count{server="git"} 1"#,
            r#"trunkline_pool_acquire_fail_total{server="git",reason="busy"} 1"#,
            r#"trunkline_instance_stops_total{server="git",reason="no_clients"} 1"#,
        ],
    );
}

#[test]
fn a_failure_is_counted_by_the_stage_of_the_call() {
    for (reason, stage, done, expected) in [
        (Reason::Gone, Stage::Policy, Done::No, "refused"),
        (Reason::Gone, Stage::Route, Done::No, "refused"),
        (Reason::Gone, Stage::Acquire, Done::No, "unavailable"),
        (Reason::Gone, Stage::Handshake, Done::No, "unavailable"),
        // The second try did not start; the outcome of the first is unknown.
        (Reason::Gone, Stage::Spawn, Done::Unknown, "unknown"),
        (Reason::OutcomeUnknown, Stage::Call, Done::Unknown, "unknown"),
        (Reason::BadAnswer, Stage::Call, Done::Unknown, "unknown"),
        (Reason::Timeout, Stage::Call, Done::Unknown, "timed_out"),
        (Reason::Unreachable, Stage::Call, Done::No, "error"),
        (Reason::Gone, Stage::Bridge, Done::No, "error"),
    ] {
        let failure = Failure { done, ..Failure::new(reason, stage, "It is so.") };
        assert_eq!(Outcome::from(&failure).word(), expected);
    }
}

#[test]
fn policy_and_reloads_are_counted() {
    let metrics = Metrics::default();
    metrics.rejected("denied");
    metrics.rejected("denied");
    metrics.rejected("rate");
    metrics.plugin_asked("scrub\"\\\n", MS);
    metrics.reloaded(2);
    metrics.reload_failed();
    metrics.searched(MS);
    check(
        &metrics,
        &[
            r#"trunkline_governance_rejections_total{reason="denied"} 2"#,
            r#"trunkline_governance_rejections_total{reason="rate"} 1"#,
            r#"trunkline_governance_call_duration_seconds_count{plugin="scrub\"\\\n"} 1"#,
            "trunkline_reload_success_total 1",
            "trunkline_reload_failure_total 1",
            "trunkline_reload_restart_total 2",
            "trunkline_search_duration_seconds_count 1",
        ],
    );
}

#[test]
fn the_number_of_labels_is_bounded() {
    let metrics = Metrics::default();
    for n in 0..2 * SERVERS {
        metrics.call_finished(
            &format!("s{n}"),
            Method::of("ping"),
            Outcome::Ok,
            (Instant::now(), MS),
        );
    }
    assert_eq!(metrics.servers.read().unwrap().len(), SERVERS + 1);
    let rest = SERVERS;
    let line = format!(
        r#"trunkline_route_duration_seconds_count{{server="other",method="ping",outcome="ok"}} {rest}"#
    );
    check(&metrics, &[&line]);
}

#[test]
fn every_family_is_explained_once_and_before_its_samples() {
    let metrics = Metrics::default();
    metrics.call_finished("time", Method::of("tools/call"), Outcome::Ok, (Instant::now(), MS));
    metrics.server("time").pool_event(&Event::Refused { reason: "busy" });
    let text = metrics.render();
    let mut known = std::collections::BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            current = rest.split(' ').next().unwrap().to_owned();
            assert!(known.insert(current.clone()), "{current} twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|it| name.strip_suffix(it));
            assert!(name == current || base == Some(&current), "{line} under {current}");
        }
    }
    assert!(known.len() >= 20, "{known:?}");
}

#[test]
fn counting_a_second_time_is_counting_in_the_same_place() {
    let metrics = Metrics::default();
    metrics.call_finished("time", Method::of("tools/call"), Outcome::Ok, (Instant::now(), MS));
    let handle = metrics.server("time");
    assert!(Arc::ptr_eq(&handle, &metrics.server("time")));
    let cell = |it: &ServerMetrics| {
        std::ptr::from_ref(&**it.calls[Method::ToolsCall as usize][0].get().unwrap())
    };
    let before = cell(&handle);
    handle.call_finished(Method::of("tools/call"), Outcome::Ok, (Instant::now(), MS));
    assert_eq!(before, cell(&handle));
}
