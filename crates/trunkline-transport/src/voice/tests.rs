//! How much may wait to be said.

use trunkline_wire::model::{LogLevel, LogMessage};

use super::*;

fn log(bytes: usize) -> HandlerEvent {
    let data = Json::string(&"x".repeat(bytes));
    HandlerEvent::Log(LogMessage::new(LogLevel::Info, data))
}

/// How many of these can be said while nobody listens.
fn said(voice: &ConversationHandle, bytes: usize) -> usize {
    let mut cx = Context::from_waker(Waker::noop());
    let say = || Box::pin(voice.say(CallKey(1), log(bytes)));
    (0..5000).take_while(|_| say().as_mut().poll(&mut cx).is_ready()).count()
}

#[test]
fn what_waits_to_be_said_is_bounded_in_number_and_in_bytes() {
    for (bytes, expected) in
        [(0, 1024), (1000, 1024), (1 << 10, 512), (100 << 10, 10), (1 << 20, 1)]
    {
        let (voice, commands) = ConversationHandle::new(1024);
        assert_eq!(said(&voice, bytes), expected, "of {bytes} bytes");
        // What is heard makes room for as much again.
        while commands.try_command().is_some() {}
        assert_eq!(said(&voice, bytes), expected, "of {bytes} bytes");
    }
}

#[test]
fn what_is_larger_than_the_queue_can_be_said_alone() {
    let (voice, commands) = ConversationHandle::new(4);
    assert_eq!(said(&voice, 1 << 20), 1);
    assert!(commands.try_command().is_some());
    assert_eq!((said(&voice, 1 << 20), said(&voice, 0)), (1, 0));
}
