//! The pages that users see while they log in. Pure: texts to HTML without scripts.

/// The content of a page.
pub(super) enum Page<'a> {
    /// The first page: whose account will be connected to what. `asks_token`: the user proves to be the
    /// principal with its token, not at an issuer.
    Begin { server: &'a str, name: &'a str, asks_token: bool, why: Option<&'a str> },
    /// Leads the browser to another site.
    Leave { server: &'a str, name: &'a str, to: &'a str, proves: bool },
    /// The login succeeded.
    Done { server: &'a str, name: &'a str },
    /// The login failed, and what to do.
    Wrong { title: &'a str, why: &'a str },
}

impl Page<'_> {
    pub(super) fn html(&self) -> String {
        let (title, refresh, body) = match self {
            Self::Begin { server, name, asks_token, why } => {
                let why = why.map(|it| format!("<p role=\"alert\">{}</p>", text(it)));
                let form = match asks_token {
                    true => {
                        "<p><label>Your token for this gateway: <input type=\"password\" name=\"token\" \
                         autocomplete=\"off\" required></label></p>"
                    }
                    false => "<p>You are asked who you are first.</p>",
                };
                let body = format!(
                    "<p>You connect <code>{}</code> for <code>{}</code>. Go on only if that is you, and if you \
                     asked for it: calls of this principal will use the account that you log in with.</p>{}\
                     <form method=\"post\">{form}<p><button>Continue</button></p></form>",
                    text(server),
                    text(name),
                    why.unwrap_or_default(),
                );
                (format!("Connect {}", text(server)), String::new(), body)
            }
            Self::Leave { server, name, to, proves } => {
                let to = text(to);
                let what = match proves {
                    true => format!("You are asked whether you are <code>{}</code>.", text(name)),
                    false => format!(
                        "You are <code>{}</code>. Log in with the account that <code>{}</code> shall use for you.",
                        text(name),
                        text(server)
                    ),
                };
                let refresh = format!("<meta http-equiv=\"refresh\" content=\"0;url={to}\">");
                let body = format!("<p>{what}</p><p><a href=\"{to}\">Continue</a></p>");
                (format!("Connect {}", text(server)), refresh, body)
            }
            Self::Done { server, name } => {
                let body = format!(
                    "<p><code>{}</code> is connected for <code>{}</code>. Close this page and go on in your \
                     client; a call that waited can be made again.</p>",
                    text(server),
                    text(name)
                );
                (format!("Connected {}", text(server)), String::new(), body)
            }
            Self::Wrong { title, why } => {
                (text(title), String::new(), format!("<p role=\"alert\">{}</p>", text(why)))
            }
        };
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\">{refresh}<title>{title}</title></head>\
             <body><h1>{title}</h1>{body}</body></html>\n"
        )
    }
}

/// Escapes a text for HTML, between tags and in attributes.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for character in raw.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            it if it.is_control() => out.push(' '),
            it => out.push(it),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped() {
        let name = "<script>\"'&\n";
        let shown = "&lt;script&gt;&quot;&#39;&amp; ";
        for page in [
            Page::Begin { server: "git", name, asks_token: true, why: Some(name) },
            Page::Leave { server: "git", name, to: name, proves: true },
            Page::Leave { server: "git", name, to: name, proves: false },
            Page::Done { server: "git", name },
            Page::Wrong { title: name, why: name },
        ] {
            let html = page.html();
            assert!(html.contains(shown) && !html.contains("<script"), "{html}");
        }
    }
}
