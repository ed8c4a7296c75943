//! Commands: what code on this side asks of the conversation, until the driver accepts it.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use trunkline_proto::{
    Ask, CallError, CallKey, Change, HandlerEvent, Input, PeerNotification, Ticket,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;

use super::Listener;

/// What code on this side asks of the conversation.
#[derive(Debug)]
pub(crate) enum Command {
    Say(CallKey, HandlerEvent),
    Ask(Ask, Reply),
    Change(Change),
    Notify(Method, Object),
}

impl Command {
    /// Its approximate size in bytes.
    pub(super) fn size(&self) -> usize {
        let of = |it: &Object| it.iter().map(|(name, value)| name.len() + value.get().len()).sum();
        match self {
            Self::Say(_, HandlerEvent::Log(log)) => log.data.get().len(),
            Self::Say(_, HandlerEvent::Progress(progress)) => {
                progress.message.as_ref().map_or(0, String::len)
            }
            Self::Say(_, HandlerEvent::Pause(_)) => 0,
            Self::Ask(ask, _) => of(&ask.params),
            Self::Change(Change::Resource(text) | Change::ElicitationComplete(text)) => text.len(),
            Self::Change(Change::Task(_, text)) => text.get().len(),
            Self::Change(Change::Tools | Change::Prompts | Change::Resources) => 0,
            Self::Notify(_, params) => of(params),
        }
    }

    /// Drops a command that no driver will accept. A caller that asked learns that its call was not
    /// made.
    pub(crate) fn refuse(self) {
        if let Self::Ask(_, reply) = self {
            let _ = reply.outcome.send(Err(over()));
        }
    }
}

/// What bypasses the queue, and so does not wait until the peer reads again.
#[derive(Debug)]
pub(crate) enum Urgent {
    Cancel(Ticket),
    Close,
}

/// Where the outcome of our call goes, and the notifications about it before that.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) outcome: oneshot::Sender<Result<Json, CallError>>,
    pub(crate) heard: Option<mpsc::Sender<PeerNotification>>,
    pub(crate) listener: Option<Arc<dyn Listener>>,
}

/// Our calls in flight, and who waits for each. Most end in the order in which they began: those are found at once.
#[derive(Debug, Default)]
pub(crate) struct Asked(VecDeque<(Ticket, Reply)>);

impl Asked {
    /// Turns a command into an input of the conversation; `None` if the caller gave up while the
    /// command was queued.
    pub(crate) fn accept(&mut self, command: Command) -> Option<Input> {
        Some(match command {
            Command::Ask(_, reply) if reply.outcome.is_closed() => return None,
            Command::Say(call, what) => Input::Said { call, what },
            Command::Change(change) => Input::Changed(change),
            Command::Notify(method, params) => Input::Notify { method, params },
            Command::Ask(ask, reply) => {
                self.0.push_back((ask.ticket, reply));
                Input::Ask(ask)
            }
        })
    }

    /// How many calls are in flight.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn settle(&mut self, ticket: Ticket, outcome: Result<Json, CallError>) {
        if let Some(reply) = self.forget(ticket) {
            // The caller may have given up meanwhile.
            let _ = reply.outcome.send(outcome);
        }
    }

    pub(crate) fn forget(&mut self, ticket: Ticket) -> Option<Reply> {
        let at = self.0.iter().position(|(it, _)| *it == ticket)?;
        self.0.remove(at).map(|(_, reply)| reply)
    }

    /// Delivers a notification to the caller of the call it is about. Returns what the handler must
    /// hear.
    pub(crate) fn deliver(&self, heard: PeerNotification) -> Option<PeerNotification> {
        let owner = self.0.iter().find(|(ticket, _)| heard.ticket == Some(*ticket));
        let Some((_, reply)) = owner else { return Some(heard) };
        if let Some(listener) = &reply.listener {
            listener.hear(heard);
            return None;
        }
        let Some(heard_by) = &reply.heard else { return Some(heard) };
        // Log messages during a call are also for the listeners of the whole conversation.
        let everyone = (heard.method == Method::Message).then(|| heard.clone());
        // When the channel is full, the notification is dropped.
        let _ = heard_by.try_send(heard);
        everyone
    }
}

/// The error of a call that was not made.
pub(super) fn over() -> CallError {
    CallError::Unreachable("the connection is closed.".to_owned())
}
