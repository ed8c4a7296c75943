//! Things with names, in the order they were registered, found by name, handed out in pages.

use std::collections::HashMap;

use trunkline_wire::jsonrpc::ErrorObject;

/// What can be listed.
pub(crate) trait Entry {
    /// What it is found by.
    fn key(&self) -> &str;
}

pub(crate) struct Named<T> {
    entries: Vec<T>,
    index: HashMap<String, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: HashMap::new() }
    }
}

impl<T: Entry> Named<T> {
    /// Adds an entry; a later one of the same name replaces the earlier.
    pub(crate) fn add(&mut self, entry: T) {
        match self.index.get(entry.key()) {
            Some(at) => self.entries[*at] = entry,
            None => {
                self.index.insert(entry.key().to_owned(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    pub(crate) fn get(&self, at: usize) -> &T {
        &self.entries[at]
    }

    pub(crate) fn find(&self, name: &str) -> Option<&T> {
        self.position(name).map(|at| &self.entries[at])
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.entries
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// One page of `items`: those after `cursor`, and the cursor of the next page.
pub(crate) fn page<'a, T>(
    items: &'a [T],
    cursor: Option<&str>,
    size: usize,
) -> Result<(&'a [T], Option<String>), ErrorObject> {
    let from = match cursor {
        None => 0,
        Some(cursor) => cursor
            .strip_prefix(CURSOR)
            .and_then(|it| it.parse::<usize>().ok())
            .filter(|from| *from > 0 && *from < items.len())
            .ok_or_else(|| ErrorObject::invalid_params("The cursor is not one of this list."))?,
    };
    let end = (from + size).min(items.len());
    let next = (end < items.len()).then(|| format!("{CURSOR}{end}"));
    Ok((&items[from..end], next))
}

const CURSOR: &str = "after-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_everything_once() {
        let items: Vec<_> = (0..7).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (part, next) = page(&items, cursor.as_deref(), 3).unwrap();
            seen.extend_from_slice(part);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, items);
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        for cursor in ["", "3", "after-0", "after-7", "after--1", "after-x"] {
            assert!(page(&[0; 7], Some(cursor), 3).is_err(), "{cursor}");
        }
    }
}
