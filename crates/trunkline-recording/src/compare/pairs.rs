//! The calls of two recordings → which belongs to which.

use crate::calls::Act;
use crate::normal::{Zone, asked, same};

/// Pairs calls: first those that ask the same, then those about the same thing, each in order. The order between
/// different calls does not count, because calls that go on at once may finish in any.
pub(super) fn pair<'a>(a: &'a [Act], b: &'a [Act]) -> Vec<(Option<&'a Act>, Option<&'a Act>)> {
    let mut partners: Vec<Option<usize>> = vec![None; a.len()];
    let mut is_taken = vec![false; b.len()];
    let asked_b: Vec<_> = b.iter().map(|it| asked(&it.params)).collect();
    for only_same in [true, false] {
        for (at, act) in a.iter().enumerate() {
            if partners[at].is_some() {
                continue;
            }
            let asks = asked(&act.params);
            let found = (0..b.len()).find(|other| {
                !is_taken[*other]
                    && b[*other].method == act.method
                    && b[*other].id.is_some() == act.id.is_some()
                    && is_about_the_same(&b[*other], act)
                    && (!only_same || same(&asks, &asked_b[*other], Zone::Protocol))
            });
            if let Some(other) = found {
                partners[at] = Some(other);
                is_taken[other] = true;
            }
        }
    }
    let pairs = a.iter().zip(&partners).map(|(act, other)| (Some(act), other.map(|it| &b[it])));
    let rest = b.iter().zip(&is_taken).filter(|(_, is_taken)| !**is_taken);
    pairs.chain(rest.map(|(act, _)| (None, Some(act)))).filter(is_worth_telling).collect()
}

/// Whether two calls are about the same tool, prompt or resource. The ids of tasks are new in each run.
fn is_about_the_same(one: &Act, other: &Act) -> bool {
    one.method.starts_with("tasks/") || one.subject() == other.subject()
}

/// How often a client asked how a task is doing, and whether it still cancelled in time, is chance.
fn is_worth_telling((one, other): &(Option<&Act>, Option<&Act>)) -> bool {
    match (one, other) {
        (Some(act), None) | (None, Some(act)) => {
            act.method != "tasks/get" && act.method != "notifications/cancelled"
        }
        _ => true,
    }
}
