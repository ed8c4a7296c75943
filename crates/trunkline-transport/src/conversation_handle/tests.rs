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
        let (handle, commands) = ConversationHandle::new(1024);
        assert_eq!(said(&handle, bytes), expected, "of {bytes} bytes");
        // Commands that are taken out make room for as many again.
        while commands.try_command().is_some() {}
        assert_eq!(said(&handle, bytes), expected, "of {bytes} bytes");
    }
}

#[test]
fn a_command_larger_than_the_queue_fits_alone() {
    let (handle, commands) = ConversationHandle::new(4);
    assert_eq!(said(&handle, 1 << 20), 1);
    assert!(commands.try_command().is_some());
    assert_eq!((said(&handle, 1 << 20), said(&handle, 0)), (1, 0));
}
