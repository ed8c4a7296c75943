//! How much may be queued.

use trunkline_wire::model::{LogLevel, LogMessage};

use super::*;

fn log(bytes: usize) -> HandlerEvent {
    let data = Json::string(&"x".repeat(bytes));
    HandlerEvent::Log(LogMessage::new(LogLevel::Info, data))
}

/// How many of these fit into the queue while nothing takes them out.
fn said(handle: &ConversationHandle, bytes: usize) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let say = || Box::pin(handle.say(CallKey(1), log(bytes)));
    (0..5000).take_while(|_| say().as_mut().poll(&mut cx).is_ready()).count()
}

#[test]
fn queued_commands_are_bounded_in_number_and_in_bytes() {
    for (bytes, expected) in
        [(0, 1024), (1000, 1024), (1 << 10, 512), (100 << 10, 10), (1 << 20, 1)]
    {
        let (handle, mut commands) = ConversationHandle::new(1024);
        assert_eq!(said(&handle, bytes), expected, "of {bytes} bytes");
        // Commands that are taken out make room for as many again.
        while commands.try_command().is_some() {}
        assert_eq!(said(&handle, bytes), expected, "of {bytes} bytes");
    }
}

#[test]
fn a_command_larger_than_the_queue_fits_alone() {
    let (handle, mut commands) = ConversationHandle::new(4);
    assert_eq!(said(&handle, 1 << 20), 1);
    assert!(commands.try_command().is_some());
    assert_eq!((said(&handle, 1 << 20), said(&handle, 0)), (1, 0));
}

/// What is next, as a word.
fn next(commands: &mut CommandReceiver, waker: &Waker, takes_commands: bool) -> &'static str {
    match commands.poll_next(&mut Context::from_waker(waker), takes_commands) {
        Poll::Ready(Next::Urgent(Urgent::Close)) => "close",
        Poll::Ready(Next::Urgent(Urgent::Cancel(_))) => "cancel",
        Poll::Ready(Next::Command(_)) => "command",
        Poll::Pending => "nothing",
    }
}

#[test]
fn what_was_queued_together_keeps_its_room_until_all_of_it_is_handed_on() {
    let (handle, mut commands) = ConversationHandle::new(3);
    let waker = Waker::noop();
    assert_eq!(said(&handle, 0), 3);
    assert_eq!(next(&mut commands, waker, true), "command");
    assert_eq!(said(&handle, 0), 0, "two are still to come");
    assert_eq!(
        [(); 3].map(|()| next(&mut commands, waker, true)),
        ["command", "command", "nothing"]
    );
    assert_eq!(said(&handle, 0), 3);
}

#[test]
fn what_is_urgent_comes_before_commands_that_were_taken() {
    let (handle, mut commands) = ConversationHandle::new(8);
    let waker = Waker::noop();
    assert_eq!(said(&handle, 0), 8);
    assert_eq!(next(&mut commands, waker, true), "command");
    handle.close();
    assert_eq!(next(&mut commands, waker, false), "close");
    assert_eq!(next(&mut commands, waker, false), "nothing", "the queue has to wait");
    assert_eq!(next(&mut commands, waker, true), "command");
}

#[test]
fn a_driver_is_woken_by_what_comes_after_it_found_nothing() {
    struct Task(AtomicU64);
    impl std::task::Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let task = Arc::new(Task(AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&task));
    let (handle, mut commands) = ConversationHandle::new(8);
    for turn in 1..4 {
        assert_eq!(next(&mut commands, &waker, true), "nothing");
        assert_eq!(said(&handle, 0), 8);
        assert_eq!(task.0.load(Ordering::Relaxed), turn, "once for all that came");
        (0..8).for_each(|_| assert_eq!(next(&mut commands, &waker, true), "command"));
    }
}

#[test]
fn who_asked_learns_that_a_command_was_taken_and_never_made() {
    let (handle, mut commands) = ConversationHandle::new(8);
    let ask = || Box::pin(handle.ask(Request::new(Method::Ping, Object::default())));
    let mut asked = [ask(), ask()];
    let mut cx = Context::from_waker(Waker::noop());
    assert!(asked.iter_mut().all(|it| it.as_mut().poll(&mut cx).is_pending()));
    let first = commands.poll_next(&mut cx, true);
    drop(commands);
    drop(first);
    let told = asked.map(|mut it| it.as_mut().poll(&mut cx));
    assert!(matches!(told[0], Poll::Ready(Err(CallError::Closed))), "{:?}", told[0]);
    assert!(matches!(told[1], Poll::Ready(Err(CallError::Unreachable(_)))), "{:?}", told[1]);
}
