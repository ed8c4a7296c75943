//! What a server offers, as its lists say it: tools, prompts, resources and templates by name.

use super::Finder;
use crate::calls::Act;
use crate::normal::Zone;
use crate::tree::Tree;

/// A list: its method, its member, what names an item, and what one item is called.
struct List {
    method: &'static str,
    member: &'static str,
    key: &'static str,
    noun: &'static str,
}

const LISTS: [List; 4] = [
    List { method: "tools/list", member: "tools", key: "name", noun: "tool" },
    List { method: "prompts/list", member: "prompts", key: "name", noun: "prompt" },
    List { method: "resources/list", member: "resources", key: "uri", noun: "resource" },
    List {
        method: "resources/templates/list",
        member: "resourceTemplates",
        key: "uriTemplate",
        noun: "template",
    },
];

/// Compares what two servers offer, and says how many definitions there were.
pub(super) fn compare(a: &[Act], b: &[Act], finder: &mut Finder<'_>) -> usize {
    let mut count = 0;
    for list in &LISTS {
        let (Some(one), Some(other)) = (offered(a, list), offered(b, list)) else { continue };
        let is_new = |name: &str| !one.iter().any(|(it, _)| it == name);
        let added = other.iter().map(|(name, _)| name).filter(|it| is_new(it));
        for name in one.iter().map(|(name, _)| name).chain(added) {
            let find = |all: &[(String, Tree)]| {
                all.iter().find(|(it, _)| it == name).map(|(_, definition)| definition.clone())
            };
            count += 1;
            let of = format!("{} {name}", list.noun);
            match (find(&one), find(&other)) {
                (Some(one), Some(other)) => {
                    finder.of = of;
                    finder.values("", Some(&one), Some(&other), Zone::Protocol);
                }
                (one, other) => finder.only(&of, one, other),
            }
        }
    }
    count
}

/// A result without the definitions in it, which are compared by themselves.
pub(super) fn rest(act: &Act, result: &Tree) -> Tree {
    let mut rest = result.clone();
    if let Some(list) = LISTS.iter().find(|it| it.method == act.method)
        && let Tree::Object(members) = &mut rest
    {
        members.retain(|(name, _)| name != list.member);
    }
    rest
}

/// The last complete list; `None` if it was never asked for.
fn offered(acts: &[Act], list: &List) -> Option<Vec<(String, Tree)>> {
    let mut all: Option<Vec<(String, Tree)>> = None;
    for act in acts.iter().filter(|it| it.method == list.method) {
        let Some(Ok(result)) = act.answer() else { continue };
        let all = all.get_or_insert_default();
        // A request without a cursor asks for the first page.
        if act.params.get("cursor").is_none() {
            all.clear();
        }
        for item in result.get(list.member).map(Tree::items).unwrap_or_default() {
            let name = item.get(list.key).and_then(Tree::as_text).unwrap_or_default();
            all.push((name.to_owned(), item.clone()));
        }
    }
    all
}
