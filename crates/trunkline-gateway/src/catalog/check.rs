//! Turns a tree into a plan, or reports all its faults at once.

mod address;
mod gateway;
mod recording;
mod replicas;
mod section;
mod server;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::section::{At, Reader};
use super::expand::Env;
use super::fault::Fault;
use super::file::{Data, Document, Mark, join};
use super::keys;
use super::plan::{FilledIn, GatewayPlan, Plan, ServerPlan};

/// The result of a check.
pub(super) struct Checked {
    /// Valid only if there are no faults, or if it can run without the servers that have them.
    pub(super) plan: Plan,
    pub(super) faults: Vec<Fault>,
    /// Whether all faults concern servers that the plan leaves out.
    pub(super) can_run: bool,
    pub(super) warnings: Vec<Fault>,
    /// The files that values came from.
    pub(super) files: BTreeSet<PathBuf>,
    /// The keys that were read.
    #[cfg(test)]
    pub(super) asked: BTreeSet<String>,
}

/// Checks a document in the folder `base`.
pub(super) fn check(document: &Document, base: &Path, env: &dyn Env) -> Checked {
    let reader = Reader {
        env,
        base,
        faults: RefCell::default(),
        warnings: RefCell::default(),
        files: RefCell::default(),
        variables: RefCell::default(),
        filled_in: RefCell::default(),
        #[cfg(test)]
        asked: RefCell::default(),
    };
    for (mark, path) in &document.twice {
        let fault = reader.note(path, *mark, "This key is there already.".to_owned());
        let suggestion = Some("Remove one of the two, or rename it.".to_owned());
        reader.faults.borrow_mut().push(Fault { suggestion, ..fault });
    }
    let (plan, left_out) = root(&reader, document);
    let can_run = reader.faults.borrow().len() == left_out;
    let in_order = |notes: &RefCell<Vec<Fault>>| {
        let mut notes = notes.take();
        notes.sort_by(|a, b| (a.line, a.column, &a.path).cmp(&(b.line, b.column, &b.path)));
        notes.dedup();
        let more = notes.len().saturating_sub(MOST);
        notes.truncate(MOST);
        for it in &mut notes {
            let mark = Mark { line: it.line, column: it.column };
            it.excerpt = document.excerpt(mark, it.shows);
        }
        if let Some(last) = notes.last().filter(|_| more > 0) {
            let mark = Mark { line: last.line, column: last.column };
            notes.push(reader.note("", mark, format!("There are {more} more after this one.")));
        }
        notes
    };
    Checked {
        plan,
        can_run,
        faults: in_order(&reader.faults),
        warnings: in_order(&reader.warnings),
        files: reader.files.into_inner(),
        #[cfg(test)]
        asked: reader.asked.into_inner(),
    }
}

/// Whether a gateway may listen at `HOST:PORT`: beyond loopback only with authentication.
///
/// # Errors
///
/// A sentence that says what is wrong, and one that says what to do.
pub fn may_listen(listen: &str, plan: &GatewayPlan) -> Result<(), String> {
    let refusal = |(message, advice)| format!("{message} {advice}");
    gateway::may_listen(listen, plan, None).map_err(refusal)
}

/// Whether only this machine can reach `HOST:PORT`.
pub(crate) fn is_local(listen: &str) -> bool {
    address::parts(listen).is_some_and(|(host, _)| address::is_loopback(host))
}

/// The plan, and how many faults concern servers that it leaves out.
fn root(reader: &Reader<'_>, document: &Document) -> (Plan, usize) {
    let at = At { reader, node: &document.root, path: String::new() };
    let foreign: Vec<&str> = match (&document.root.data, document.is_json) {
        // It may be another program's file: warn only about keys that are nearly ours.
        (Data::Map(pairs), true) => {
            let names = pairs.iter().map(|(name, _)| name.text.as_str());
            let ours = || keys::ROOT.iter().map(|it| it.name);
            names.filter(|it| super::fault::nearest(it, ours()).is_none()).collect()
        }
        _ => Vec::new(),
    };
    let foreign = [keys::FOREIGN_ROOT, &foreign].concat();
    let Some(section) = at.section(keys::ROOT, &foreign) else { return Default::default() };
    let gateway = section.get("gateway").and_then(|it| it.section(keys::GATEWAY, &[]));
    // First: every other value may use its variables.
    if let Some(file) = gateway.as_ref().and_then(|it| it.get("envFile")) {
        file.variables();
    }
    let inherited = gateway.as_ref().map(server::inherited).unwrap_or_default();
    let gateway = gateway.map_or_else(GatewayPlan::default, |it| gateway::gateway(&it));
    if !section.has("mcpServers") {
        at.hidden(
            "There is neither `mcpServers` nor `servers`.",
            "Add `mcpServers:` with a server, or `mcpServers: {}` for none.",
        );
    }
    let is_shared = gateway.auth.tokens.len() > 1 || !gateway.auth.issuers.is_empty();
    let Servers { plans: mut servers, out, left_out, .. } =
        servers(&at, is_shared && gateway.rules.is_empty(), gateway::may_log_in(&gateway).err());
    for plan in servers.values_mut().filter(|_| !inherited.is_empty()) {
        Arc::make_mut(plan).inherits(&inherited);
    }
    let filled_in = FilledIn(reader.filled_in());
    (Plan { servers, out, gateway, filled_in }, left_out)
}

/// The servers of all keys that can hold them. `is_shared`: many callers may use them, and no rule limits that.
/// `no_logins`: why nobody could log in at a page of the gateway.
fn servers(root: &At<'_>, is_shared: bool, no_logins: Option<gateway::Wrong>) -> Servers {
    let mut all = Servers { is_shared, no_logins, ..Servers::default() };
    let places = keys::ROOT.iter().find(|it| it.name == "mcpServers").expect("it is in the table");
    let names = || [places.name].into_iter().chain(places.aliases.iter().copied());
    for (_, at) in root.members().into_iter().filter(|(name, _)| names().any(|it| it == *name)) {
        match &at.node.data {
            _ if at.node.is_null() => {}
            Data::List(_) => {
                for item in at.items() {
                    all.read(&item, None);
                }
            }
            _ => {
                let Data::Map(pairs) = &at.node.data else {
                    at.hidden(
                        format!("The servers must be a map or a list; this is {}.", at.node.kind()),
                        "Write `NAME: { command: … }` below it.",
                    );
                    continue;
                };
                for (name, node) in pairs {
                    let path = join(&at.path, &name.text);
                    all.read(&At { reader: at.reader, node, path }, Some(&name.text));
                }
            }
        }
    }
    all
}

#[derive(Default)]
struct Servers {
    plans: BTreeMap<String, Arc<ServerPlan>>,
    /// Lower-case names; each with its spelling, its name in messages, and its line.
    names: BTreeMap<String, (String, String, usize)>,
    is_shared: bool,
    no_logins: Option<gateway::Wrong>,
    /// Servers whose entries have faults, with the first fault.
    out: BTreeMap<String, String>,
    /// How many faults those have.
    left_out: usize,
}

impl Servers {
    /// Reads a server that is under a key, or that has its name inside.
    fn read(&mut self, at: &At<'_>, key: Option<&str>) {
        let before = at.reader.faults.borrow().len();
        let Some(section) = at.section(keys::SERVER, keys::FOREIGN_SERVER) else {
            self.leave_out(key.unwrap_or_default(), at, before);
            return;
        };
        let is_disabled = server::is_disabled(&section);
        let name = match key {
            Some(key) => {
                if section.text("name").is_some_and(|it| it != key)
                    && let Some(inner) = section.get("name")
                {
                    inner.warn("The server is called by its key.", "Remove `name`.");
                }
                Some((key.to_owned(), at.clone()))
            }
            None => section.want("name").and_then(|it| Some((it.word()?, it))),
        };
        if let Some((name, at)) = &name {
            self.check_name(name, at);
        }
        let name = name.map(|(it, _)| it).unwrap_or_default();
        let plan = server::server(&section, &name);
        let auth = section.get("auth");
        if plan.per_user().is_some() {
            if let (Some((message, advice)), Some(auth)) = (self.no_logins, auth) {
                auth.hidden(message, advice);
            }
        } else if let Some(auth) = auth.filter(|_| self.is_shared) {
            auth.warn(
                "All callers share these credentials at this server.",
                "Say by `gateway.rules` who may call it.",
            );
        }
        if is_disabled {
            // It does not run, so its faults are only warnings.
            let faults = at.reader.faults.borrow_mut().split_off(before);
            at.reader.warnings.borrow_mut().extend(faults);
        } else if !self.leave_out(&name, at, before) {
            self.plans.insert(name, Arc::new(plan));
        }
    }

    /// Leaves a server out if faults were added since `before`. A server whose name collides with another is
    /// not left out by name, so that nobody takes the other for it.
    fn leave_out(&mut self, name: &str, at: &At<'_>, before: usize) -> bool {
        let faults = at.reader.faults.borrow();
        let (Some(first), count) = (faults.get(before), faults.len() - before) else {
            return false;
        };
        let is_taken =
            self.plans.keys().chain(self.out.keys()).any(|it| it.eq_ignore_ascii_case(name));
        if !name.is_empty() && !is_taken {
            let advice = first.suggestion.iter().map(|it| format!(" {it}"));
            let more = (count > 1).then(|| format!(" There are {} more faults.", count - 1));
            let what = format!("{}: {}", first.path, first.message);
            let what = advice.chain(more).fold(what, |what, it| what + &it);
            self.out.insert(name.to_owned(), what);
            self.left_out += count;
        }
        true
    }

    fn check_name(&mut self, name: &str, at: &At<'_>) {
        let is_good = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
        if !(1..=64).contains(&name.len()) || !name.chars().all(is_good) {
            let better: String =
                name.chars().map(|it| if is_good(it) { it } else { '-' }).collect();
            let better: String = better.trim_matches('-').chars().take(64).collect();
            let name: String = name.chars().filter(|it| !it.is_control()).take(80).collect();
            let shown = at.shown(name);
            at.fault(
                format!(
                    "{shown} is no name of a server: letters, digits, `_` and `-`, at most 64."
                ),
                match better.is_empty() || at.is_filled_in() {
                    true => "Choose another name.".to_owned(),
                    false => format!("Call it `{better}`."),
                },
            );
        }
        let (shown, place) = (at.shown(name), at.node.at.line);
        match self.names.get(&name.to_lowercase()) {
            Some((other, called, line)) => {
                let message = match other == name {
                    true => format!("There is a server {shown} in line {line} already."),
                    false => {
                        format!("{shown} and {called} in line {line} are the same but for case.")
                    }
                };
                at.fault(message, "Rename one of them.");
            }
            None => {
                self.names.insert(name.to_lowercase(), (name.to_owned(), shown, place));
            }
        }
    }
}

/// The bound on faults, and on warnings, that are reported.
const MOST: usize = 100;
