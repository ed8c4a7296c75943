//! A client's file and our entry → the file with or without it.

use serde_json::{Value, json};

use super::edit::{self, Field, Fields};
use super::jsonc::{self, Unreadable};
use super::{Client, tables};

/// The name of our entry in all files.
pub(crate) const NAME: &str = "trunkline";

/// How a client reaches the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ours {
    /// By starting it.
    Stdio {
        /// The binary.
        command: String,
        /// `serve --stdio …`.
        args: Vec<String>,
    },
    /// Where it listens.
    Http {
        /// Where.
        url: String,
    },
}

/// The file with our entry. An identical entry stays unchanged.
pub(crate) fn connect(client: Client, text: &str, ours: &Ours) -> Result<String, Unreadable> {
    let fields = fields(client, ours);
    if entry(client, text)?.as_ref() == Some(&fields.to_value()) {
        return Ok(text.to_owned());
    }
    let new = match client {
        Client::Codex => tables::put(text, client.container(), NAME, &fields)?,
        _ => edit::put(text, &[client.container()], NAME, &fields)?,
    };
    // The rest must parse to the same values; otherwise we did not understand the file.
    let mut expected = value(client, text)?;
    if !expected.is_object() {
        expected = json!({});
    }
    expected[client.container()][NAME] = fields.to_value();
    match value(client, &new)? == expected {
        true => Ok(new),
        false => {
            Err(Unreadable::at(text, 0, "It cannot be changed without harm. Edit it by hand."))
        }
    }
}

/// The servers in the file, without our entry.
pub(crate) fn others(client: Client, text: &str) -> Result<Vec<String>, Unreadable> {
    let value = value(client, text)?;
    let all = value.get(client.container()).and_then(Value::as_object);
    let all = all.into_iter().flat_map(|it| it.keys()).filter(|it| *it != NAME);
    Ok(all.cloned().collect())
}

/// The file without these servers.
pub(crate) fn without(client: Client, text: &str, names: &[String]) -> Result<String, Unreadable> {
    let mut new = text.to_owned();
    for name in names {
        if let Some(less) = taken(client, &new, name)? {
            new = less;
        }
    }
    Ok(new)
}

/// The file without our entry; `None` if it has none. If the file is what [`connect`] made of
/// `before`, with or without some servers removed, the result is `before`, byte for byte.
pub(crate) fn disconnect(
    client: Client,
    text: &str,
    before: Option<&str>,
) -> Result<Option<String>, Unreadable> {
    let Some(found) = entry(client, text)? else { return Ok(None) };
    if let Some(before) = before
        && entry(client, before).is_ok_and(|it| it.is_none())
        && let Some(ours) = ours(&found)
    {
        let (had, has) = (others(client, before)?, others(client, text)?);
        let gone: Vec<_> = had.into_iter().filter(|it| !has.contains(it)).collect();
        let rest = without(client, before, &gone)?;
        if connect(client, &rest, &ours).is_ok_and(|it| it == text) {
            return Ok(Some(before.to_owned()));
        }
    }
    taken(client, text, NAME)
}

/// The file without one entry; `None` if it has none of that name.
fn taken(client: Client, text: &str, name: &str) -> Result<Option<String>, Unreadable> {
    let new = match client {
        Client::Codex => tables::take(text, client.container(), name)?,
        _ => edit::take(text, &[client.container()], name)?,
    };
    let Some(new) = new else { return Ok(None) };
    let mut expected = value(client, text)?;
    if let Some(servers) = expected[client.container()].as_object_mut() {
        servers.remove(name);
    }
    let mut found = value(client, &new)?;
    // In TOML, an empty table may be gone.
    if found.get(client.container()).is_none() {
        found[client.container()] = json!({});
    }
    match found == expected {
        true => Ok(Some(new)),
        false => {
            Err(Unreadable::at(text, 0, "It cannot be changed without harm. Edit it by hand."))
        }
    }
}

/// Whether our entry is in the file.
pub(crate) fn is_connected(client: Client, text: &str) -> Result<bool, Unreadable> {
    Ok(entry(client, text)?.is_some())
}

fn fields(client: Client, ours: &Ours) -> Fields {
    let one = |key: &str, value: Value| (key.to_owned(), Field::One(value));
    let mut out = Vec::new();
    match ours {
        Ours::Stdio { command, args } => {
            if client == Client::VsCode {
                out.push(one("type", "stdio".into()));
            }
            out.push(one("command", command.as_str().into()));
            out.push(one("args", json!(args)));
        }
        Ours::Http { url } => {
            let key = match client {
                Client::VsCode | Client::ClaudeCode => {
                    out.push(one("type", "http".into()));
                    "url"
                }
                Client::Windsurf => "serverUrl",
                Client::Gemini => "httpUrl",
                _ => "url",
            };
            out.push(one(key, url.as_str().into()));
        }
    }
    Fields(out)
}

/// An entry, if we could have written it.
fn ours(entry: &Value) -> Option<Ours> {
    let url = ["url", "serverUrl", "httpUrl"].into_iter().find_map(|it| entry[it].as_str());
    if let Some(url) = url {
        return Some(Ours::Http { url: url.to_owned() });
    }
    let args = entry["args"].as_array()?.iter().map(|it| Some(it.as_str()?.to_owned()));
    Some(Ours::Stdio {
        command: entry["command"].as_str()?.to_owned(),
        args: args.collect::<Option<_>>()?,
    })
}

fn entry(client: Client, text: &str) -> Result<Option<Value>, Unreadable> {
    let value = value(client, text)?;
    Ok(value.get(client.container()).and_then(|it| it.get(NAME)).cloned())
}

fn value(client: Client, text: &str) -> Result<Value, Unreadable> {
    match client {
        Client::Codex => tables::parse(text),
        _ => Ok(jsonc::parse(text)?.map_or(Value::Null, |it| it.to_value())),
    }
}

#[cfg(test)]
mod tests;
