//! A replica of which nobody has heard → asked for in the store. It may have begun since this one last looked.

use super::message::{Answer, Name, Output, Verdict};
use super::{Purpose, State};

/// Requests that name a replica of which nobody has heard.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// Those that the list of members answers which is being read.
    asked: Vec<(u64, Name)>,
    /// Those that came after it was asked for: one list is read at a time, however many ask.
    next: Vec<(u64, Name)>,
}

impl State {
    /// Tells a request where a replica is, or that it is gone, after another look.
    pub(super) fn look_for(&mut self, request: u64, replica: &Name) {
        self.newcomers.next.push((request, replica.clone()));
        self.look_for_next();
    }

    pub(super) fn looked(&mut self, answer: &Answer) {
        for (request, replica) in std::mem::take(&mut self.newcomers.asked) {
            let verdict = match answer {
                Answer::Members(list) => {
                    let found = list.iter().find(|(it, _)| it.owner.id == replica);
                    found.map_or(Verdict::Gone, |(it, _)| Verdict::At(it.owner.clone()))
                }
                _ => Verdict::Unavailable,
            };
            self.tell(request, verdict);
        }
        self.look_for_next();
    }

    fn look_for_next(&mut self) {
        let newcomers = &mut self.newcomers;
        if newcomers.asked.is_empty() && !newcomers.next.is_empty() {
            newcomers.asked = std::mem::take(&mut newcomers.next);
            let op = self.op(Purpose::Newcomers);
            self.out.push_back(Output::ReadMembers { op });
        }
    }
}
