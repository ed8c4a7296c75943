//! Things by name, each until its time, and never too many.

use std::collections::HashMap;
use std::time::SystemTime;

/// Keeps values until they expire.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    room: usize,
    things: HashMap<String, (SystemTime, T)>,
}

/// There is no room, and nothing has expired.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl<T> Shelf<T> {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, things: HashMap::new() }
    }

    /// Puts something there until `until`. What is old makes room, what is not stays.
    pub(crate) fn put(
        &mut self,
        name: impl Into<String>,
        thing: T,
        until: SystemTime,
        now: SystemTime,
    ) -> Result<(), Full> {
        if self.things.len() >= self.room {
            self.things.retain(|_, (until, _)| *until > now);
        }
        if self.things.len() >= self.room {
            return Err(Full);
        }
        self.things.insert(name.into(), (until, thing));
        Ok(())
    }

    pub(crate) fn get(&self, name: &str, now: SystemTime) -> Option<&T> {
        self.things.get(name).filter(|(until, _)| *until > now).map(|(_, thing)| thing)
    }

    pub(crate) fn get_mut(&mut self, name: &str, now: SystemTime) -> Option<&mut T> {
        let found = self.things.get_mut(name).filter(|(until, _)| *until > now);
        found.map(|(_, thing)| thing)
    }

    /// Keeps something longer.
    pub(crate) fn renew(&mut self, name: &str, until: SystemTime) {
        if let Some((old, _)) = self.things.get_mut(name) {
            *old = until.max(*old);
        }
    }

    pub(crate) fn take(&mut self, name: &str, now: SystemTime) -> Option<T> {
        self.things.remove(name).filter(|(until, _)| *until > now).map(|(_, thing)| thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_thing_is_there_until_its_time_and_makes_room_after_it() {
        let (mut shelf, now) = (Shelf::new(2), SystemTime::UNIX_EPOCH);
        let at = |seconds| now + Duration::from_secs(seconds);
        shelf.put("a", 1, at(10), now).unwrap();
        shelf.put("b", 2, at(20), now).unwrap();
        assert_eq!(shelf.put("c", 3, at(30), at(9)), Err(Full));
        assert_eq!((shelf.get("a", at(9)), shelf.get("a", at(10))), (Some(&1), None));
        assert_eq!(shelf.put("c", 3, at(30), at(10)), Ok(()));
        shelf.renew("b", at(40));
        assert_eq!(shelf.get("b", at(39)), Some(&2));
        assert_eq!((shelf.take("b", at(39)), shelf.take("b", at(39))), (Some(2), None));
    }
}
