//! What is known of one call, where a plain one has all its places.

use std::time::Instant;

use super::{Head, More, Sends};
use crate::outcome::Outcome;
use crate::traffic::call_log::{Ended, Place};
use crate::traffic::kept_message::Form;

/// A call, and how much is known of it; or the room for one.
#[derive(Debug)]
pub(super) struct Slot {
    /// The number of the call; `NOBODYS` if there is none.
    pub(super) number: u64,
    /// `None` if there is no call.
    pub(super) head: Option<Head>,
    /// The first messages, as many as there are, and then perhaps some of a call before.
    pub(super) said: [Option<Noted>; PLAIN],
    pub(super) sends: Option<(Instant, Sends)>,
    pub(super) ends: End,
    /// What has no place above, all of which was there before.
    pub(super) more: Option<Box<More>>,
    /// The messages that are in a file.
    pub(super) written: u32,
    /// How many of the first messages there are.
    pub(super) count: u8,
    /// How many of them came before it was sent and before it ended.
    pub(super) sent_after: u8,
    pub(super) ended_after: u8,
    pub(super) keeps: bool,
    /// Whether messages are kept and the next one has its place among the first, if that is free.
    pub(super) is_plain: bool,
    pub(super) has_ended: bool,
    /// It has ended, and its caller does not come back.
    pub(super) is_over: bool,
}

/// How a call ended, for the first time.
#[derive(Debug, Default)]
pub(super) enum End {
    #[default]
    NotYet,
    /// Well, at the moment of its answer, which is the message of index `ended_after`.
    Answered,
    At(Instant, Ended),
}

/// A message: so many bytes in a piece, or if nothing is kept of it, its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    pub(super) at: Instant,
    pub(super) form: Form,
    pub(super) place: Place,
    pub(super) piece: u32,
    pub(super) start: u32,
    pub(super) length: u32,
}

impl Noted {
    pub(super) fn size(&self) -> u32 {
        self.length.saturating_add(self.form.around())
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            number: NOBODYS,
            head: None,
            said: Default::default(),
            sends: None,
            ends: End::NotYet,
            more: None,
            written: 0,
            count: 0,
            sent_after: 0,
            ended_after: 0,
            keeps: false,
            is_plain: false,
            has_ended: false,
            is_over: false,
        }
    }
}

impl Slot {
    /// A call begins, whose messages are kept, or only their sizes.
    #[inline(always)]
    pub(super) fn begins(&mut self, head: impl FnOnce() -> Head, keeps: bool) {
        self.head = Some(head());
        (self.keeps, self.is_plain) = (keeps, keeps);
    }

    /// Forgets the call: what it had beside its places, if anything.
    #[inline]
    pub(super) fn empty(&mut self) -> Option<Box<More>> {
        self.number = NOBODYS;
        (self.head, self.sends, self.ends) = (None, None, End::NotYet);
        (self.written, self.count, self.has_ended, self.is_over) = (0, 0, false, false);
        self.more.take()
    }

    #[inline(always)]
    pub(super) fn ends(&mut self, at: Instant, ended: Ended) {
        (self.has_ended, self.is_over) = (true, ended.outcome != Outcome::Asked);
        self.ended_after = self.count;
        self.ends = End::At(at, ended);
    }

    /// It ends well with the answer that comes after so many messages.
    #[inline(always)]
    pub(super) fn ends_with_answer(&mut self, ended_after: u8) {
        (self.has_ended, self.is_over) = (true, true);
        self.ended_after = ended_after;
        self.ends = End::Answered;
    }

    /// Its first end.
    pub(super) fn end(&self) -> Option<(Instant, Ended)> {
        match self.ends {
            End::NotYet => None,
            End::Answered => {
                let answer = self.first().nth(usize::from(self.ended_after))?;
                Some((answer.at, Ended::well(self.head.as_ref()?.id)))
            }
            End::At(at, ended) => Some((at, ended)),
        }
    }

    /// The first messages.
    pub(super) fn first(&self) -> impl Iterator<Item = &Noted> {
        self.said.iter().take(usize::from(self.count)).flatten()
    }

    /// How many messages there are, and the bytes of those that are kept.
    pub(super) fn size(&self) -> (u32, usize) {
        let first: usize = self.first().map(|it| it.length as usize).sum();
        let (said, kept) = self.more.as_ref().map_or((0, 0), |it| (it.said, it.kept));
        (u32::from(self.count) + said, first + kept)
    }
}

/// The number of no call. It is not 0, which says elsewhere that there is none.
const NOBODYS: u64 = u64::MAX;
/// The messages of a plain call.
const PLAIN: usize = 4;
