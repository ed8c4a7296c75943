//! Commands: what somebody on this side wants the conversation to do, until the driver accepts it.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use trunkline_proto::{
    Ask, CallError, CallKey, Change, HandlerEvent, Input, PeerNotification, Ticket,
};
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::Object;
use trunkline_wire::method::Method;

use super::Listener;

/// What somebody on this side wants the conversation to do.
#[derive(Debug)]
pub(crate) enum Command {
    Say(CallKey, HandlerEvent),
    Ask(Ask, Reply),
    Change(Change),
    Notify(Method, Object),
}

impl Command {
    /// About how many bytes it has.
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

    /// Nobody will accept it: whoever asks learns that the call was not made.
    pub(crate) fn refuse(self) {
        if let Self::Ask(_, reply) = self {
            let _ = reply.outcome.send(Err(over()));
        }
    }
}

/// What does not wait until the peer reads again.
#[derive(Debug)]
pub(crate) enum Urgent {
    Cancel(Ticket),
    Close,
}

/// Where the outcome of a call of ours goes, and what is heard about it until then.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) outcome: oneshot::Sender<Result<Json, CallError>>,
    pub(crate) heard: Option<mpsc::Sender<PeerNotification>>,
    pub(crate) listener: Option<Arc<dyn Listener>>,
}

/// Our calls that have no outcome yet, and who waits for each.
#[derive(Debug, Default)]
pub(crate) struct Asked(Vec<(Ticket, Reply)>);

impl Asked {
    /// What to tell the conversation; nothing if whoever asked has given up before the question was
    /// out.
    pub(crate) fn accept(&mut self, command: Command) -> Option<Input> {
        Some(match command {
            Command::Ask(_, reply) if reply.outcome.is_closed() => return None,
            Command::Say(call, what) => Input::Said { call, what },
            Command::Change(change) => Input::Changed(change),
            Command::Notify(method, params) => Input::Notify { method, params },
            Command::Ask(ask, reply) => {
                self.0.push((ask.ticket, reply));
                Input::Ask(ask)
            }
        })
    }

    /// How many answers are awaited.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn settle(&mut self, ticket: Ticket, outcome: Result<Json, CallError>) {
        if let Some(reply) = self.forget(ticket) {
            // Whoever asked may have given up meanwhile.
            let _ = reply.outcome.send(outcome);
        }
    }

    pub(crate) fn forget(&mut self, ticket: Ticket) -> Option<Reply> {
        let at = self.0.iter().position(|(it, _)| *it == ticket)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Tells whoever waits for the call it is about. Gives back what the handler has to hear.
    pub(crate) fn deliver(&self, heard: PeerNotification) -> Option<PeerNotification> {
        let owner = self.0.iter().find(|(ticket, _)| heard.ticket == Some(*ticket));
        let Some((_, reply)) = owner else { return Some(heard) };
        if let Some(listener) = &reply.listener {
            listener.hear(heard);
            return None;
        }
        let Some(heard_by) = &reply.heard else { return Some(heard) };
        // What is logged during a call is for those who listen to the whole conversation as well.
        let everyone = (heard.method == Method::Message).then(|| heard.clone());
        // When it is full, what comes then is dropped.
        let _ = heard_by.try_send(heard);
        everyone
    }
}

/// Why a call was not made.
pub(super) fn over() -> CallError {
    CallError::Unreachable("the connection is closed.".to_owned())
}
