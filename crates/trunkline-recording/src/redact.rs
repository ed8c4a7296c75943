//! A message → the same without secrets, before it is written.
//!
//! Four things become `***`: members that the user names, values that the user gives, what the schema of a tool or a
//! form marks as secret, and later every repetition of such a value.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use trunkline_wire::json::Json;
use trunkline_wire::text::percent_encode;

use crate::line::Party;
use crate::schema::{SecretPath, secrets, visit};
use crate::tree::Tree;

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// Knows secrets, and learns more of them from what it sees.
#[derive(Clone, Default)]
pub struct Redactor {
    members: Vec<String>,
    values: Vec<String>,
    /// The spellings that were learned from messages, oldest first; those that were given are not among them.
    learned: VecDeque<String>,
    /// The secrets of each tool: in its arguments, and in its result.
    tools: HashMap<String, ToolSecrets>,
    /// The secrets in the answers to forms.
    forms: Vec<SecretPath>,
    /// The tools of the calls that are not answered yet, by session and id.
    open: HashMap<String, String>,
}

#[derive(Clone, Debug, Default)]
struct ToolSecrets {
    arguments: Vec<SecretPath>,
    result: Vec<SecretPath>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (members, values) = (&self.members, self.values.len());
        write!(f, "Redactor({members:?}, {values} values)")
    }
}

impl Redactor {
    /// Masks members of these names, in any case, and these values, if they are long enough to be secrets.
    pub fn new(
        members: impl IntoIterator<Item = String>,
        values: impl IntoIterator<Item = String>,
    ) -> Self {
        let members = members.into_iter().map(|it| it.to_lowercase()).collect();
        let mut redactor = Self { members, ..Self::default() };
        redactor.know_values(values);
        redactor
    }

    /// Masks these values, too, and never forgets them.
    pub fn know_values(&mut self, values: impl IntoIterator<Item = String>) {
        for value in values {
            for form in spellings(&value) {
                self.learned.retain(|it| *it != form);
                if !self.values.contains(&form) {
                    self.values.push(form);
                }
            }
        }
        self.sort();
    }

    /// Masks members of these names, too.
    pub fn know_members(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names.into_iter().map(|it| it.to_lowercase()) {
            if !self.members.contains(&name) {
                self.members.push(name);
            }
        }
    }

    /// Masks what the schemas of a tool mark as secret, in calls that name it so.
    pub fn know_tool(&mut self, name: &str, arguments: Option<&Json>, result: Option<&Json>) {
        let of =
            |schema: Option<&Json>| schema.map(|it| secrets(&Tree::of(it))).unwrap_or_default();
        let secrets = ToolSecrets { arguments: of(arguments), result: of(result) };
        if self.tools.len() < MOST || self.tools.contains_key(name) {
            self.tools.insert(name.to_owned(), secrets);
        }
    }

    /// Whether members are masked by their names.
    pub fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Masks the secrets of a message, and says whether there were any. `session` tells conversations apart.
    pub fn redact(&mut self, by: Party, session: u32, message: &mut Tree) -> bool {
        if let Tree::List(batch) = message {
            return batch.iter_mut().fold(false, |any, it| self.redact(by, session, it) | any);
        }
        let mut found = Vec::new();
        match by {
            Party::Client => self.mask_sent(session, message, &mut found),
            Party::Server => self.mask_received(session, message, &mut found),
        }
        let mut changed = mask_members(message, &self.members, &mut found, NESTED);
        changed |= !found.is_empty();
        found.iter().for_each(|it| self.learn(it));
        changed | self.mask_values(message)
    }

    /// A text without the values that are known to be secret.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        for value in &self.values {
            if out.contains(value.as_str()) {
                out = Cow::Owned(out.replace(value.as_str(), MASK));
            }
        }
        out
    }

    /// The value of a header field as it may be written.
    pub fn header<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        let is_harmless = HARMLESS.iter().any(|it| name.eq_ignore_ascii_case(it));
        if is_harmless { self.text(value) } else { Cow::Borrowed(MASK) }
    }

    /// The arguments of a call and the answers to forms.
    fn mask_sent(&mut self, session: u32, message: &mut Tree, found: &mut Vec<String>) {
        let id = message.get("id").map(|it| format!("{session} {it}"));
        let is_call = message.get("method").and_then(Tree::as_text) == Some("tools/call");
        if let Some(params) = message.get_mut("params") {
            let tool = params.get("name").and_then(Tree::as_text).map(str::to_owned);
            if let Some(tool) = tool.filter(|_| is_call) {
                let secrets = self.tools.get(&tool).map(|it| it.arguments.as_slice());
                if let Some(arguments) = params.get_mut("arguments") {
                    mask_paths(arguments, secrets.unwrap_or_default(), found);
                }
                if let Some(id) = id.filter(|_| self.open.len() < MOST) {
                    self.open.insert(id, tool);
                }
            }
            if let Some(Tree::Object(answers)) = params.get_mut("inputResponses") {
                for (_, answer) in answers {
                    if let Some(content) = answer.get_mut("content") {
                        mask_paths(content, &self.forms, found);
                    }
                }
            }
        }
        if let Some(content) = message.get_mut("result").and_then(|it| it.get_mut("content")) {
            mask_paths(content, &self.forms, found);
        }
    }

    /// Learns the schemas of tools and forms, and masks results.
    fn mask_received(&mut self, session: u32, message: &mut Tree, found: &mut Vec<String>) {
        if let Some(schema) = message.at(&["params", "requestedSchema"]) {
            self.learn_form(&schema.clone());
        }
        let id = message.get("id").map(|it| format!("{session} {it}"));
        let tool = id.and_then(|it| match message.get("method") {
            None => self.open.remove(&it),
            Some(_) => None,
        });
        let Some(result) = message.get_mut("result") else { return };
        for tool in result.get("tools").map(Tree::items).unwrap_or_default() {
            let of = |name: &str| tool.get(name).map(secrets).unwrap_or_default();
            let Some(name) = tool.get("name").and_then(Tree::as_text) else { continue };
            let secrets = ToolSecrets { arguments: of("inputSchema"), result: of("outputSchema") };
            if self.tools.len() < MOST || self.tools.contains_key(name) {
                self.tools.insert(name.to_owned(), secrets);
            }
        }
        let questions = result.get("inputRequests").map(Tree::members).unwrap_or_default();
        let schemas = questions.iter().filter_map(|(_, it)| it.at(&["params", "requestedSchema"]));
        for schema in schemas.cloned().collect::<Vec<_>>() {
            self.learn_form(&schema);
        }
        let secrets = tool.and_then(|it| self.tools.get(&it)).map(|it| it.result.clone());
        if let (Some(secrets), Some(value)) = (secrets, result.get_mut("structuredContent")) {
            mask_paths(value, &secrets, found);
        }
    }

    fn learn_form(&mut self, schema: &Tree) {
        for path in secrets(schema) {
            if !self.forms.contains(&path) && self.forms.len() < MOST {
                self.forms.push(path);
            }
        }
    }

    /// Remembers a value, such as one that a message held. The one that was learned first makes way for the newest.
    pub fn learn(&mut self, value: &str) {
        for form in spellings(value) {
            if self.values.contains(&form) {
                continue;
            }
            if self.learned.len() >= MOST_VALUES
                && let Some(oldest) = self.learned.pop_front()
            {
                self.values.retain(|it| *it != oldest);
            }
            self.learned.push_back(form.clone());
            self.values.push(form);
        }
        self.sort();
    }

    /// The longest first, so that a secret within another leaves no rest of it.
    fn sort(&mut self) {
        self.values.sort_by_key(|it| std::cmp::Reverse(it.len()));
    }

    fn mask_values(&self, tree: &mut Tree) -> bool {
        match tree {
            Tree::Text(text) => {
                let masked = match self.text(text) {
                    Cow::Owned(masked) => masked,
                    Cow::Borrowed(_) => return false,
                };
                *text = masked;
                true
            }
            Tree::Number(digits) => {
                let is_secret = self.values.iter().any(|it| **it == **digits);
                if is_secret {
                    *tree = Tree::Text(MASK.to_owned());
                }
                is_secret
            }
            Tree::List(items) => items.iter_mut().fold(false, |any, it| self.mask_values(it) | any),
            Tree::Object(members) => members.iter_mut().fold(false, |any, (name, value)| {
                if let Cow::Owned(masked) = self.text(name) {
                    *name = masked;
                    self.mask_values(value);
                    return true;
                }
                self.mask_values(value) | any
            }),
            Tree::Null | Tree::Bool(_) => false,
        }
    }
}

/// A value line by line, `Bearer x` also as `x`, each in its own, its JSON and its URL spelling, if it is long enough to
/// be a secret.
fn spellings(value: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in value.lines().map(str::trim) {
        let last = line.rsplit(char::is_whitespace).next().unwrap_or(line);
        for value in [line, last] {
            let json = serde_json::Value::from(value).to_string();
            let mut url = String::new();
            percent_encode(value, &mut url);
            all.extend([value.to_owned(), json.trim_matches('"').to_owned(), url]);
        }
    }
    all.retain(|it| it.len() >= SHORTEST);
    all.sort();
    all.dedup();
    all
}

fn mask_paths(tree: &mut Tree, paths: &[SecretPath], found: &mut Vec<String>) {
    for path in paths {
        visit(tree, path, &mut |it| mask(it, found));
    }
}

/// Masks a value and notes the texts and numbers that it held.
fn mask(tree: &mut Tree, found: &mut Vec<String>) {
    note(tree, found);
    *tree = Tree::Text(MASK.to_owned());
}

fn note(tree: &Tree, found: &mut Vec<String>) {
    match tree {
        Tree::Text(text) => found.push(text.clone()),
        Tree::Number(digits) => found.push(digits.to_string()),
        Tree::List(items) => items.iter().for_each(|it| note(it, found)),
        Tree::Object(members) => members.iter().for_each(|(_, it)| note(it, found)),
        Tree::Null | Tree::Bool(_) => {}
    }
}

/// Masks members by their names, also in texts that are JSON themselves.
fn mask_members(tree: &mut Tree, names: &[String], found: &mut Vec<String>, depth: usize) -> bool {
    if names.is_empty() {
        return false;
    }
    match tree {
        Tree::Object(members) => members.iter_mut().fold(false, |any, (name, value)| {
            if names.contains(&name.to_lowercase()) {
                mask(value, found);
                return true;
            }
            mask_members(value, names, found, depth) | any
        }),
        Tree::List(items) => {
            items.iter_mut().fold(false, |any, it| mask_members(it, names, found, depth) | any)
        }
        Tree::Text(text) if depth > 0 && text.trim_start().starts_with(['{', '[']) => {
            let Ok(mut inner) = Tree::parse(text) else { return false };
            let changed = mask_members(&mut inner, names, found, depth - 1);
            if changed {
                *text = inner.to_text();
            }
            changed
        }
        _ => false,
    }
}

/// The shortest value that is taken for a secret: a shorter one stands in too many texts.
const SHORTEST: usize = 4;
/// How many tools, forms and open calls are remembered.
const MOST: usize = 4096;
/// How many learned spellings of secrets are looked for in every text, beside those that were given.
const MOST_VALUES: usize = 1024;
/// How deep JSON in texts is followed.
const NESTED: usize = 3;

/// The header fields that are written as they are. Any other may be a secret.
const HARMLESS: &[&str] = &[
    "accept",
    "allow",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "origin",
    "retry-after",
    "server",
    "transfer-encoding",
    "user-agent",
    "vary",
    "x-accel-buffering",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is `>` or `<`, a message, `=>`, and the message as it is written.
    #[track_caller]
    fn check(redactor: &mut Redactor, script: &str) {
        for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let (by, rest) = line.split_at(1);
            let by = if by == ">" { Party::Client } else { Party::Server };
            let (said, expected) = rest.split_once("=>").expect("a line has two sides");
            let mut tree = Tree::parse(said).unwrap();
            let changed = redactor.redact(by, 1, &mut tree);
            assert_eq!(tree.to_text(), expected.trim());
            assert_eq!(changed, said.trim() != expected.trim(), "{line}");
        }
    }

    #[test]
    fn named_members_are_masked_also_in_json_within_texts() {
        check(
            &mut Redactor::new(["Token".to_owned()], []),
            r#"
            > {"a":{"token":{"x":"abcdef"}},"b":"abcdef"} => {"a":{"token":"***"},"b":"***"}
            < {"text":"{\"TOKEN\":1,\"c\":2}"} => {"text":"{\"TOKEN\":\"***\",\"c\":2}"}
            < {"text":"{no json","d":1.50} => {"text":"{no json","d":1.50}
            "#,
        );
    }

    #[test]
    fn given_values_are_masked_in_every_spelling() {
        let values = ["hunter2".to_owned(), "a\"b c".to_owned(), "123456".to_owned()];
        check(
            &mut Redactor::new([], values),
            r#"
            > {"a":"x hunter2 y","hunter2":1} => {"a":"x *** y","***":1}
            < {"a":"a\"b c","b":"{\"k\":\"a\\\"b c\"}","c":"k=a%22b%20c","d":123456} => {"a":"***","b":"{\"k\":\"***\"}","c":"k=***","d":"***"}
            < {"a":1234567} => {"a":1234567}
            "#,
        );
    }

    #[test]
    fn a_tools_secrets_are_masked_once_its_schema_was_seen_and_so_are_their_echoes() {
        check(
            &mut Redactor::default(),
            r#"
            < {"id":1,"result":{"tools":[{"name":"login","inputSchema":{"properties":{"password":{"format":"password"}}},"outputSchema":{"properties":{"key":{"writeOnly":true}}}}]}} => {"id":1,"result":{"tools":[{"name":"login","inputSchema":{"properties":{"password":{"format":"password"}}},"outputSchema":{"properties":{"key":{"writeOnly":true}}}}]}}
            > {"id":2,"method":"tools/call","params":{"name":"login","arguments":{"user":"ada","password":"hunter2"}}} => {"id":2,"method":"tools/call","params":{"name":"login","arguments":{"user":"ada","password":"***"}}}
            < {"id":2,"result":{"content":[{"text":"hunter2 is right, take k-9876"}],"structuredContent":{"key":"k-9876"}}} => {"id":2,"result":{"content":[{"text":"*** is right, take ***"}],"structuredContent":{"key":"***"}}}
            > {"id":3,"method":"tools/call","params":{"name":"other","arguments":{"password":"open"}}} => {"id":3,"method":"tools/call","params":{"name":"other","arguments":{"password":"open"}}}
            "#,
        );
    }

    #[test]
    fn the_newest_secrets_are_known_however_many_there_were_and_those_given_are_never_forgotten() {
        let mut redactor = Redactor::new(["key".to_owned()], ["given-1".to_owned()]);
        for n in 0..2 * MOST_VALUES {
            let mut tree = Tree::parse(&format!(r#"{{"key":"secret-{n}"}}"#)).unwrap();
            assert!(redactor.redact(Party::Client, 1, &mut tree));
        }
        redactor.know_values(["given-2".to_owned()]);
        let newest = format!("secret-{}", 2 * MOST_VALUES - 1);
        for (text, expected) in
            [("given-1", MASK), ("given-2", MASK), (&newest, MASK), ("secret-0", "secret-0")]
        {
            assert_eq!(redactor.text(text), expected);
        }
    }

    #[test]
    fn a_tools_schemas_can_be_given_under_any_name() {
        let mut redactor = Redactor::default();
        let marked = Json::parse(r#"{"properties":{"pin":{"writeOnly":true}}}"#).unwrap();
        redactor.know_tool("bank.pay", Some(&marked), None);
        check(
            &mut redactor,
            r#"
            > {"id":1,"method":"tools/call","params":{"name":"bank.pay","arguments":{"pin":"4711-x"}}} => {"id":1,"method":"tools/call","params":{"name":"bank.pay","arguments":{"pin":"***"}}}
            < {"id":1,"result":{"content":[{"text":"4711-x"}]}} => {"id":1,"result":{"content":[{"text":"***"}]}}
            "#,
        );
    }

    #[test]
    fn answers_to_forms_are_masked_in_both_eras() {
        check(
            &mut Redactor::default(),
            r#"
            < {"id":"q","method":"elicitation/create","params":{"requestedSchema":{"properties":{"pin":{"writeOnly":true}}}}} => {"id":"q","method":"elicitation/create","params":{"requestedSchema":{"properties":{"pin":{"writeOnly":true}}}}}
            > {"id":"q","result":{"action":"accept","content":{"pin":"17","name":"Ada"}}} => {"id":"q","result":{"action":"accept","content":{"pin":"***","name":"Ada"}}}
            > {"id":1,"method":"tools/call","params":{"name":"x","inputResponses":{"k":{"content":{"pin":18}}}}} => {"id":1,"method":"tools/call","params":{"name":"x","inputResponses":{"k":{"content":{"pin":"***"}}}}}
            "#,
        );
    }

    #[test]
    fn headers_are_masked_unless_they_are_known_to_be_harmless() {
        let redactor = Redactor::new([], ["hunter2".to_owned()]);
        for (name, value, expected) in [
            ("Authorization", "Bearer x", MASK),
            ("cookie", "a=b", MASK),
            ("X-Anything", "v", MASK),
            ("mcp-session-id", "s", MASK),
            ("Mcp-Protocol-Version", "2025-11-25", "2025-11-25"),
            ("user-agent", "it hunter2", "it ***"),
        ] {
            assert_eq!(redactor.header(name, value), expected, "{name}");
        }
    }
}
