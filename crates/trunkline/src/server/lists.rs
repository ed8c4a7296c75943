//! Lists of named entries, in the order of registration, with pages; and registries of them that
//! change while they are read.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use trunkline_wire::jsonrpc::ErrorObject;

/// What can be listed.
pub(crate) trait Entry {
    /// Its name or URI.
    fn key(&self) -> &str;

    /// Whether it is hidden from some callers.
    fn is_hidden_from_some(&self) -> bool {
        false
    }
}

/// A list at one point in time.
pub(crate) struct List<T> {
    /// By number. Numbers grow and are never reused, so a cursor stays valid when its entry is
    /// removed.
    entries: Vec<(u64, Arc<T>)>,
    index: HashMap<String, u64>,
    last: u64,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: HashMap::new(), last: 0 }
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), index: self.index.clone(), last: self.last }
    }
}

impl<T: Entry> List<T> {
    /// Appends an entry, or replaces the one of its name.
    pub(crate) fn put(&mut self, entry: T) {
        let number = self.index.get(entry.key()).copied();
        match number.and_then(|it| self.place(it)) {
            Some(at) => self.entries[at].1 = Arc::new(entry),
            None => {
                self.last += 1;
                self.index.insert(entry.key().to_owned(), self.last);
                self.entries.push((self.last, Arc::new(entry)));
            }
        }
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<T>> {
        let number = self.index.remove(name)?;
        self.place(number).map(|at| self.entries.remove(at).1)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<T>> {
        // A few names are compared sooner than one is hashed.
        if self.entries.len() <= FEW {
            return self.iter().find(|it| it.key() == name);
        }
        self.place(*self.index.get(name)?).map(|at| &self.entries[at].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// One page of the visible entries after `cursor`, and the cursor of the next page.
    pub(crate) fn page(
        &self,
        cursor: Option<&str>,
        size: usize,
        may_see: impl Fn(&T) -> bool,
    ) -> Result<(Vec<&Arc<T>>, Option<String>), ErrorObject> {
        let after = match cursor {
            None => 0,
            Some(cursor) => {
                read(cursor).filter(|it| *it <= self.last).ok_or_else(unknown_cursor)?
            }
        };
        let from = self.entries.partition_point(|(number, _)| *number <= after);
        let mut seen = self.entries[from..].iter().filter(|(_, entry)| may_see(entry));
        let page: Vec<_> = seen.by_ref().take(size).collect();
        let next = page.last().filter(|_| seen.next().is_some());
        let next = next.map(|(number, _)| format!("{CURSOR}{number}"));
        Ok((page.into_iter().map(|(_, entry)| entry).collect(), next))
    }

    /// The index of an entry; entries are sorted by their numbers.
    fn place(&self, number: u64) -> Option<usize> {
        // Until something is removed, the number determines the index.
        let guess = usize::try_from(number).ok()?.checked_sub(1)?;
        if self.entries.get(guess).is_some_and(|(it, _)| *it == number) {
            return Some(guess);
        }
        self.entries.binary_search_by_key(&number, |(it, _)| *it).ok()
    }
}

/// A list that may change while it is read: a reader keeps the list it began with.
pub(crate) struct Registry<T>(RwLock<Arc<List<T>>>);

impl<T: Entry> Registry<T> {
    pub(crate) fn new(list: List<T>) -> Self {
        Self(RwLock::new(Arc::new(list)))
    }

    /// The list as it is now.
    pub(crate) fn now(&self) -> Arc<List<T>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<T>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).find(name).cloned()
    }

    /// Changes the list; later readers see the whole change.
    pub(crate) fn edit<R>(&self, change: impl FnOnce(&mut List<T>) -> R) -> R {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut list))
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
        Some(cursor) => read(cursor)
            .and_then(|it| usize::try_from(it).ok())
            .filter(|from| *from < items.len())
            .ok_or_else(unknown_cursor)?,
    };
    let end = (from + size).min(items.len());
    let next = (end < items.len()).then(|| format!("{CURSOR}{end}"));
    Ok((&items[from..end], next))
}

fn read(cursor: &str) -> Option<u64> {
    let number = cursor.strip_prefix(CURSOR)?;
    // Only in the form we issue: no sign, no leading zeros.
    let is_ours = number.bytes().all(|it| it.is_ascii_digit()) && !number.starts_with('0');
    is_ours.then(|| number.parse().ok()).flatten()
}

/// The answer to a cursor that this list did not issue.
pub(super) fn unknown_cursor() -> ErrorObject {
    ErrorObject::invalid_params("The cursor is not one of this list.")
}

const CURSOR: &str = "after-";
/// How many entries are searched from the first to the last.
const FEW: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Named(String);

    impl Entry for Named {
        fn key(&self) -> &str {
            &self.0
        }
    }

    fn list(names: &str) -> List<Named> {
        let mut list = List::default();
        names.chars().for_each(|it| list.put(Named(it.to_string())));
        list
    }

    fn names(list: &List<Named>) -> String {
        list.iter().map(|it| it.0.as_str()).collect()
    }

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
        for cursor in ["", "3", "after-0", "after-7", "after-07", "after-+3", "after--1", "after-x"]
        {
            assert!(page(&[0; 7], Some(cursor), 3).is_err(), "{cursor}");
        }
        let list = list("abcdefg");
        for cursor in ["", "3", "after-0", "after-8", "after-03", "after-+3", "after--1", "after-x"]
        {
            assert!(list.page(Some(cursor), 3, |_| true).is_err(), "{cursor}");
        }
    }

    #[test]
    fn a_list_keeps_its_order_through_changes() {
        let mut list = list("abcde");
        list.put(Named("c".to_owned()));
        assert_eq!(names(&list), "abcde");
        assert_eq!(list.remove("b").unwrap().0, "b");
        assert!(list.remove("b").is_none());
        list.put(Named("b".to_owned()));
        assert_eq!(names(&list), "acdeb");
        for name in ["a", "b", "c", "d", "e"] {
            assert_eq!(list.find(name).unwrap().0, name);
        }
        assert!(list.find("f").is_none());
    }

    #[test]
    fn a_name_is_found_in_a_list_of_any_length() {
        let all = "abcdefghijkl";
        for length in [0, 1, FEW, FEW + 1, all.len()] {
            let mut list = list(&all[..length]);
            list.remove("b");
            let found: String =
                all.chars().filter(|it| list.find(&it.to_string()).is_some()).collect();
            assert_eq!(found, names(&list));
        }
    }

    #[test]
    fn a_cursor_outlives_what_it_points_at() {
        let mut list = list("abcdef");
        let (first, next) = list.page(None, 2, |_| true).unwrap();
        assert_eq!(first.len(), 2);
        let next = next.unwrap();
        list.remove("b");
        list.remove("c");
        list.put(Named("g".to_owned()));
        let (second, next) = list.page(Some(&next), 2, |_| true).unwrap();
        assert_eq!(second.iter().map(|it| it.0.as_str()).collect::<String>(), "de");
        let (third, next) = list.page(next.as_deref(), 2, |_| true).unwrap();
        assert_eq!(third.iter().map(|it| it.0.as_str()).collect::<String>(), "fg");
        assert_eq!(next, None);
    }

    #[test]
    fn a_page_shows_only_what_may_be_seen() {
        let list = list("abcdef");
        let may_see = |it: &Named| !"bdf".contains(&*it.0);
        let (seen, next) = list.page(None, 2, may_see).unwrap();
        assert_eq!(seen.iter().map(|it| it.0.as_str()).collect::<String>(), "ac");
        let (seen, next) = list.page(next.as_deref(), 2, may_see).unwrap();
        assert_eq!(seen.iter().map(|it| it.0.as_str()).collect::<String>(), "e");
        assert_eq!(next, None, "nothing that may be seen is left");
    }
}
