//! Turns a server's name and a tool's own name into the shown name. Pure.
//!
//! | naming | shown | where two claim the same |
//! |---|---|---|
//! | prefix | `server.tool` | `server.tool_HASH`, within one server only (renames, odd names) |
//! | underscore | `server_tool`, every `.` being `_` | `server_tool_HASH` for each of them |
//! | flat | `tool` | `tool_server` for **each** of them, then `tool_server_2`, then a hash |
//! | one server selected | `tool` | `tool_HASH` |
//!
//! Except in the last row, a shown name has at most 128 of the characters that MCP allows in tool names: others
//! become `_`, longer names are cut, and a hash of the whole keeps them distinct.
//!
//! A name that two claim belongs to neither, and a tool that moves on to another name keeps its claim on the
//! earlier ones. So when a server comes or goes, a shown name may disappear but never refers to another tool
//! that existed before: a client with an old list gets the tool it saw, or an error.

use std::collections::HashMap;
use std::sync::Arc;

use trunkline_auth::digest::sha256;
use trunkline_wire::text::{MAX_TOOL_NAME, is_tool_name};

use crate::catalog::plan::{Naming, ServerPlan};

/// How the names of one list are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `server.tool`
    Prefix,
    /// `server_tool`
    Underscore,
    /// `tool`
    Flat,
    /// The server's own names.
    Raw,
}

impl Scheme {
    /// The scheme of a naming setting; `raw` if the client has selected one server.
    pub fn new(naming: Naming, raw: bool) -> Self {
        match naming {
            _ if raw => Self::Raw,
            Naming::Prefix => Self::Prefix,
            Naming::Underscore => Self::Underscore,
            Naming::Flat => Self::Flat,
        }
    }
}

/// A tool or prompt to be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Own<'a> {
    /// Its server.
    pub server: &'a str,
    /// Its own name, unique at its server.
    pub name: &'a str,
    /// The name before any prefix: its own, or the catalog's rename.
    pub base: &'a str,
}

/// The shown names, in the same order. They are unique, and do not depend on the order of the input.
pub fn assign(scheme: Scheme, all: &[Own<'_>]) -> Vec<Arc<str>> {
    // Everyone claims a first name; while a name is claimed by two, each claims one more. Claims are never
    // given up, so the result does not depend on the order.
    let mut claims: HashMap<Arc<str>, Claim> = HashMap::with_capacity(all.len());
    let mut current: Vec<(usize, Arc<str>)> = Vec::with_capacity(all.len());
    let mut moving: Vec<usize> = (0..all.len()).collect();
    for own in all {
        current.push((0, candidate(scheme, own, 0).into()));
    }
    while let Some(at) = moving.pop() {
        let name = current[at].1.clone();
        let claim = claims.entry(name).or_insert(Claim { first: at, is_shared: false });
        if claim.first == at && !claim.is_shared {
            continue;
        }
        // The holder of the name moves on, once; so does the newcomer.
        let holder = (!claim.is_shared).then_some(claim.first);
        claim.is_shared = true;
        let name = current[at].1.clone();
        for one in holder.into_iter().chain([at]) {
            // The first claimant may have moved on already.
            if current[one].1 == name {
                let step = current[one].0 + 1;
                current[one] = (step, candidate(scheme, &all[one], step).into());
                moving.push(one);
            }
        }
    }
    current.into_iter().map(|(_, name)| name).collect()
}

struct Claim {
    first: usize,
    is_shared: bool,
}

/// The name that is tried at a step.
fn candidate(scheme: Scheme, own: &Own<'_>, step: usize) -> String {
    let Own { server, name, base } = own;
    let identity = || format!("{server}\n{name}\n{step}");
    match (scheme, step) {
        (Scheme::Raw, 0) => (*base).to_owned(),
        (Scheme::Prefix, 0) => legal(&format!("{server}.{base}")),
        (Scheme::Underscore, 0) => legal(&underscored(server, base)),
        (Scheme::Flat, 0) => legal(base),
        (Scheme::Flat, 1) => legal(&format!("{base}_{server}")),
        (Scheme::Flat, 2) => legal(&format!("{base}_{server}_2")),
        (Scheme::Prefix, _) => hashed(&format!("{server}.{base}"), &identity()),
        (Scheme::Underscore, _) => hashed(&underscored(server, base), &identity()),
        (Scheme::Raw, _) => hashed(base, &identity()),
        (Scheme::Flat, _) => hashed(&format!("{base}_{server}"), &identity()),
    }
}

/// Without dots, which some model APIs reject.
fn underscored(server: &str, base: &str) -> String {
    format!("{server}_{base}").replace('.', "_")
}

fn legal(name: &str) -> String {
    if is_tool_name(name) { name.to_owned() } else { hashed(name, name) }
}

/// As much of `name` as is allowed, and a hash of `identity`.
fn hashed(name: &str, identity: &str) -> String {
    const DIGITS: usize = 8;
    let is_legal = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    let mut out: String = name
        .chars()
        .map(|it| if is_legal(it) { it } else { '_' })
        .take(MAX_TOOL_NAME - DIGITS - 1)
        .collect();
    out.push('_');
    let digest = sha256(identity.as_bytes());
    out.push_str(&digest["sha256:".len()..][..DIGITS]);
    out
}

/// Whether the catalog exposes a server's tool.
pub fn is_exposed(plan: &ServerPlan, tool: &str) -> bool {
    plan.expose.as_ref().is_none_or(|patterns| patterns.iter().any(|it| is_like(it, tool)))
}

/// The name of a tool before any prefix.
pub fn base<'a>(plan: &'a ServerPlan, tool: &'a str) -> &'a str {
    plan.rename.get(tool).map_or(tool, |name| name)
}

/// Glob match: `*` in `pattern` stands for any text.
pub fn is_like(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let Some((middle, tail)) = rest.rsplit_once('*') else { return text.ends_with(rest) };
    // The earliest match of each piece leaves the most text for the rest.
    for piece in middle.split('*') {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests;
