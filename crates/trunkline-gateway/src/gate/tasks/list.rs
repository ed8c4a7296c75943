//! `tasks/list`: the caller's tasks at all replicas, page by page.

use trunkline_wire::era::stateful;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::ErrorObject;
use trunkline_wire::model::ListTasksResult;

use super::elsewhere;
use crate::gate::Walk;

/// How far a list was read: this task of this replica was the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// Empty for a gateway that is alone.
    replica: String,
    order: u64,
}

/// The caller's tasks, page by page.
pub(super) async fn list(walk: &Walk) -> Result<Json, ErrorObject> {
    let bad = || ErrorObject::invalid_params("The cursor is not one of this list.");
    let after = match walk.call.params.get("cursor") {
        Some(cursor) => {
            let cursor: String = cursor.to().map_err(|_| bad())?;
            let bytes = walk.shared.seals.open_cursor(&cursor, &owner(walk)).ok_or_else(bad)?;
            Place::from_bytes(&bytes).ok_or_else(bad)?
        }
        None => Place::default(),
    };
    let (mut list, mut last) = (ListTasksResult::new(Vec::new()), after.clone());
    'all: for replica in turns(replicas(walk), &after.replica) {
        let from = if replica == after.replica { after.order } else { 0 };
        let tasks = match walk.shared.seals.me().is_none_or(|me| me == replica) {
            true => {
                let entries = walk.shared.tasks.of(&walk.caller, from);
                entries.iter().map(|it| (it.order(), it.task(true))).collect()
            }
            false => elsewhere::tasks_at(walk, &replica, from).await,
        };
        for (order, task) in tasks {
            if list.tasks.len() == PAGE {
                let cursor = walk.shared.seals.cursor(&last.to_bytes(), &owner(walk));
                list.next_cursor = Some(cursor);
                break 'all;
            }
            list.tasks.push(task);
            last = Place { replica: replica.clone(), order };
        }
    }
    Ok(stateful::encode_task_list(&list))
}

/// The replicas that may have tasks of the caller. An anonymous caller is its session, which is at one.
fn replicas(walk: &Walk) -> Vec<String> {
    match &walk.shared.settings.fleet {
        Some(fleet) if walk.caller.name.is_some() => fleet.all(),
        Some(fleet) => vec![fleet.me().to_owned()],
        None => vec![String::new()],
    }
}

/// Those whose turn it is from `first` on, in the order that all agree on: a list that was begun at one replica goes
/// on at another.
fn turns(mut all: Vec<String>, first: &str) -> Vec<String> {
    all.sort_unstable();
    all.retain(|it| &**it >= first);
    all
}

/// Binds a cursor to this list and caller.
fn owner(walk: &Walk) -> String {
    format!("tasks\0{}", walk.caller.id)
}

impl Place {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.order.to_be_bytes()[..], self.replica.as_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (order, replica) = bytes.split_at_checked(8)?;
        let order = u64::from_be_bytes(order.try_into().ok()?);
        Some(Self { replica: String::from_utf8(replica.to_vec()).ok()?, order })
    }
}

/// Tasks on a page.
pub(super) const PAGE: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_goes_on_where_it_was_also_when_replicas_come_and_go() {
        let all = |ids: &[&str]| ids.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(turns(all(&["c", "a", "b"]), ""), ["a", "b", "c"]);
        assert_eq!(turns(all(&["c", "a", "b"]), "b"), ["b", "c"]);
        assert_eq!(turns(all(&["c", "a"]), "b"), ["c"], "the one that was read is gone");
        assert_eq!(turns(all(&[""]), ""), [""], "a gateway that is alone");
        let place = Place { replica: "r1".to_owned(), order: 7 };
        assert_eq!(Place::from_bytes(&place.to_bytes()), Some(place));
        assert_eq!(Place::from_bytes(b"short"), None);
    }
}
