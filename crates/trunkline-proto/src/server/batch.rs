//! Batches, which 2025-03-26 must accept: each request is answered by itself, and the responses are
//! sent together after the last.

use std::time::Instant;

use trunkline_wire::era::Batch;
use trunkline_wire::jsonrpc::{ErrorObject, Malformed, MalformedKind, Message};

use super::Server;
use super::shared::From;
use crate::queue::Queue;
use crate::{Outgoing, Output, RequestStream};

pub(super) type BatchId = u32;

#[derive(Debug, Default)]
pub(super) struct Batches {
    open: Vec<OpenBatch>,
    next: BatchId,
}

#[derive(Debug)]
struct OpenBatch {
    id: BatchId,
    via: RequestStream,
    missing: usize,
    replies: Vec<Message>,
    /// The total length of the responses, and its bound.
    bytes: usize,
    most: usize,
}

impl Batches {
    fn open(&mut self, via: RequestStream, missing: usize, most: usize) -> BatchId {
        self.next += 1;
        self.open.push(OpenBatch {
            id: self.next,
            via,
            missing,
            replies: Vec::new(),
            bytes: 0,
            most,
        });
        self.next
    }

    /// Adds one response, and sends the batch if it was the last.
    pub(super) fn add(&mut self, id: BatchId, message: Message, out: &mut Queue<Output>) {
        self.less(id, Some(message), out);
    }

    /// One response fewer will come: its call was cancelled.
    pub(super) fn forget(&mut self, id: BatchId, out: &mut Queue<Output>) {
        self.less(id, None, out);
    }

    fn less(&mut self, id: BatchId, message: Option<Message>, out: &mut Queue<Output>) {
        let Some(at) = self.open.iter().position(|it| it.id == id) else { return };
        let batch = &mut self.open[at];
        batch.missing -= 1;
        let message = message.map(|it| batch.bound(it));
        batch.replies.extend(message);
        if batch.missing == 0 {
            let OpenBatch { via, replies, .. } = self.open.remove(at);
            out.push_back(match replies.is_empty() {
                true => Output::NoReply(via),
                false => Output::Send(Outgoing::Batch(replies), Some(via)),
            });
        }
    }
}

impl OpenBatch {
    /// Bounds the total length: a short batch can ask for a hundred long results at once. Beyond the
    /// bound, a response says only that there is a result. The first result may have any length.
    fn bound(&mut self, message: Message) -> Message {
        let Message::Response { id, outcome: Ok(result) } = message else { return message };
        let long = self.bytes + result.get().len();
        if long <= self.most || self.bytes == 0 {
            self.bytes = long;
            return Message::Response { id, outcome: Ok(result) };
        }
        let told = "The request was carried out, but the answers of its batch are too long together. Make \
                    such requests one by one.";
        Message::Response { id, outcome: Err(ErrorObject::internal("batch_too_long", told)) }
    }
}

impl Server {
    pub(super) fn on_batch(
        &mut self,
        items: Vec<Result<Message, Malformed>>,
        via: RequestStream,
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
            self.shared.out.push_back(Output::NoReply(via));
        }
        let most = self.shared.config.bounds.batch_bytes;
        let batch = (missing > 0)
            .then(|| self.shared.batches.get_or_insert_default().open(via, missing, most));
        let from = From { via, batch };
        for item in items {
            match item {
                // Each message has its own era: the dialect may stand beside others.
                Ok(message) => self.on_message(message, from, None, now),
                Err(malformed) => self.on_malformed(malformed, from, now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_wire::json::Json;
    use trunkline_wire::jsonrpc::Id;

    use super::*;

    const MOST: usize = 1000;

    /// For responses of these lengths, whether each is sent in full.
    fn told(lengths: &[usize]) -> Vec<bool> {
        let (mut batches, mut out) = (Batches::default(), Queue::new());
        let id = batches.open(RequestStream(1), lengths.len(), MOST);
        for (number, length) in lengths.iter().enumerate() {
            let outcome = Ok(Json::string(&"x".repeat(length - 2)));
            let message = Message::Response { id: Some(Id::Number(number as i64)), outcome };
            batches.add(id, message, &mut out);
        }
        let Some(Output::Send(Outgoing::Batch(replies), _)) = out.pop_front() else {
            panic!("nothing is sent: {out:?}")
        };
        let is_told = |it: &Message| match it {
            Message::Response { outcome: Ok(_), .. } => true,
            Message::Response { outcome: Err(error), .. } => {
                assert!(error.message.contains("carried out"), "{error}");
                false
            }
            other => panic!("{other:?}"),
        };
        replies.iter().map(is_told).collect()
    }

    #[test]
    fn the_answers_of_a_batch_are_bounded_together_and_each_is_answered() {
        let half = MOST / 2;
        assert_eq!(told(&[half, half, 3, half]), [true, true, false, false]);
        assert_eq!(told(&[half, half - 3, 3]), [true; 3]);
        assert_eq!(told(&[2 * MOST, 3]), [true, false], "one may be of any length");
        assert_eq!(told(&[half, MOST, half]), [true, false, true], "a shorter one still fits");
    }
}
