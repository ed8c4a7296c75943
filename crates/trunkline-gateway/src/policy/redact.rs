//! Removes secrets from text that others wrote.
//!
//! Two things become `***`: values that the catalog holds as secrets, and what looks like a secret. The time is
//! linear in the length of the text.

mod hidden;
mod look;

use std::borrow::Cow;
use std::ops::Range;

use trunkline_wire::text::percent_encode;

use crate::catalog::plan::{Outward, Plan, Reach};

/// Knows secrets and masks them.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<Box<str>>,
}

impl Redactor {
    /// A redactor of these values, if they are long enough to be secrets. A value of several lines is known
    /// line by line, `Bearer x` also as `x`; and all of them also in their JSON and URL spellings.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets = Vec::new();
        for line in values.into_iter().flat_map(str::lines).map(str::trim) {
            let last = line.rsplit(char::is_whitespace).next().unwrap_or(line);
            for value in [line, last] {
                let json = serde_json::Value::from(value).to_string();
                let forms = [value.to_owned(), json.trim_matches('"').to_owned(), percent(value)];
                secrets.extend(forms.into_iter().filter(|it| it.len() >= SHORTEST).map(Box::from));
            }
        }
        secrets.sort_unstable();
        secrets.dedup();
        Self { secrets }
    }

    /// A redactor of everything in a plan that may be secret: variables, also inherited ones, headers, tokens,
    /// and what looks like one in arguments and URLs.
    pub fn of(plan: &Plan) -> Self {
        Self::within(plan, |name| std::env::var(name).ok())
    }

    fn within(plan: &Plan, variable: impl Fn(&str) -> Option<String>) -> Self {
        let values = secrets_within(plan, variable);
        Self::new(values.iter().map(String::as_str))
    }

    /// The text without secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found: Vec<Range<usize>> = Vec::new();
        for secret in &self.secrets {
            found.extend(text.match_indices(&**secret).map(|(at, it)| at..at + it.len()));
        }
        look::find(text, &mut found);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_unstable_by_key(|it| it.start);
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for range in found {
            if range.start >= done {
                out.push_str(&text[done..range.start]);
                out.push_str(MASK);
            }
            done = done.max(range.end);
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

/// Everything in a plan that may be secret, as it is, also what files filled in wherever it is used.
pub(crate) fn secrets_of(plan: &Plan) -> Vec<String> {
    let mut values = secrets_within(plan, |name| std::env::var(name).ok());
    values.extend(plan.filled_in.0.iter().cloned());
    values.retain(|it| it.len() >= SHORTEST);
    values
}

fn secrets_within(plan: &Plan, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let inherited: Vec<String> = {
        let reaches = plan.servers.values().map(|it| &it.reach);
        let names = reaches.filter_map(|it| match it {
            Reach::Stdio { inherit, .. } => Some(inherit),
            Reach::Http { .. } => None,
        });
        let names = names.flatten().filter(|it| !hidden::is_place(it));
        names.filter_map(|it| variable(it)).collect()
    };
    let mut values: Vec<&str> = inherited.iter().map(String::as_str).collect();
    for server in plan.servers.values() {
        match &server.reach {
            Reach::Stdio { env, args, .. } => {
                values.extend(env.iter().map(|(_, it)| it.as_str()));
                values.extend(hidden::in_args(args));
            }
            Reach::Http { url, headers, auth, .. } => {
                values.extend(hidden::in_url(url));
                values.extend(headers.iter().map(|(_, it)| it.as_str()));
                match auth {
                    Outward::ClientCredentials { client_secret, .. } => {
                        values.push(client_secret);
                    }
                    Outward::PerUser(client) => values.extend(client.secret.as_deref()),
                    Outward::Headers | Outward::Login => {}
                }
            }
        }
    }
    let gateway = &plan.gateway;
    values.extend(gateway.auth.tokens.iter().map(|it| it.token.as_str()));
    values.extend(gateway.auth.client.secret.as_deref());
    values.extend(gateway.admin.token.as_deref());
    let plugins = gateway.plugins.iter().flat_map(|it| &it.env);
    values.extend(plugins.map(|(_, it)| it.as_str()));
    values.into_iter().map(str::to_owned).collect()
}

/// The percent-encoded spelling.
fn percent(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    percent_encode(value, &mut out);
    out
}

/// What replaces a secret.
const MASK: &str = "***";
/// Shorter values are words like `true` and `8080`, not secrets.
const SHORTEST: usize = 6;

#[cfg(test)]
mod tests;
