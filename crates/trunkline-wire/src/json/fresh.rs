//! A short text that was written just now. Nearly all of them are sent and forgotten at once, so the next one of the
//! thread is written into the same memory.

use std::cell::Cell;

/// A text, in room that is left to the next one when it is dropped.
// Invariant: `Some` until this is dropped.
pub(super) struct Fresh(Option<Box<Room>>);

/// The memory of one text after another. Boxed, so that a text which has it is no larger than others.
#[derive(Default)]
struct Room {
    text: String,
}

impl Fresh {
    /// The text that `write` appends, which is UTF-8.
    pub(super) fn write(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut room = ROOM.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let mut out = std::mem::take(&mut room.text).into_bytes();
        write(&mut out);
        room.text = String::from_utf8(out).expect("JSON is written from UTF-8 pieces");
        Self(Some(room))
    }

    pub(super) fn get(&self) -> &str {
        self.0.as_ref().map_or("", |it| &it.text)
    }

    pub(super) fn into_string(mut self) -> String {
        self.0.take().map(|it| it.text).unwrap_or_default()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let Some(mut room) = self.0.take().filter(|it| it.text.capacity() <= MOST) else { return };
        room.text.clear();
        // A thread that ends leaves nothing to another text.
        let _ = ROOM.try_with(|it| it.set(Some(room)));
    }
}

thread_local! {
    /// The room of the last text of this thread that was dropped.
    static ROOM: Cell<Option<Box<Room>>> = const { Cell::new(None) };
}

/// The most bytes that are left to the next text.
const MOST: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Fresh {
        Fresh::write(|out| out.extend_from_slice(text.as_bytes()))
    }

    #[test]
    fn a_text_has_the_room_of_the_one_before() {
        let first = written("\"first\"");
        let place = first.get().as_ptr();
        let meanwhile = written("2");
        assert_ne!(meanwhile.get().as_ptr(), place, "that room is taken");
        drop(meanwhile);
        drop(first);
        let next = written("\"next\"");
        assert_eq!((next.get(), next.get().as_ptr()), ("\"next\"", place));
    }

    #[test]
    fn long_room_is_not_left_to_short_texts() {
        drop(written(&"x".repeat(MOST + 1)));
        assert!(written("1").into_string().capacity() <= MOST);
    }
}
