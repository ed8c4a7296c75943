//! A client's file → its servers, in the catalog's form.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::entry::{Entry, ServerTransport};
use super::jsonc::{self, Unreadable};
use super::place::Place;
use super::variables::{Syntax, Translator, escaped};
use super::{Client, tables};

/// A server in a client's file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// Whose file it is.
    pub(crate) client: Client,
    /// Which file.
    pub(crate) path: PathBuf,
    /// The project that it is for, if it is for one.
    pub(crate) project: Option<PathBuf>,
    /// Its name in the file.
    pub(crate) name: String,
    /// The server, or why it cannot be imported.
    pub(crate) entry: Result<Entry, String>,
}

/// The servers in a file, in the order of the file's names.
pub(crate) fn read(place: &Place, text: &str) -> Result<Vec<Found>, Unreadable> {
    let client = place.client;
    let root = match client {
        Client::Codex => tables::parse(text)?,
        _ => jsonc::parse(text)?.map_or(Value::Null, |it| it.to_value()),
    };
    let mut all = servers(place, place.project.as_deref(), &root[client.container()]);
    if client == Client::ClaudeCode
        && let Some(projects) = root["projects"].as_object()
    {
        for (folder, settings) in projects {
            all.extend(servers(place, Some(Path::new(folder)), &settings["mcpServers"]));
        }
    }
    Ok(all)
}

/// Whether an entry is the gateway itself: imported, it would call itself for ever. `listen` is the
/// gateway's address.
pub(crate) fn is_ours(name: &str, entry: &Entry, listen: &str) -> bool {
    match &entry.transport {
        ServerTransport::Stdio { command, args, .. } => {
            let program = Path::new(command).file_name().and_then(|it| it.to_str());
            program.is_some_and(|it| it.trim_end_matches(".exe") == "trunkline")
                && args.iter().any(|it| it == "serve")
        }
        ServerTransport::Http { url, .. } => {
            let Some(authority) = url.split_once("://").and_then(|(_, it)| it.split('/').next())
            else {
                return false;
            };
            let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
            let is_here = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"].contains(&host);
            let is_at = |it: &str| it.rsplit_once(':').is_some_and(|(_, it)| it == port);
            is_here && (is_at(listen) || name == super::NAME) || authority == listen
        }
    }
}

/// A server of a catalog.
pub(super) fn of_catalog(value: &Value) -> Result<Entry, String> {
    Reader::new(Syntax::Catalog, None).entry(value, None)
}

fn servers(place: &Place, project: Option<&Path>, all: &Value) -> Vec<Found> {
    let found = all.as_object().into_iter().flatten().map(|(name, value)| {
        let reader = Reader::new(Syntax::of(place.client), project);
        Found {
            client: place.client,
            path: place.path.clone(),
            project: project.map(Path::to_owned),
            name: name.clone(),
            entry: reader.entry(value, Some(place.client)),
        }
    });
    found.collect()
}

struct Reader<'a> {
    translator: Translator<'a>,
    notes: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(syntax: Syntax, project: Option<&'a Path>) -> Self {
        Self { translator: Translator { syntax, project, asked: Vec::new() }, notes: Vec::new() }
    }

    fn entry(mut self, value: &Value, client: Option<Client>) -> Result<Entry, String> {
        let Some(fields) = value.as_object() else { return Err("It is no object.".to_owned()) };
        let transport = self.transport(fields, client)?;
        let has = |key: &str| fields.get(key).is_some_and(|it| !it.is_null());
        let is = |key: &str, wanted: bool| fields.get(key) == Some(&Value::Bool(wanted));
        for (key, why) in LOST {
            if client.is_some() && has(key) {
                self.notes.push(format!("`{key}` is not taken over: {why}"));
            }
        }
        for name in std::mem::take(&mut self.translator.asked) {
            self.notes.push(format!("The client asks for a value; set the variable `{name}`."));
        }
        let expose = ["exposeTools", "includeTools", "enabled_tools"];
        let expose = expose.into_iter().find_map(|key| fields.get(key));
        let seconds = |key: &str, per: f64| {
            let number = fields.get(key).and_then(Value::as_f64)?;
            (number > 0.0).then(|| (number / per).ceil() as u64)
        };
        let times = fields.get("timeouts");
        let time = |key: &str| times.and_then(|it| it[key].as_u64());
        // Gemini and Windsurf count in milliseconds here.
        let per = |wanted| if client == Some(wanted) { Some(1000.0) } else { None };
        Ok(Entry {
            transport,
            is_disabled: is("disabled", true) || is("enabled", false),
            expose: expose.map(|it| self.list(it, "exposeTools")).transpose()?.unwrap_or_default(),
            start_seconds: seconds("startup_timeout_sec", 1.0).or_else(|| time("startSeconds")),
            call_seconds: seconds("tool_timeout_sec", 1.0)
                .or_else(|| per(Client::Gemini).and_then(|it| seconds("timeout", it)))
                .or_else(|| time("callSeconds")),
            notes: self.notes,
        })
    }

    fn transport(
        &mut self,
        fields: &Map<String, Value>,
        client: Option<Client>,
    ) -> Result<ServerTransport, String> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let kind = text("type").or_else(|| text("transport"));
        let command = fields.get("command").or_else(|| fields.get("cmd"));
        let url = ["httpUrl", "serverUrl", "url"].into_iter().find_map(|it| Some((it, text(it)?)));
        match (command.filter(|it| !it.is_null()), url) {
            (Some(_), Some(_)) => {
                Err("It has a command and a URL; one of them is wrong.".to_owned())
            }
            (Some(command), None) => self.stdio(fields, command),
            (None, Some((key, url))) => {
                let by_key = client == Some(Client::Gemini) && key == "url" && kind.is_none();
                let is_sse = kind == Some("sse") || by_key;
                self.http(fields, url, is_sse)
            }
            (None, None) if client == Some(Client::Zed) => {
                Err("It belongs to an extension of Zed, which alone knows how to start it."
                    .to_owned())
            }
            (None, None) => Err("It has no command and no URL.".to_owned()),
        }
    }

    fn stdio(
        &mut self,
        fields: &Map<String, Value>,
        command: &Value,
    ) -> Result<ServerTransport, String> {
        let none = Value::Null;
        let field = |key: &str| fields.get(key).unwrap_or(&none);
        let (program, mut args, mut env) = match command {
            Value::String(program) => (self.translator.text(program)?, Vec::new(), Vec::new()),
            // Zed's format of its first year.
            Value::Object(it) => {
                let Some(program) = it.get("path").and_then(Value::as_str) else {
                    return Err("Its command has no path.".to_owned());
                };
                let args = self.list(it.get("args").unwrap_or(&none), "args")?;
                let env = self.pairs(it.get("env").unwrap_or(&none), "env")?;
                (self.translator.text(program)?, args, env)
            }
            Value::Array(_) => {
                let mut words = self.list(command, "cmd")?;
                if words.is_empty() {
                    return Err("Its command is empty.".to_owned());
                }
                (words.remove(0), words, Vec::new())
            }
            _ => return Err("Its command is no text.".to_owned()),
        };
        if program.is_empty() {
            return Err("Its command is empty.".to_owned());
        }
        args.extend(self.list(field("args"), "args")?);
        env.extend(self.pairs(field("env"), "env")?);
        let mut inherit = self.list(field("inherit"), "inherit")?;
        for variable in field("env_vars").as_array().into_iter().flatten() {
            let name = variable.as_str().or_else(|| variable["name"].as_str());
            inherit.extend(name.map(str::to_owned));
        }
        let project = self.translator.project.and_then(Path::to_str).map(escaped);
        let cwd = match (field("cwd").as_str(), project) {
            (Some(cwd), project) => {
                let cwd = self.translator.text(cwd)?;
                let is_whole = cwd.starts_with(['/', '$', '~']);
                Some(match project {
                    Some(project) if !is_whole => format!("{project}/{cwd}"),
                    _ => cwd,
                })
            }
            // Clients start the servers of a project in its folder.
            (None, project) => project,
        };
        Ok(ServerTransport::Stdio { command: program, args, env, inherit, cwd })
    }

    fn http(
        &mut self,
        fields: &Map<String, Value>,
        url: &str,
        is_sse: bool,
    ) -> Result<ServerTransport, String> {
        let url = self.translator.text(url)?;
        if !url.starts_with("http://") && !url.starts_with("https://") && !url.starts_with("${") {
            return Err(format!("Its URL is neither http nor https: `{url}`."));
        }
        let none = Value::Null;
        let field = |key: &str| fields.get(key).unwrap_or(&none);
        let mut headers = self.pairs(field("headers"), "headers")?;
        headers.extend(self.pairs(field("http_headers"), "http_headers")?);
        for (name, variable) in field("env_http_headers").as_object().into_iter().flatten() {
            if let Some(variable) = variable.as_str() {
                headers.push((name.clone(), format!("${{{variable}}}")));
            }
        }
        if let Some(variable) = field("bearer_token_env_var").as_str() {
            headers.push(("Authorization".to_owned(), format!("Bearer ${{{variable}}}")));
        }
        Ok(ServerTransport::Http { url, is_sse, headers })
    }

    fn list(&mut self, value: &Value, what: &str) -> Result<Vec<String>, String> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => items
                .iter()
                .map(|it| {
                    self.translator.text(&scalar(it).ok_or(format!("`{what}` has no texts."))?)
                })
                .collect(),
            _ => Err(format!("`{what}` is no list.")),
        }
    }

    fn pairs(&mut self, value: &Value, what: &str) -> Result<Vec<(String, String)>, String> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Object(all) => {
                let mut out = Vec::new();
                for (key, value) in all {
                    // The catalog's `{ file: PATH }`.
                    let file = value["file"].as_str().map(|it| format!("${{file:{it}}}"));
                    let text = match file {
                        Some(it) if self.translator.syntax == Syntax::Catalog => it,
                        _ => scalar(value).ok_or(format!("`{what}.{key}` is no text."))?,
                    };
                    out.push((key.clone(), self.translator.text(&text)?));
                }
                Ok(out)
            }
            _ => Err(format!("`{what}` is no object.")),
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(it) => Some(it.to_string()),
        _ => None,
    }
}

/// Settings that clients have and the catalog has not.
const LOST: [(&str, &str); 7] = [
    ("envFile", "write its variables into `env`."),
    ("excludeTools", "name the tools you want in `exposeTools`."),
    ("disabled_tools", "name the tools you want in `exposeTools`."),
    ("disabledTools", "name the tools you want in `exposeTools`."),
    ("oauth", "log in with `trunkline login URL` and write `auth: { type: login }`."),
    ("headersHelper", "give the headers in `headers`."),
    ("authProviderType", "give the headers in `headers`, or use `auth`."),
];

#[cfg(test)]
mod tests;
