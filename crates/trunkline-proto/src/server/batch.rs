//! Arrays of messages, which 2025-03-26 must accept: each request answered for itself, the answers
//! sent together once the last is there.

use std::collections::VecDeque;
use std::time::Instant;

use trunkline_wire::era::Batch;
use trunkline_wire::jsonrpc::{Malformed, MalformedKind, Message};

use super::Server;
use super::shared::From;
use crate::{Outgoing, Output, Via};

pub(super) type BatchId = u32;

#[derive(Debug, Default)]
pub(super) struct Batches {
    open: Vec<OpenBatch>,
    next: BatchId,
}

#[derive(Debug)]
struct OpenBatch {
    id: BatchId,
    via: Via,
    missing: usize,
    replies: Vec<Message>,
}

impl Batches {
    fn open(&mut self, via: Via, missing: usize) -> BatchId {
        self.next += 1;
        self.open.push(OpenBatch { id: self.next, via, missing, replies: Vec::new() });
        self.next
    }

    /// Takes one answer in, and sends them all if it was the last.
    pub(super) fn add(&mut self, id: BatchId, message: Message, out: &mut VecDeque<Output>) {
        self.less(id, Some(message), out);
    }

    /// One answer fewer will come: its call was cancelled.
    pub(super) fn forget(&mut self, id: BatchId, out: &mut VecDeque<Output>) {
        self.less(id, None, out);
    }

    fn less(&mut self, id: BatchId, message: Option<Message>, out: &mut VecDeque<Output>) {
        let Some(at) = self.open.iter().position(|it| it.id == id) else { return };
        let batch = &mut self.open[at];
        batch.missing -= 1;
        batch.replies.extend(message);
        if batch.missing == 0 {
            let OpenBatch { via, replies, .. } = self.open.remove(at);
            out.push_back(match replies.is_empty() {
                true => Output::Quiet(via),
                false => Output::Send(Outgoing::Batch(replies), Some(via)),
            });
        }
    }
}

impl Server {
    pub(super) fn on_batch(
        &mut self,
        items: Vec<Result<Message, Malformed>>,
        via: Via,
        now: Instant,
    ) {
        let allowed = self.session.as_ref().is_some_and(|it| it.profile().batch != Batch::No);
        if !allowed || items.is_empty() || items.len() > self.shared.config.bounds.batch {
            let malformed = Malformed::new(MalformedKind::Batch);
            return self.on_malformed(malformed, From { via, batch: None }, now);
        }
        let answers = items.iter().filter(|it| match it {
            Ok(message) => matches!(message, Message::Request { .. }),
            Err(malformed) => !malformed.is_response && !malformed.is_notification,
        });
        let missing = answers.count();
        if missing == 0 {
            self.shared.out.push_back(Output::Quiet(via));
        }
        let batch = (missing > 0).then(|| self.shared.batches.open(via, missing));
        let from = From { via, batch };
        for item in items {
            match item {
                Ok(message) => self.on_message(message, from, now),
                Err(malformed) => self.on_malformed(malformed, from, now),
            }
        }
    }
}
