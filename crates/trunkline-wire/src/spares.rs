//! The memory of long texts, which is used again: taking it anew, page by page, costs more than what is done with them.
//! This crate keeps none. Whoever does says so once, and must give it back to the system by itself.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// Who keeps the memory of long texts.
#[derive(Clone, Copy, Debug)]
pub struct Keeper {
    /// Gives an empty allocation of at least and at most so many bytes, if there is one.
    pub take: fn(usize, usize) -> Option<Vec<u8>>,
    /// Gets the allocation of a text that nobody needs any more.
    pub leave: fn(Vec<u8>),
}

/// From now on this one keeps them, unless there was one before.
pub fn keep_with(keeper: Keeper) {
    let _ = KEEPER.set(keeper);
}

/// An empty allocation of at least and at most so many bytes, if one was kept.
pub fn take(least: usize, most: usize) -> Option<Vec<u8>> {
    if least < LONG {
        return None;
    }
    let kept = (KEEPER.get()?.take)(least, most)?;
    debug_assert!(kept.is_empty());
    Some(kept)
}

/// The allocation of a text that nobody needs any more.
pub fn leave(text: Vec<u8>) {
    if text.capacity() >= LONG
        && let Some(keeper) = KEEPER.get()
    {
        (keeper.leave)(text);
    }
}

/// Makes room for `size` bytes in all: in an allocation that was kept and has so many bytes, or in its own.
pub fn grow(text: &mut Vec<u8>, size: usize, kept: RangeInclusive<usize>) {
    if size <= text.capacity() {
        return;
    }
    match take(*kept.start(), *kept.end()) {
        Some(mut kept) => {
            kept.extend_from_slice(text);
            *text = kept;
        }
        None => text.reserve_exact(size - text.len()),
    }
}

static KEEPER: OnceLock<Keeper> = OnceLock::new();

/// The shortest allocation that is worth keeping. What is shorter the allocator itself uses again.
const LONG: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::frame::Decoder;
    use crate::jsonrpc::Incoming;

    thread_local! {
        /// What is kept, for each test alone.
        static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    fn kept() -> Vec<*const u8> {
        KEPT.with_borrow(|it| it.iter().map(|it| it.as_ptr()).collect())
    }

    fn keep() {
        keep_with(Keeper {
            take: |least, most| {
                KEPT.with_borrow_mut(|kept| {
                    let fits = |it: &Vec<u8>| (least..=most).contains(&it.capacity());
                    kept.iter().position(fits).map(|at| kept.swap_remove(at))
                })
            },
            leave: |mut text| {
                text.clear();
                KEPT.with_borrow_mut(|kept| kept.push(text));
            },
        });
    }

    fn line(length: usize) -> Vec<u8> {
        let long = "x".repeat(length);
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"a\":\"{long}\"}}}}\n").into_bytes()
    }

    fn read(decoder: &mut Decoder, line: &[u8]) -> Incoming {
        for chunk in line.chunks(64 << 10) {
            assert!(decoder.next_message().is_none());
            decoder.push(chunk);
        }
        decoder.next_message().expect("the line is complete").expect("the framing is right")
    }

    #[test]
    fn a_long_line_is_read_into_the_memory_of_one_before() {
        keep();
        let mut decoder = Decoder::ndjson(4 << 20);
        let line = line(3 << 20);
        let first = read(&mut decoder, &line);
        assert!(kept().is_empty(), "it is in use");
        let Incoming::One(message) = &first else { panic!() };
        let copy = message.clone();
        drop(first);
        assert!(kept().is_empty(), "a copy shares it");
        drop(copy);
        let before = kept();
        assert_eq!(before.len(), 1);
        let second = read(&mut decoder, &line);
        assert!(kept().is_empty(), "it is used again");
        drop(second);
        assert_eq!(kept(), before);
    }

    #[test]
    fn a_long_text_that_is_no_message_leaves_its_memory_as_well() {
        keep();
        let not_utf8 = [b"\"".to_vec(), vec![0xff; LONG]].concat();
        let batch = format!("[{}1]", "1,".repeat(LONG)).into_bytes();
        let many = format!("{{\"a\":[{}1]}}", "1,".repeat(LONG)).into_bytes();
        for (count, text) in [not_utf8, batch, many].into_iter().enumerate() {
            Incoming::take(text);
            assert_eq!(kept().len(), count + 1);
        }
        Incoming::take(b"{}".to_vec());
        assert_eq!(kept().len(), 3, "a short one is not worth it");
    }

    #[test]
    fn a_text_does_not_keep_much_more_memory_than_it_needs() {
        keep();
        leave(Vec::with_capacity(4 << 20));
        let mut decoder = Decoder::ndjson(4 << 20);
        let message = read(&mut decoder, &line(600 << 10));
        assert!(kept().is_empty(), "it was read into what was kept");
        drop(message);
        let left = KEPT.with_borrow(|it| it.iter().map(Vec::capacity).collect::<Vec<_>>());
        assert!(matches!(left[..], [capacity] if capacity < 700 << 10), "{left:?}");
    }
}
