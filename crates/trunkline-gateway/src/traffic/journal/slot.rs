//! What is known of one call, where a plain one has all its places.

use std::time::Instant;

use super::{Head, More, Sends};
use crate::outcome::Outcome;
use crate::traffic::call_log::{Ended, Place};
use crate::traffic::kept_message::Form;

/// A call, and how much is known of it; or the room for one.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// `None` if there is no call.
    pub(super) head: Option<Head>,
    /// The first messages.
    pub(super) said: [Option<Noted>; PLAIN],
    pub(super) sends: Option<(Instant, Sends)>,
    pub(super) ends: Option<(Instant, Ended)>,
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

impl Slot {
    #[inline(always)]
    pub(super) fn ends(&mut self, at: Instant, ended: Ended) {
        (self.has_ended, self.is_over) = (true, ended.outcome != Outcome::Asked);
        self.ended_after = self.count;
        self.ends = Some((at, ended));
    }

    /// How many messages there are, and the bytes of those that are kept.
    pub(super) fn size(&self) -> (u32, usize) {
        let first: usize = self.said.iter().flatten().map(|it| it.length as usize).sum();
        let (said, kept) = self.more.as_ref().map_or((0, 0), |it| (it.said, it.kept));
        (u32::from(self.count) + said, first + kept)
    }
}

/// The messages of a plain call.
const PLAIN: usize = 4;
