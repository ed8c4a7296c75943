//! What people see: plain pages without scripts, each of which says that it is a demonstration.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::desk::Wish;
use crate::message::Response;
use crate::redirect::{Parts, shown};

/// What the page that asks for consent holds.
pub(crate) struct Consent<'a> {
    pub(crate) action: &'a str,
    pub(crate) ticket: &'a str,
    pub(crate) users: &'a [String],
    pub(crate) wish: &'a Wish,
}

/// A page that says one thing. What is in backticks is set as code.
pub(crate) fn message(status: u16, title: &str, text: &str) -> Response {
    let mut html = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape(part);
        html.push_str(&if index % 2 == 1 { format!("<code>{part}</code>") } else { part });
    }
    page(status, title, &format!("<p>{html}</p>"), "'none'")
}

/// The page that asks a person.
pub(crate) fn consent(asked: &Consent<'_>) -> Response {
    let wish = asked.wish;
    let id = shown(&wish.client);
    let name = wish.name.as_deref().filter(|it| !it.trim().is_empty()).unwrap_or(&id);
    let target = Parts::of(&wish.redirect);
    let host = target.map_or_else(
        || shown(&wish.redirect),
        |it| match it.host {
            "" => format!("an application that opens “{}:” links", it.scheme),
            _ if !matches!(it.scheme, "http" | "https") => {
                format!("an application that opens “{}:” links", it.scheme)
            }
            _ if it.is_loopback() => format!("{} (this machine)", it.origin()),
            _ => it.origin(),
        },
    );
    let users: String = asked.users.iter().enumerate().map(|(index, user)| {
        let user = escape(user);
        let checked = if index == 0 { " checked" } else { "" };
        format!("<label><input type=\"radio\" name=\"user\" value=\"{user}\"{checked}> {user}</label>")
    }).collect();
    let scopes: String = wish
        .scopes
        .iter()
        .map(|scope| {
            let scope = escape(scope);
            format!(
                "<label><input type=\"checkbox\" name=\"scope\" value=\"{scope}\" checked> \
             <code>{scope}</code></label>"
            )
        })
        .collect();
    let scopes = match scopes.as_str() {
        "" => "<p>Nothing beyond being let in.</p>",
        scopes => scopes,
    };
    let body = format!(
        "<p class=\"lead\">An application that calls itself <strong>{name}</strong> asks to act for you.</p>\
         <dl><dt>Application</dt><dd><code>{id}</code></dd>\
         <dt>Answer goes to</dt><dd><strong>{host}</strong><br><code>{redirect}</code></dd>\
         <dt>Server</dt><dd><code>{resource}</code></dd></dl>\
         <form method=\"post\" action=\"{action}\">\
         <input type=\"hidden\" name=\"ticket\" value=\"{ticket}\">\
         <fieldset><legend>It may use</legend>{scopes}</fieldset>\
         <fieldset><legend>Sign in as</legend>{users}</fieldset>\
         <p class=\"hint\">Approve only if you have just started this yourself.</p>\
         <div class=\"buttons\"><button name=\"decision\" value=\"approve\" class=\"yes\">Approve</button>\
         <button name=\"decision\" value=\"deny\">Deny</button></div></form>",
        name = escape(name),
        id = escape(&id),
        host = escape(&host),
        redirect = escape(&shown(&wish.redirect)),
        resource = escape(&shown(&wish.resource)),
        action = escape(asked.action),
        ticket = escape(asked.ticket),
    );
    // Browsers hold the redirect after a form against `form-action`, too. An IPv6 address cannot be
    // written there, so its scheme stands for it.
    let after = target.map(|it| match it.scheme {
        "http" | "https" if !it.host.starts_with('[') => it.origin(),
        scheme => format!("{scheme}:"),
    });
    page(200, "Let this application in?", &body, &format!("'self' {}", after.unwrap_or_default()))
}

fn page(status: u16, title: &str, body: &str, form_action: &str) -> Response {
    let style = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action {form_action}; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    let mut response = Response::new(status)
        .with("content-type", "text/html; charset=utf-8")
        .with("content-security-policy", policy)
        .with("x-frame-options", "DENY")
        .with("x-content-type-options", "nosniff")
        .with("referrer-policy", "same-origin")
        .unkept();
    let title = escape(title);
    response.body = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>{title}</title><style>{STYLE}</style></head>\
         <body><main><h1>{title}</h1>{body}</main>\
         <footer>A demonstration by trunkline, for trying out and for tests. It checks no passwords: \
         <strong>not for production.</strong></footer></body></html>\n"
    );
    response
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What turns the direction of writing could make one address look like another.
            '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            letter => out.push(letter),
        }
    }
    out
}

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--yes:#1a6b4a}\
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:8vh auto;padding:0 1rem}\
main{border:1px solid var(--line);border-radius:12px;padding:1.5rem 2rem}\
h1{font-size:1.35rem;margin:0 0 .75rem}.lead{margin-top:0}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.4rem 1rem;margin:1rem 0}\
dt{opacity:.7}dd{margin:0;overflow-wrap:anywhere}code{font-size:.9em;overflow-wrap:anywhere}\
fieldset{border:1px solid var(--line);border-radius:8px;margin:0 0 1rem;padding:.5rem 1rem}\
fieldset p{margin:.25rem 0}label{display:block;padding:.2rem 0}legend{padding:0 .4rem;opacity:.7}\
.hint{font-size:.9rem;opacity:.8}.buttons{display:flex;gap:.75rem}\
button{font:inherit;flex:1;padding:.6rem;border:1px solid var(--line);border-radius:8px;cursor:pointer}\
.yes{background:var(--yes);color:#fff}footer{font-size:.85rem;opacity:.75;margin:1rem .25rem}";
