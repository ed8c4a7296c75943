//! What happens to recorded calls, in the order in which it happens.
//!
//! The texts of messages are copied one behind the other into pieces of memory, so that nothing of a call has to stay
//! where it was. What a plain call consists of (a request, its way to a server, two answers) has its place in the call's
//! slot; whatever is more gets memory of its own. A call is put together when somebody looks ([`CallLog`]). The oldest
//! piece makes way as a whole, and with it the calls that may have something in it.

mod calls;
mod slot;
mod what;

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use trunkline_recording::line::Direction;

use super::CallEntry;
use super::call_log::{CallLog, Ended, Place, Said};
use super::kept_message::{Form, Heard, KeptText, LARGEST};
use crate::outcome::Outcome;
use calls::Calls;
use slot::{End, Noted, Slot};
pub(crate) use what::{Head, Sends, What};

/// The last calls, bounded by count and by bytes.
#[derive(Debug)]
pub(crate) struct Journal {
    /// The piece that is written to, how much of it is used, and its number.
    texts: Vec<u8>,
    used: usize,
    piece: u32,
    /// Those before it, the oldest first.
    older: VecDeque<Piece>,
    /// A piece that made way, to be used again.
    spare: Vec<u8>,
    calls: Calls,
    most: usize,
    keep: usize,
    /// The texts of a piece, unless one is longer.
    most_texts: usize,
    /// The memory of all calls and pieces.
    bytes: usize,
    /// How many calls made way.
    dropped: u64,
    /// Which call a name belongs to, such as the digest of a `requestState`.
    names: HashMap<u64, u64>,
}

/// Some memory that is full of texts, and makes way as a whole.
#[derive(Debug)]
struct Piece {
    texts: Vec<u8>,
    /// The newest call that can have something in it.
    newest: u64,
}

/// What there is of a call beside its first messages, and how much of its bounds it has used.
#[derive(Debug, Default)]
struct More {
    events: Vec<(Instant, Event)>,
    names: Vec<u64>,
    has_target: bool,
    /// Messages among the events, and the rest.
    said: u32,
    steps: u32,
    /// The rounds after that, and the last end.
    rounds: u32,
    ends: Option<(Instant, Ended)>,
    /// The bytes of kept messages among them.
    kept: usize,
    /// Messages that were too many or too large to keep, and the bytes of those of which nothing is known.
    left_out: u32,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Debug)]
enum Event {
    Says(Noted),
    Happens(What),
}

impl Journal {
    /// At most about `most` calls, and no more than about `keep` bytes.
    pub(crate) fn new(most: usize, keep: usize) -> Self {
        let (older, names) = Default::default();
        let mut journal = Self {
            texts: Vec::new(),
            used: 0,
            piece: 0,
            older,
            spare: Vec::new(),
            calls: Calls::default(),
            most,
            keep,
            most_texts: 0,
            bytes: 0,
            dropped: 0,
            names,
        };
        journal.keep(keep);
        journal
    }

    /// Changes the bound on bytes.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.keep = bytes;
        self.most_texts = (bytes / PIECES).clamp(SMALLEST, TEXTS);
        self.make_way();
        self.calls.have_room_for((bytes / size_of::<Slot>()).min(self.most) + BATCH);
    }

    /// The number of the next call.
    #[inline]
    pub(crate) fn next_number(&self) -> u64 {
        self.calls.next()
    }

    /// A call begins, which has the next number; its messages are kept, or only their sizes.
    pub(crate) fn begin(&mut self, head: Head, keeps: bool) -> u64 {
        let number = self.next_number();
        self.have_room_for_a_call();
        self.calls.add().begins(|| head, keeps);
        number
    }

    /// The same with its first message.
    #[inline(always)]
    pub(crate) fn begin_with(
        &mut self,
        head: impl FnOnce() -> Head,
        keeps: bool,
        (place, at, text): (Place, Instant, &str),
    ) {
        let (number, bytes) = (self.next_number(), text.as_bytes());
        self.have_room_for_a_call();
        let slot = self.calls.add();
        slot.begins(head, keeps);
        let (piece, start, length) = (self.piece, self.used, bytes.len() as u32);
        if let (true, Some(room)) = (keeps, room_for(&mut self.texts, start, bytes.len())) {
            let form = Form::Text;
            slot.said[0] = Some(Noted { at, form, place, piece, start: start as u32, length });
            slot.count = 1;
            self.used = start + bytes.len();
            room.copy_from_slice(bytes);
        } else {
            self.say(number, place, at, Heard::text(bytes));
        }
    }

    #[inline(always)]
    fn have_room_for_a_call(&mut self) {
        if self.calls.is_full() {
            self.make_room_for_calls();
        }
        self.bytes += size_of::<Slot>();
    }

    /// A call reaches an instance.
    #[inline(always)]
    pub(crate) fn sends(&mut self, number: u64, at: Instant, sends: impl FnOnce() -> Sends) {
        match self.calls.get_mut(number) {
            Some(slot) if slot.sends.is_none() && slot.more.is_none() && !slot.has_ended => {
                slot.sent_after = slot.count;
                slot.sends = Some((at, sends()));
            }
            _ => self.note_more(number, at, What::Sends(sends())),
        }
    }

    /// A call ends, or its round does.
    pub(crate) fn ends(&mut self, number: u64, at: Instant, ended: Ended) {
        match self.calls.get_mut(number) {
            Some(slot) if slot.more.is_none() && matches!(slot.ends, End::NotYet) => {
                slot.ends(at, ended);
            }
            _ => self.note_more(number, at, What::Ends(ended)),
        }
    }

    /// A call that has not ended before ends at this moment. Returns whether it is such a call.
    #[cold]
    pub(crate) fn ends_first(&mut self, number: u64, at: Instant, outcome: Outcome) -> bool {
        let head = self.calls.get(number).filter(|it| !it.has_ended);
        let Some(head) = head.and_then(|it| it.head.as_ref()) else { return false };
        let ended = Ended { outcome, ..Ended::well(head.id) };
        self.ends(number, at, ended);
        true
    }

    /// Something happens to a call.
    pub(crate) fn note(&mut self, number: u64, at: Instant, what: What) {
        match what {
            What::Sends(sends) => self.sends(number, at, || sends),
            What::Ends(ended) => self.ends(number, at, ended),
            what => self.note_more(number, at, what),
        }
    }

    #[cold]
    fn note_more(&mut self, number: u64, at: Instant, what: What) {
        let Some(slot) = self.calls.get_mut(number) else { return };
        match &what {
            What::Ends(ended) => {
                (slot.has_ended, slot.is_over) = (true, ended.outcome != Outcome::Asked);
            }
            What::Returns => (slot.has_ended, slot.is_over) = (false, false),
            _ => {}
        }
        let Some(more) = self.more(number) else { return };
        more.has_target |= matches!(what, What::Sends(_) | What::IsWith { .. });
        if more.steps < MOST_STEPS {
            more.steps += 1;
            return self.push(number, at, Event::Happens(what));
        }
        // Of a task that is polled for hours, this much is still right.
        match what {
            What::Returns => more.rounds += 1,
            What::Ends(ended) => more.ends = Some((at, ended)),
            _ => {}
        }
    }

    /// A message. Returns whether the call had ended before.
    #[inline(always)]
    pub(crate) fn say(&mut self, number: u64, place: Place, at: Instant, heard: Heard<'_>) -> bool {
        let Heard { form, bytes, left_out } = heard;
        match self.say_plain(number, (place, at), form, bytes, left_out, false) {
            Some(has_ended) => has_ended,
            None => self.say_other(number, (place, at), form, bytes, left_out),
        }
    }

    /// The answer to its caller. With it a call ends well that has not ended before.
    #[inline(always)]
    pub(crate) fn answer(&mut self, number: u64, place: Place, at: Instant, heard: Heard<'_>) {
        let Heard { form, bytes, left_out } = heard;
        if self.say_plain(number, (place, at), form, bytes, left_out, true).is_none() {
            self.ends_first(number, at, Outcome::Ok);
            self.say_other(number, (place, at), form, bytes, left_out);
        }
    }

    /// A message that has its place among the first ones and in the piece that is written to: whether the call had
    /// ended before. `None` for any other message, of which nothing has been noted.
    #[inline(always)]
    fn say_plain(
        &mut self,
        number: u64,
        (place, at): (Place, Instant),
        form: Form,
        bytes: &[u8],
        left_out: u32,
        is_answer: bool,
    ) -> Option<bool> {
        let slot = self.calls.get_mut(number)?;
        let start = self.used;
        let room = room_for(&mut self.texts, start, bytes.len())?;
        if !slot.is_plain || left_out > 0 {
            return None;
        }
        let count = slot.count;
        let free = slot.said.get_mut(usize::from(count))?;
        let (piece, length) = (self.piece, bytes.len() as u32);
        *free = Some(Noted { at, form, place, piece, start: start as u32, length });
        slot.count = count + 1;
        self.used = start + bytes.len();
        if is_answer && !slot.has_ended {
            slot.ends_with_answer(count);
        }
        let has_ended = slot.has_ended;
        room.copy_from_slice(bytes);
        Some(has_ended)
    }

    // Its parts one by one: a plain message would be put together for it, and then not be needed.
    #[cold]
    fn say_other(
        &mut self,
        number: u64,
        (place, at): (Place, Instant),
        form: Form,
        bytes: &[u8],
        left_out: u32,
    ) -> bool {
        let Some(slot) = self.calls.get(number) else { return false };
        let heard = Heard { form, bytes, left_out };
        // No piece is larger than the largest message that is kept.
        let has_room = room_for(&mut self.texts, self.used, bytes.len()).is_some();
        if has_room || !slot.keeps || heard.length() > LARGEST {
            return self.say_more(number, place, at, heard);
        }
        self.add_piece(bytes.len());
        self.say(number, place, at, heard)
    }

    #[cold]
    fn say_more(&mut self, number: u64, place: Place, at: Instant, heard: Heard<'_>) -> bool {
        let Heard { form, bytes, .. } = heard;
        let (piece, start) = (self.piece, self.used as u32);
        let Some(slot) = self.calls.get_mut(number) else { return false };
        let ((said, kept), has_ended) = (slot.size(), slot.has_ended);
        let (keeps, counts) = (slot.keeps, slot.head.as_ref().map(|it| it.counts));
        let length = u32::try_from(heard.length()).unwrap_or(u32::MAX);
        let size = length.saturating_add(form.around());
        let Some(more) = self.more(number) else { return false };
        if said >= MOST_MESSAGES {
            more.left_out += 1;
            match place {
                (side, _) if Some(side) != counts => {}
                (_, Direction::In) => more.bytes_in += u64::from(size),
                (_, Direction::Out) => more.bytes_out += u64::from(size),
            }
            return has_ended;
        }
        more.said += 1;
        let takes = keeps && heard.length() <= LARGEST && kept + bytes.len() <= MOST_KEPT;
        let noted = match takes {
            true => {
                more.kept += bytes.len();
                if let Some(room) = room_for(&mut self.texts, self.used, bytes.len()) {
                    room.copy_from_slice(bytes);
                    self.used += bytes.len();
                }
                Noted { at, form, place, piece, start, length }
            }
            false => {
                more.left_out += u32::from(keeps);
                Noted { at, form: form.of_nothing(), place, piece, start, length: size }
            }
        };
        self.push(number, at, Event::Says(noted));
        has_ended
    }

    fn push(&mut self, number: u64, at: Instant, event: Event) {
        let Some(more) = self.more(number) else { return };
        let room = more.events.capacity();
        more.events.push((at, event));
        self.bytes += (more.events.capacity() - room) * size_of::<(Instant, Event)>();
        self.make_way();
    }

    /// What there is of a call beside its first messages, from now on.
    fn more(&mut self, number: u64) -> Option<&mut More> {
        let slot = self.calls.get_mut(number)?;
        slot.is_plain = false;
        Some(slot.more.get_or_insert_with(|| {
            self.bytes += size_of::<More>();
            Box::default()
        }))
    }

    /// The caller of this call may come back under this name.
    pub(crate) fn name(&mut self, number: u64, name: u64) {
        let Some(more) = self.more(number) else { return };
        if more.names.len() < MOST_NAMES {
            more.names.push(name);
            self.names.insert(name, number);
        }
    }

    /// The call of this name.
    pub(crate) fn named(&self, name: u64) -> Option<u64> {
        self.names.get(&name).copied()
    }

    /// Whether more can be said in an entry, and be found.
    pub(crate) fn has_room_in(&self, number: u64) -> bool {
        let (said, kept) = self.calls.get(number).map_or((MOST_MESSAGES, 0), Slot::size);
        said < MOST_MESSAGES && kept < MOST_KEPT / 2
    }

    /// Whether a call has ended; `None` if it has made way.
    pub(crate) fn has_ended(&self, number: u64) -> Option<bool> {
        self.calls.get(number).map(|it| it.has_ended)
    }

    /// Whether a call has ended and its caller does not come back, or it has made way.
    pub(crate) fn is_over(&self, number: u64) -> bool {
        self.calls.get(number).is_none_or(|it| it.is_over)
    }

    /// Whether something has said what a call is about.
    pub(crate) fn has_target(&self, number: u64) -> bool {
        let says =
            |it: &Slot| it.sends.is_some() || it.more.as_ref().is_some_and(|it| it.has_target);
        self.calls.get(number).is_some_and(says)
    }

    /// The calls there are.
    pub(crate) fn numbers(&self) -> std::ops::Range<u64> {
        self.calls.numbers()
    }

    /// The newest call of which this is true.
    pub(crate) fn number_of(&self, is_it: impl Fn(&Head) -> bool) -> Option<u64> {
        self.numbers().rev().find(|it| self.head(*it).is_some_and(&is_it))
    }

    /// What is known of a call from its beginning.
    pub(crate) fn head(&self, number: u64) -> Option<&Head> {
        self.calls.get(number)?.head.as_ref()
    }

    /// How many calls made way.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many calls there are, and the bytes that they take.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.calls.len(), self.bytes)
    }

    /// A call, put together; with the texts of its messages but the first so many, or without any.
    pub(crate) fn entry(&self, number: u64, texts_from: Option<usize>) -> Option<CallEntry> {
        let slot = self.calls.get(number)?;
        let head = slot.head.as_ref()?;
        let mut log = CallLog::new(head.began, head.is_call);
        log.keeps = slot.keeps;
        let hear = |log: &mut CallLog, noted: &Noted| {
            let is_wanted = texts_from.is_some_and(|from| log.said.len() >= from);
            let text = if is_wanted { self.text(noted) } else { None };
            let ((side, direction), size) = (noted.place, noted.size());
            match direction {
                _ if side != head.counts => {}
                Direction::In => log.bytes_in += u64::from(size),
                Direction::Out => log.bytes_out += u64::from(size),
            }
            log.hear(noted.place, noted.at, noted.form.is_result());
            let at = log.after(noted.at);
            log.said.push(Said { at, side, direction, size: size as usize, text });
        };
        for after in 0..=slot.count {
            if let Some((at, sends)) = slot.sends.as_ref().filter(|_| slot.sent_after == after) {
                log.sends(*at, sends);
            }
            if let Some((at, ended)) = slot.end().filter(|_| slot.ended_after == after) {
                log.ends(at, ended);
            }
            if let Some(noted) = slot.first().nth(usize::from(after)) {
                hear(&mut log, noted);
            }
        }
        if let Some(more) = &slot.more {
            for (at, event) in &more.events {
                match event {
                    Event::Says(noted) => hear(&mut log, noted),
                    Event::Happens(what) => log.apply(*at, what),
                }
            }
            log.left_out = more.left_out;
            log.bytes_in += more.bytes_in;
            log.bytes_out += more.bytes_out;
            log.rounds += more.rounds;
            if more.rounds > 0 || more.ends.is_some() {
                log.ended = more.ends.filter(|_| slot.has_ended);
            }
        }
        Some(CallEntry { number, head: head.clone(), log })
    }

    /// A call with those of its messages that are in no file yet, which they are from now on, and how many were before.
    pub(crate) fn unwritten(&mut self, number: u64) -> Option<(CallEntry, usize)> {
        let from = self.calls.get(number)?.written as usize;
        let entry = self.entry(number, Some(from))?;
        self.calls.get_mut(number)?.written = entry.log.said.len() as u32;
        Some((entry, from))
    }

    fn text(&self, noted: &Noted) -> Option<KeptText> {
        let before = self.piece.wrapping_sub(noted.piece) as usize;
        let texts = match before {
            0 => &self.texts,
            _ => &self.older.get(self.older.len().checked_sub(before)?)?.texts,
        };
        let (start, length) = (noted.start as usize, noted.length as usize);
        let bytes = texts.get(start..start + length)?;
        Heard { form: noted.form, ..Heard::text(bytes) }.to_kept()
    }

    #[cold]
    fn add_piece(&mut self, bytes: usize) {
        let (mut texts, size) = (std::mem::take(&mut self.spare), bytes.max(self.most_texts));
        if texts.len() < size {
            // Memory that comes as zeros costs nothing until it is used.
            texts = vec![0; size];
        }
        self.bytes += texts.capacity();
        let full = std::mem::replace(&mut self.texts, texts);
        self.used = 0;
        if full.capacity() > 0 {
            self.older.push_back(Piece { texts: full, newest: self.next_number() - 1 });
            self.piece = self.piece.wrapping_add(1);
        }
        self.make_way();
    }

    /// Lets the oldest calls make way if there are too many.
    #[cold]
    fn make_room_for_calls(&mut self) {
        self.drop_calls(self.calls.numbers().start + BATCH as u64 - 1);
        while self.older.front().is_some_and(|it| it.newest < self.calls.numbers().start) {
            self.drop_piece();
        }
        self.make_way();
    }

    /// Drops the oldest pieces and calls until the rest fits.
    fn make_way(&mut self) {
        while self.bytes > self.keep {
            match self.older.front() {
                Some(piece) => {
                    self.drop_calls(piece.newest);
                    self.drop_piece();
                }
                None if self.calls.len() > 1 => self.drop_calls(self.calls.numbers().start),
                None => return,
            }
        }
    }

    /// Drops the oldest calls, up to this one.
    fn drop_calls(&mut self, newest: u64) {
        let before = self.calls.len();
        while self.calls.len() > 0 && self.calls.numbers().start <= newest {
            if let Some(more) = self.calls.remove_oldest() {
                self.bytes -= size_of::<More>();
                self.bytes -= more.events.capacity() * size_of::<(Instant, Event)>();
                for name in &more.names {
                    self.names.remove(name);
                }
            }
        }
        let count = before - self.calls.len();
        self.bytes -= count * size_of::<Slot>();
        self.dropped += count as u64;
    }

    /// Drops the oldest piece.
    fn drop_piece(&mut self) {
        let Some(Piece { texts, .. }) = self.older.pop_front() else { return };
        self.bytes -= texts.capacity();
        // One that held a long text is too large to be used again.
        if texts.len() <= self.most_texts {
            self.spare = texts;
        }
    }
}

/// The next so many bytes of a piece, if it has them.
#[inline(always)]
fn room_for(texts: &mut [u8], used: usize, bytes: usize) -> Option<&mut [u8]> {
    texts.get_mut(used..)?.get_mut(..bytes)
}

/// How many calls make way at once, for those that are too many.
pub(super) const BATCH: usize = 64;
/// How many names a call may have: rounds and tasks.
const MOST_NAMES: usize = 64;
/// The bounds of one call: events, messages, the bytes of one message and of all that are kept.
const MOST_STEPS: u32 = 128;
const MOST_MESSAGES: u32 = 512;
const MOST_KEPT: usize = 4 << 20;
/// The texts of a piece: those of some hundred short calls. An allocation of this size has pages of its own, and does not
/// stand in the way of others.
const TEXTS: usize = 256 << 10;
/// How many pieces there are at least if little may be kept, and the texts of one then.
const PIECES: usize = 16;
const SMALLEST: usize = 4 << 10;

#[cfg(test)]
mod tests;
