//! A task without a server: its questions, its end, and how both generations represent it.

use super::super::registry::{Asker, Registry};
use super::*;

fn task(caller: &str) -> Arc<Entry> {
    task_of(Caller::named(caller))
}

fn task_of(caller: Caller) -> Arc<Entry> {
    let known = Known {
        id: format!("sealed-{}", trunkline_auth::tag::random_name()),
        trace: "trace".to_owned(),
        server: Arc::from("house"),
        tool: Arc::new(Tool::new("work", Json::empty_object())),
        caller: Arc::new(caller),
        registry: Weak::new(),
        plugins: None,
    };
    Entry::local(known, Some(1_000))
}

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

/// Asks, and lets the question be delivered.
fn ask(entry: &Arc<Entry>) -> tokio::task::JoinHandle<Outcome> {
    let asker = Asker::Entry(Arc::downgrade(entry));
    tokio::spawn(asker.asked(trunkline_wire::method::Method::RootsList, Object::default()))
}

async fn until(entry: &Entry, status: TaskStatus) {
    loop {
        let mut changed = std::pin::pin!(entry.changed().notified());
        changed.as_mut().enable();
        if entry.task(false).status == status {
            return;
        }
        changed.await;
    }
}

#[tokio::test]
async fn a_question_is_open_until_it_is_answered_or_taken_back() {
    let entry = task("alice");
    let asked = ask(&entry);
    until(&entry, TaskStatus::InputRequired).await;
    assert_eq!(entry.detail().input_requests, [("q1".to_owned(), InputRequest::Roots)]);
    entry.answer(&Object::parse(r#"{"q1":{"roots":[]},"q9":{}}"#).unwrap());
    assert_eq!(asked.await.unwrap().unwrap(), json(r#"{"roots":[]}"#));
    assert_eq!(entry.task(false).status, TaskStatus::Working);

    let asked = ask(&entry);
    until(&entry, TaskStatus::InputRequired).await;
    let open = entry.detail().input_requests;
    assert_eq!(open[0].0, "q2", "a key is used once in the life of a task");
    asked.abort();
    until(&entry, TaskStatus::Working).await;
}

#[tokio::test]
async fn a_question_goes_to_one_client_and_to_the_next_if_that_one_leaves() {
    let entry = task("alice");
    let asked = ask(&entry);
    until(&entry, TaskStatus::InputRequired).await;
    let first = entry.take_questions();
    assert_eq!((first.len(), entry.take_questions().len()), (1, 0));
    drop(first);
    let mut again = entry.take_questions();
    let params = again[0].params(Revision::V2025_11_25).unwrap().to_json();
    assert!(params.get().contains(&format!(r#"related-task":{{"taskId":"{}"}}"#, entry.id())));
    again.remove(0).told(Err(ErrorObject::invalid_params("No.")));
    assert_eq!(asked.await.unwrap().unwrap_err().message, "No.");
}

#[tokio::test]
async fn an_error_of_the_tool_is_a_failure_in_the_older_generation_alone() {
    let entry = task("alice");
    let said = json(r#"{"content":[{"type":"text","text":"Full."}],"isError":true}"#);
    entry.finish(End::Result(said, Revision::V2025_11_25)).await;
    let (core, new) = (entry.task(true).status, entry.task(false).status);
    assert_eq!((core, new), (TaskStatus::Failed, TaskStatus::Completed));
    let result = entry.detail().result.unwrap();
    assert!(result.get().starts_with(r#"{"resultType":"complete","content":"#), "{result:?}");
    let told = entry.outcome(entry.end().unwrap(), Revision::V2025_11_25).unwrap();
    assert!(told.get().contains(&format!(r#""taskId":"{}""#, entry.id())), "{told:?}");
    assert!(!entry.settle(End::Cancelled), "what is over stays as it is");
}

#[tokio::test]
async fn a_finished_task_refuses_questions() {
    let entry = task("alice");
    let asked = ask(&entry);
    until(&entry, TaskStatus::InputRequired).await;
    assert!(entry.settle(End::Cancelled));
    assert!(asked.await.unwrap().is_err());
    assert!(ask(&entry).await.unwrap().is_err());
    let told = entry.outcome(entry.end().unwrap(), Revision::V2025_11_25);
    assert_eq!(told.unwrap_err().message, "The task was cancelled.");
}

#[tokio::test]
async fn tasks_are_bounded_by_caller_and_in_all() {
    let registry = Registry::new(Arc::default());
    let mut first = None;
    for _ in 0..64 {
        let entry = task("alice");
        registry.add(&entry).unwrap();
        first.get_or_insert(entry);
    }
    let refused = registry.add(&task("alice")).unwrap_err();
    assert_eq!(refused.reason, "too_many_tasks");
    registry.add(&task("bob")).unwrap();
    let first = first.unwrap();
    assert_eq!(registry.of(first.caller(), 0).len(), 64);
    assert_eq!(registry.of(first.caller(), 60).len(), 4);
    // Finished tasks do not count, and are evicted first.
    first.settle(End::Cancelled);
    registry.add(&task("alice")).unwrap();
    for at in 0..958 {
        registry.add(&task(&format!("c{at}"))).unwrap();
    }
    assert!(registry.get(first.id()).is_some());
    registry.add(&task("last")).unwrap();
    assert!(registry.get(first.id()).is_none());
    assert!(registry.add(&task("one more")).is_err());
}

#[tokio::test]
async fn modern_callers_without_a_name_have_one_share_of_tasks() {
    let registry = Registry::new(Arc::default());
    // In 2026-07-28 each request is a conversation of its own.
    let nobody = |conversation| {
        let mut caller = Caller::named("");
        (caller.name, caller.has_session, caller.conversation) = (None, false, conversation);
        task_of(caller)
    };
    for number in 0..512 {
        registry.add(&nobody(number)).unwrap();
    }
    assert_eq!(registry.add(&nobody(512)).unwrap_err().reason, "too_many_tasks");
    registry.add(&task("alice")).unwrap();
}

#[tokio::test]
async fn outcomes_of_tasks_are_bounded_by_caller() {
    let registry = Registry::new(Arc::default());
    let large = || json(&format!(r#"{{"content":"{}"}}"#, "x".repeat(1 << 20)));
    let ends = |caller: &str| {
        let entry = task(caller);
        registry.add(&entry).unwrap();
        registry.grows(&entry, large().get().len());
        entry.settle(End::Result(large(), Revision::V2026_07_28));
        entry
    };
    let bob = ends("bob");
    let all: Vec<_> = (0..20).map(|_| ends("alice")).collect();
    let kept = registry.of(all[0].caller(), 0);
    assert_eq!(kept.len(), 7, "half of sixteen MiB, and each has a little more than one");
    assert!(kept.iter().all(|it| it.order() > all[12].order()), "the oldest go first");
    assert!(registry.get(bob.id()).is_some(), "what others have is not touched");
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_for_its_task_to_be_known_but_not_for_ever() {
    let registry = Arc::new(Registry::new(Arc::default()));
    let entry = task("alice");
    let waiting = {
        let registry = Arc::clone(&registry);
        tokio::spawn(async move { registry.asker(7, "t").await.is_some() })
    };
    tokio::task::yield_now().await;
    let nudge = Arc::new(Notify::new());
    let asker = Asker::Entry(Arc::downgrade(&entry));
    let followed = registry.follow(7, "t", asker, Arc::clone(&nudge));
    assert!(waiting.await.unwrap());
    registry.nudge(7, "t");
    nudge.notified().await;
    drop(followed);
    assert!(registry.asker(7, "t").await.is_none());
}
