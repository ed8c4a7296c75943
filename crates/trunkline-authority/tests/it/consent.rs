//! The page that asks a person, and what comes of their answer.

use crate::transcript::{ISSUER, RESOURCE, Talk, settings, start};
use trunkline_authority::{Authority, Client, Request, Response, Settings};

/// The usual server, but people are asked.
fn asking() -> Settings {
    let client = Client::new("evil\"><script>")
        .name("<b>Editor</b> & \u{202e}co")
        .redirect("https://app.example/cb?a=1");
    Settings::new()
        .users(["alice", "bob"])
        .scopes(["files:read", "files:write"])
        .resource(RESOURCE)
        .client(Client::new("tool").name("The tool").redirect("http://127.0.0.1/callback"))
        .client(Client::new("app").redirect("com.example.app:/cb").redirect("http://[::1]/cb"))
        .client(client)
}

/// A page that is open: what it is about, and how it is answered.
struct Page {
    talk: Talk,
    html: String,
    ticket: String,
    cookie: String,
}

fn open(fields: &str) -> Page {
    let mut talk = Talk::new(Authority::new(ISSUER, asking()));
    talk.run(&format!("authorize state=s1 scope=files:read+files:write {fields}\n< 200"));
    let answer = talk.answer.as_ref().unwrap();
    let html = answer.body.clone();
    let ticket = html.split("name=\"ticket\" value=\"").nth(1).unwrap()[..32].to_owned();
    let cookie = answer.first("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    Page { talk, html, ticket, cookie }
}

impl Page {
    fn decide(&mut self, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Response {
        let mut all = vec![("ticket", &*self.ticket)];
        all.extend(fields);
        let mut request = Request::form("/authorize/decision", &all, self.talk.now);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let answer = self.talk.authority.answer(request);
        self.talk.answer = Some(answer.clone());
        answer
    }
}

const YES: [(&str, &str); 4] =
    [("user", "bob"), ("decision", "approve"), ("scope", "files:read"), ("scope", "files:write")];

#[test]
fn the_page_says_who_asks_for_what_and_where_the_answer_goes() {
    let page = open("");
    for part in [
        "<strong>The tool</strong>",
        "<code>tool</code>",
        "<strong>http://127.0.0.1:7777 (this machine)</strong>",
        "<code>http://127.0.0.1:7777/callback</code>",
        "<code>http://localhost:3000/mcp</code>",
        "name=\"scope\" value=\"files:write\" checked",
        "name=\"user\" value=\"bob\"",
        "Approve only if you have just started this yourself.",
        "not for production",
    ] {
        assert!(page.html.contains(part), "{part} in {}", page.html);
    }
    assert!(
        !page.html.contains("<script") && !page.html.contains(" onclick"),
        "it works without scripts"
    );
    let answer = page.talk.answer.as_ref().unwrap();
    assert_eq!(answer.first("x-frame-options"), Some("DENY"));
    assert_eq!(answer.first("cache-control"), Some("no-store"));
    assert_eq!(answer.first("referrer-policy"), Some("same-origin"));
    let policy = answer.first("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    // The way back after the form is held against the policy, too.
    let end = "form-action 'self' http://127.0.0.1:7777; base-uri 'none'; frame-ancestors 'none'";
    assert!(policy.ends_with(end), "{policy}");
    let cookie = answer.first("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
}

#[test]
fn approval_gives_a_code_to_the_person_who_signed_in() {
    let mut page = open("");
    let cookie = page.cookie.clone();
    let answer = page.decide(&YES, &[("cookie", &cookie), ("origin", ISSUER)]);
    assert_eq!(answer.status, 303);
    let code = page.talk.members("code").unwrap();
    assert_eq!(page.talk.members("state").as_deref(), Some("s1"));
    page.talk.values.insert("code".to_owned(), code);
    page.talk.run("exchange\n< 200 scope=files:read+files:write access_token=?");
    let token =
        trunkline_auth::jose::unverified_payload(&page.talk.values["access_token"]).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&token).unwrap();
    assert_eq!(claims["sub"], "bob");
}

#[test]
fn a_person_can_give_less_but_not_more() {
    let mut page = open("");
    let cookie = page.cookie.clone();
    let fields =
        [("user", "alice"), ("decision", "approve"), ("scope", "files:read"), ("scope", "admin")];
    page.decide(&fields, &[("cookie", &cookie)]);
    page.talk.values.insert("code".to_owned(), page.talk.members("code").unwrap());
    page.talk.run("exchange\n< 200 scope=files:read");
}

#[test]
fn denial_and_strangers_are_denied() {
    for fields in [
        &[("decision", "deny"), ("user", "alice")][..],
        &[("decision", "approve"), ("user", "mallory")],
        &[("decision", "approve")],
        &[("user", "alice")],
    ] {
        let mut page = open("");
        let cookie = page.cookie.clone();
        let answer = page.decide(fields, &[("cookie", &cookie)]);
        assert_eq!(answer.status, 303);
        assert_eq!(page.talk.members("error").as_deref(), Some("access_denied"));
        assert_eq!(page.talk.members("iss").as_deref(), Some(ISSUER));
        assert_eq!(page.talk.members("state").as_deref(), Some("s1"));
        assert_eq!(page.talk.members("code"), None);
    }
}

#[test]
fn an_answer_counts_once_and_from_the_browser_that_was_asked() {
    let mut page = open("");
    let cookie = page.cookie.clone();
    let other = "trunkline-authority=0123456789abcdef0123456789abcdef";
    for headers in [
        &[][..],
        &[("cookie", other)],
        &[("cookie", "trunkline-authority=")],
        &[("cookie", &*cookie), ("origin", "https://evil.example")],
        &[("cookie", &*cookie), ("origin", "null")],
        &[("cookie", &*cookie), ("origin", "http://localhost:9001")],
    ] {
        let answer = page.decide(&YES, headers);
        assert_eq!((answer.status, answer.first("location")), (403, None), "{headers:?}");
    }
    assert_eq!(page.decide(&YES, &[("cookie", &cookie)]).status, 303);
    assert_eq!(page.decide(&YES, &[("cookie", &cookie)]).status, 403, "it was answered");

    let mut page = open("");
    let cookie = page.cookie.clone();
    page.talk.run("wait 600");
    assert_eq!(page.decide(&YES, &[("cookie", &cookie)]).status, 403, "it is too old");
}

#[test]
fn two_pages_in_one_browser_are_both_answered() {
    let mut page = open("");
    let cookie = page.cookie.clone();
    page.talk.values.insert("cookie".to_owned(), cookie.clone());
    page.talk.run("authorize\n| Cookie: $cookie\n< 200");
    assert_eq!(page.talk.answer.as_ref().unwrap().first("set-cookie"), None, "it has one");
    assert_eq!(page.decide(&YES, &[("cookie", &cookie)]).status, 303);
}

#[test]
fn what_strangers_call_themselves_stays_text() {
    let page = open("client_id=evil\"><script> redirect_uri=https://app.example/cb?a=1");
    assert!(page.html.contains("&lt;b&gt;Editor&lt;/b&gt; &amp; co"), "{}", page.html);
    assert!(page.html.contains("<code>evil&quot;&gt;&lt;script&gt;</code>"), "{}", page.html);
    assert!(page.html.contains("<strong>https://app.example</strong>"), "{}", page.html);
    assert!(!page.html.contains("<script>") && !page.html.contains('\u{202e}'));

    let mut page = page;
    let cookie = page.cookie.clone();
    let answer = page.decide(&YES, &[("cookie", &cookie)]);
    assert!(answer.first("location").unwrap().starts_with("https://app.example/cb?a=1&code="));
}

#[test]
fn schemes_and_addresses_that_a_policy_cannot_name_are_allowed_as_schemes() {
    for (redirect, host, policy) in [
        (
            "com.example.app:/cb",
            "an application that opens “com.example.app:” links",
            "'self' com.example.app:;",
        ),
        ("http://[::1]:5000/cb", "http://[::1]:5000 (this machine)", "'self' http:;"),
    ] {
        let page = open(&format!("client_id=app redirect_uri={redirect}"));
        assert!(page.html.contains(host), "{}", page.html);
        let said = page.talk.answer.as_ref().unwrap().first("content-security-policy").unwrap();
        assert!(said.contains(policy), "{said}");
    }
}

#[test]
fn with_tls_the_cookie_is_the_hosts_alone() {
    let authority = Authority::new("https://id.example", asking());
    let mut talk = Talk::new(authority);
    talk.run("authorize\n< 200");
    let cookie = talk.answer.as_ref().unwrap().first("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-authority="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
}

#[test]
fn nobody_can_be_asked_silently() {
    let mut talk = Talk::new(Authority::new(ISSUER, asking()));
    talk.run("authorize prompt=none\n< 303 error=login_required");
    let mut talk = Talk::new(Authority::new(ISSUER, settings()));
    talk.run("authorize prompt=none\n< 303 code=?");
    assert_eq!(talk.now, start());
}
