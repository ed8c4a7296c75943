//! When a task is polled, and which progress is reported.

use trunkline_wire::model::{DetailedTask, Progress, Task, TaskStatus};

use super::{LastStatus, Pace};

fn task(poll_ms: Option<u64>) -> Task {
    let mut task = Task::new("t", "2026-07-28T12:00:00Z");
    task.poll_interval_ms = poll_ms;
    task
}

#[test]
fn a_task_is_looked_at_often_first_and_then_as_the_server_asks() {
    for (asked, pauses) in [
        (Some(5_000), [1, 10, 20, 50, 100, 200, 500, 5_000]),
        (Some(60), [1, 10, 20, 50, 60, 60, 60, 60]),
        (Some(0), [1, 10, 20, 20, 20, 20, 20, 20]),
        (None, [1, 10, 20, 50, 100, 200, 500, 1_000]),
    ] {
        let mut pace = Pace::default();
        let task = task(asked);
        assert_eq!(pauses.map(|_| pace.next(&task).as_millis()), pauses, "{asked:?}");
    }
}

#[test]
fn progress_in_numbers_is_heard_once() {
    let mut last_status = LastStatus::default();
    let mut now = DetailedTask::new(task(None).status_message("1 of 2"));
    now.progress = Some(Progress::new(1.0).total(2.0));
    assert_eq!(last_status.step(&now, Some(1.0)), None, "it came with the call");
    assert_eq!(last_status.step(&now, Some(0.5)), now.progress);
    now.task.status = TaskStatus::Completed;
    assert_eq!(last_status.step(&now, None), now.progress, "the last step is heard with the end");
}

#[test]
fn a_task_that_has_only_words_makes_a_step_with_each_new_one() {
    let mut last_status = LastStatus::default();
    let said = |text: &str| DetailedTask::new(task(None).status_message(text));
    let step = |number: f64, text: &str| Some(Progress::new(number).message(text));
    assert_eq!(last_status.step(&DetailedTask::new(task(None)), None), None);
    assert_eq!(last_status.step(&said("Reading."), None), step(1.0, "Reading."));
    assert_eq!(last_status.step(&said("Reading."), Some(1.0)), None);
    assert_eq!(last_status.step(&said("Writing."), Some(1.0)), step(2.0, "Writing."));
    let mut failed = said("The disk is full.");
    failed.task.status = TaskStatus::Failed;
    assert_eq!(last_status.step(&failed, Some(2.0)), None, "how it ended is no progress");
}
