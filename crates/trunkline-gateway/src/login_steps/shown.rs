//! The requests and answers of a login → what an operator sees of them, without tokens. Pure.

use serde_json::{Map, Value, json};
use trunkline_auth::client::Step;
use trunkline_auth::fetch::{Answer, Ask, FetchError};
use trunkline_recording::line::Party;
use trunkline_recording::redact::{MASK, Redactor};
use trunkline_recording::tree::Tree;

/// A login so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    steps: Vec<Shown>,
    /// The page that a person has to visit now.
    page: Option<String>,
    /// How it ended.
    end: Option<Result<String, String>>,
}

#[derive(Debug)]
struct Shown {
    title: String,
    request: Value,
    response: Option<Value>,
    decided: Vec<String>,
    failed: Option<String>,
    /// Whether the operator has let it go.
    is_let_go: bool,
}

impl Progress {
    /// A request waits.
    pub(super) fn asks(&mut self, ask: &Ask) {
        self.page = None;
        self.steps.push(Shown {
            title: title(ask, self.steps.is_empty()),
            request: json!({
                "method": ask.method,
                "url": ask.url,
                "headers": headers(ask.headers.iter().map(|(name, value)| (*name, value.as_str()))),
                "body": body(&ask.body),
            }),
            response: None,
            decided: Vec::new(),
            failed: None,
            is_let_go: false,
        });
    }

    /// The operator lets the request go that waits; `false` if none does.
    pub(super) fn go(&mut self) -> bool {
        match self.steps.last_mut() {
            Some(step) if step.is_waiting() => {
                step.is_let_go = true;
                true
            }
            _ => false,
        }
    }

    /// The answer to the last request.
    pub(super) fn answered(&mut self, answer: &Result<Answer, FetchError>) {
        let Some(step) = self.steps.last_mut() else { return };
        match answer {
            Ok(answer) => {
                let all =
                    answer.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                step.response = Some(json!({
                    "status": answer.status,
                    "headers": headers(all),
                    "body": body(&answer.body),
                }));
            }
            Err(error) => step.failed = Some(error.to_string()),
        }
    }

    /// The client makes something of what it has heard.
    pub(super) fn decided(&mut self, step: &Step) {
        let decided = match step {
            Step::Discovering(server) => {
                format!("Looks for the authorization server of `{server}`.")
            }
            Step::Reusing(issuer) => format!("Uses its registration at `{issuer}` again."),
            Step::Reregistering(issuer, why) => {
                format!("Replaces its registration at `{issuer}`: {why:?}.")
            }
            Step::Registering(issuer) => format!("Registers itself at `{issuer}`."),
            Step::Waiting(issuer) => format!("Sends a person to the page of `{issuer}`."),
            Step::Exchanging(issuer) => format!("Exchanges the code for a token at `{issuer}`."),
            Step::Done(issuer) => format!("Has a token of `{issuer}`."),
            _ => return,
        };
        if let Some(last) = self.steps.last_mut() {
            last.decided.push(decided);
        }
    }

    /// A person has to visit a page.
    pub(super) fn page(&mut self, url: &str) {
        self.page = Some(url.to_owned());
    }

    pub(super) fn end(&mut self, end: Result<String, String>) {
        self.page = None;
        if let (Err(why), Some(last)) = (&end, self.steps.last_mut()) {
            last.failed.get_or_insert_with(|| why.clone());
        }
        self.end = Some(end);
    }

    /// Whether nothing happens before the operator or a person does something.
    pub(super) fn is_at_rest(&self) -> bool {
        let is_waiting = self.steps.last().is_some_and(Shown::is_waiting);
        self.end.is_some() || self.page.is_some() || is_waiting
    }

    pub(super) fn show(&self) -> Value {
        let state = match (&self.end, &self.page) {
            (Some(Ok(_)), _) => "done",
            (Some(Err(_)), _) => "failed",
            (None, Some(_)) => "page",
            (None, None) => "waiting",
        };
        let told = self.end.as_ref().map(|it| match it {
            Ok(told) | Err(told) => told,
        });
        let steps = self.steps.iter().map(|it| {
            json!({
                "title": it.title,
                "request": it.request,
                "response": it.response,
                "decided": it.decided.join(" "),
                "failed": it.failed,
            })
        });
        json!({
            "state": state, "steps": steps.collect::<Vec<_>>(), "page": self.page, "told": told,
        })
    }
}

impl Shown {
    fn is_waiting(&self) -> bool {
        !self.is_let_go
    }
}

/// The values of `WWW-Authenticate`.
pub(super) fn challenges(answer: &Answer) -> Vec<String> {
    let all = answer.headers.iter().filter(|(name, _)| name == "www-authenticate");
    all.map(|(_, value)| value.clone()).collect()
}

/// What a request is for, by where it goes.
fn title(ask: &Ask, is_first: bool) -> String {
    let has = |part: &str| {
        ask.url.contains(part) || ask.body.windows(part.len()).any(|it| it == part.as_bytes())
    };
    let title = match ask.method {
        _ if is_first => "Ask the server without a token",
        _ if has("oauth-protected-resource") => "Ask who issues tokens for the server",
        "GET" if has("oauth-authorization-server") || has("openid-configuration") => {
            "Ask what the authorization server can do"
        }
        "POST" if has("redirect_uris") => "Register the client",
        "POST" if has("grant_type=authorization_code") => "Exchange the code for a token",
        "POST" if has("grant_type=refresh_token") => "Refresh the token",
        "POST" => "Ask the authorization server",
        _ => "Read a document",
    };
    title.to_owned()
}

fn headers<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let redactor = Redactor::default();
    let shown = all.map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let value = match name.as_str() {
            // What a login is about.
            "www-authenticate" | "location" => value.to_owned(),
            name => redactor.header(name, value).into_owned(),
        };
        (name, Value::from(value))
    });
    Value::Object(shown.collect::<Map<_, _>>())
}

/// A body without tokens: JSON, a form, or the beginning of a text.
fn body(bytes: &[u8]) -> Value {
    let text = String::from_utf8_lossy(bytes);
    if text.is_empty() {
        return Value::Null;
    }
    if let Ok(mut tree) = Tree::parse(&text) {
        let names = SECRETS.iter().map(|it| (*it).to_owned());
        Redactor::new(names, []).redact(Party::Server, 0, &mut tree);
        return serde_json::from_str(&tree.to_text()).unwrap_or_default();
    }
    let is_form = text.contains('=') && !text.contains(['<', '\n', ' ']);
    if !is_form {
        return Value::from(text.chars().take(MOST_SHOWN).collect::<String>());
    }
    let masked = text.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if SECRETS.contains(&name) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    });
    Value::from(masked.collect::<Vec<_>>().join("&"))
}

/// The members and fields that hold something secret.
const SECRETS: &[&str] = &[
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "registration_access_token",
    "code",
    "code_verifier",
    "client_assertion",
    "assertion",
    "subject_token",
    "actor_token",
    "token",
    "password",
];
/// The characters of a text that are shown.
const MOST_SHOWN: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_waits_and_says_what_came_of_it() {
        let mut progress = Progress::default();
        assert!(!progress.is_at_rest() && !progress.go());
        progress.asks(&Ask::json("https://s.example/mcp", "{}"));
        assert!(progress.is_at_rest());
        assert!(progress.go() && !progress.go(), "it goes once");
        assert!(!progress.is_at_rest());
        let refused = Answer::new(401, "").header("WWW-Authenticate", "Bearer scope=\"a\"");
        assert_eq!(challenges(&refused), ["Bearer scope=\"a\""]);
        progress.answered(&Ok(refused));
        progress.decided(&Step::Discovering("https://s.example/mcp".to_owned()));
        progress.asks(&Ask::get("https://s.example/.well-known/oauth-protected-resource"));
        progress.page("https://id.example/authorize?x");
        assert_eq!(progress.show()["state"], "page");
        progress.end(Err("No.".to_owned()));
        let told = progress.show();
        assert_eq!(
            (&told["state"], &told["steps"][1]["failed"]),
            (&json!("failed"), &json!("No."))
        );
        let first = &told["steps"][0];
        assert_eq!(first["response"]["headers"]["www-authenticate"], "Bearer scope=\"a\"");
        assert_eq!(
            first["decided"],
            "Looks for the authorization server of `https://s.example/mcp`."
        );
        assert_eq!(told["steps"][1]["title"], "Ask who issues tokens for the server");
    }

    #[test]
    fn tokens_and_codes_are_never_shown() {
        let mut progress = Progress::default();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", "hunter2"),
            ("code_verifier", "hunter3"),
        ];
        let ask = Ask::form("https://id.example/token", &fields);
        progress.asks(&ask.header("authorization", "Basic hunter4"));
        let told = r#"{"access_token":"hunter5","expires_in":9,"refresh_token":"hunter6"}"#;
        let answer = Answer::new(200, told).header("set-cookie", "hunter7");
        progress.answered(&Ok(answer));
        let text = progress.show().to_string();
        assert!(!text.contains("hunter"), "{text}");
        assert!(
            text.contains("grant_type=authorization_code") && text.contains("expires_in"),
            "{text}"
        );
    }
}
