//! Logins of each principal's own (`auth.perUser`), through pages of the gateway: two people, two accounts.

mod browser;

use std::net::SocketAddr;
use std::time::SystemTime;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use trunkline::server::protect::{JwtIssuer, Protect};
use trunkline::{Principal, Revision, Server, tool};
use trunkline_authority::{Authority, Serving, Settings};
use trunkline_testkit::http::{Guest, Line, request};
use trunkline_testkit::peer::PATIENCE;

use self::browser::Browser;
use crate::gateway_kit::{Gateway, Place, signal};

const ANN: &str = "a-long-enough-secret-of-ann";
const BOB: &str = "a-long-enough-secret-of-bob";

/// A server that tells people who they are, with an authorization server of its own.
struct Upstream {
    url: String,
    authority: Serving,
}

impl Upstream {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let authority = authority(&url, ["ann-at-work", "bob-at-work"]).await;
        let protect = Protect::new(&*url).jwt(believed(&authority)).scopes_required(["mcp"]);
        let whoami = tool("whoami", async |who: Principal| who.subject);
        let server = Server::builder("upstream", "1.0.0").tool(whoami).build();
        let http = server.http().protect(protect).unwrap();
        tokio::spawn(async move { http.serve(listener, std::future::pending()).await });
        Self { url, authority }
    }

    fn catalog(&self, gateway: Value) -> Value {
        let auth = json!({ "type": "login", "perUser": true });
        json!({ "gateway": gateway, "mcpServers": { "work": { "url": self.url, "auth": auth } } })
    }
}

async fn authority(resource: &str, users: [&str; 2]) -> Serving {
    let at = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = Settings::new().users(users).scopes(["mcp"]).resource(resource);
    Authority::serve(at, settings).unwrap()
}

fn believed(authority: &Serving) -> JwtIssuer {
    JwtIssuer::new(authority.issuer()).jwks_url(format!("{}/jwks", authority.issuer()))
}

fn tokens() -> Value {
    let token = |name: &str, token: &str| json!({ "name": name, "token": token });
    json!({ "auth": { "tokens": [token("ann", ANN), token("bob", BOB)] } })
}

/// A client that says who it is.
struct Client {
    guest: Guest,
    token: String,
}

impl Client {
    async fn open(address: SocketAddr, revision: Revision, token: &str) -> Self {
        let mut client = Self { guest: Guest::new(address, revision), token: token.to_owned() };
        if revision != Revision::V2026_07_28 {
            let hello = client.guest.hello();
            let (session, answer) = client.post("initialize", hello).await;
            assert_eq!(answer["result"]["protocolVersion"], revision.as_str(), "{answer}");
            client.guest.session = session;
            let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            client.send(&message).await;
        }
        client
    }

    async fn send(&self, message: &Value) -> (Line, Option<String>, bool) {
        let mut headers = self.guest.headers(message);
        headers.push(("Authorization".to_owned(), format!("Bearer {}", self.token)));
        let mut line = Line::to(self.guest.address).await;
        line.send(request(self.guest.address, "POST /mcp", &headers, &message.to_string())).await;
        let head = line.head().await;
        let session = head.get("mcp-session-id").map(str::to_owned);
        (line, session, head.is_events())
    }

    async fn post(&mut self, method: &str, params: Value) -> (Option<String>, Value) {
        let message = self.guest.prepare(method, params);
        let (mut line, session, is_events) = self.send(&message).await;
        if !is_events {
            return (session, line.json().await);
        }
        loop {
            let (_, said) = line.message().await.expect("there is an answer");
            if said.get("method").is_none() {
                return (session, said);
            }
        }
    }

    /// The stream of its session.
    async fn listen(&self) -> Line {
        let mut headers = self.guest.session_headers();
        headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
        headers.push(("Authorization".to_owned(), format!("Bearer {}", self.token)));
        let mut line = Line::to(self.guest.address).await;
        line.send(request(self.guest.address, "GET /mcp", &headers, "")).await;
        assert!(line.head().await.is_events());
        line
    }

    async fn whoami(&mut self, more: Value) -> Value {
        let mut params = json!({ "name": "work.whoami", "arguments": {} });
        for (name, value) in more.as_object().into_iter().flatten() {
            params[name] = value.clone();
        }
        self.post("tools/call", params).await.1
    }

    /// The link that it is told to open, in the way of its revision.
    async fn link(&mut self) -> String {
        let answer = self.whoami(json!({})).await;
        let link = match self.guest.revision {
            Revision::V2026_07_28 => {
                answer["result"]["inputRequests"]["login"]["params"]["url"].as_str()
            }
            Revision::V2025_11_25 => answer["error"]["data"]["elicitations"][0]["url"].as_str(),
            _ => answer["error"]["data"]["advice"].as_str().and_then(|it| it.split(' ').nth(1)),
        };
        link.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    async fn is(&mut self, who: &str) {
        let answer = self.whoami(json!({})).await;
        assert_eq!(answer["result"]["content"][0]["text"], who, "{answer}");
    }
}

/// Has a gateway end, and waits until it has.
async fn end(mut gateway: Gateway) {
    signal("TERM", &[gateway.pid()]).await;
    let ended = tokio::time::timeout(PATIENCE, gateway.process.wait()).await;
    ended.expect("it ends").expect("it is ours");
}

/// A gateway in front of an upstream that wants a login of everybody.
async fn opened(name: &str) -> (Place, Upstream, Gateway) {
    let (place, upstream) = (Place::new(name), Upstream::start().await);
    place.catalog(&upstream.catalog(tokens()));
    let gateway = Gateway::start(&place).await;
    (place, upstream, gateway)
}

#[tokio::test]
async fn each_principal_uses_its_own_account() {
    let (place, upstream, gateway) = opened("accounts").await;
    let mut ann = Client::open(gateway.address, Revision::V2026_07_28, ANN).await;
    let listed = ann.post("tools/list", json!({})).await.1;
    let missing = listed["result"]["_meta"]["trunkline/missing"]["work"].as_str();
    assert!(missing.is_some_and(|it| it.contains("logged in")), "{listed}");

    // 2026-07-28: a question, and the call goes on when it comes back.
    let asked = ann.whoami(json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let login = &asked["result"]["inputRequests"]["login"]["params"];
    assert_eq!(login["mode"], "url", "{asked}");
    let link = login["url"].as_str().unwrap();
    let answers = |action| json!({ "login": { "action": action } });
    let state = &asked["result"]["requestState"];
    let no = json!({ "requestState": state, "inputResponses": answers("decline") });
    let answer = ann.whoami(no).await;
    assert_eq!(answer["error"]["data"]["reason"], "login_declined", "{answer}");
    // It may come back before the person is done: then it waits.
    let yes = json!({ "requestState": state, "inputResponses": answers("accept") });
    let (mut browser, form) = (Browser::new(), format!("token={ANN}"));
    let (answer, done) =
        tokio::join!(ann.whoami(yes), browser.connect(link, &form, &["ann-at-work"]));
    assert!(done.status == 200 && done.body.contains("is connected"), "{done:?}");
    assert_eq!(answer["result"]["content"][0]["text"], "ann-at-work", "{answer}");
    let listed = ann.post("tools/list", json!({})).await.1;
    assert_eq!(listed["result"]["tools"][0]["name"], "work.whoami", "{listed}");

    // 2025-11-25: an error that names the page; 2025-06-18: a failure whose advice is the link.
    let mut bob = Client::open(gateway.address, Revision::V2025_11_25, BOB).await;
    let asked = bob.whoami(json!({})).await;
    assert_eq!(asked["error"]["code"], -32042, "{asked}");
    assert!(asked["error"]["data"]["elicitations"][0]["elicitationId"].is_string(), "{asked}");
    let mut old = Client::open(gateway.address, Revision::V2025_06_18, BOB).await;
    let asked = old.whoami(json!({})).await;
    assert_eq!(asked["error"]["data"]["reason"], "login_required", "{asked}");
    let link = old.link().await;
    assert_eq!(link, bob.link().await, "one that is fresh is given out again");
    Browser::new().connect(&link, &format!("token={BOB}"), &["bob-at-work"]).await;
    bob.is("bob-at-work").await;
    old.is("bob-at-work").await;
    ann.is("ann-at-work").await;
    assert_eq!(upstream.authority.stats().registrations, 1, "all are logged in by one client");
    for file in place.files("state/accounts") {
        assert_eq!(file.1 & 0o077, 0, "{file:?}");
    }
}

#[tokio::test]
async fn a_link_is_for_one_principal_one_browser_and_one_time() {
    let (_place, _upstream, gateway) = opened("links").await;
    let mut ann = Client::open(gateway.address, Revision::V2025_06_18, ANN).await;
    let mut bob = Client::open(gateway.address, Revision::V2025_06_18, BOB).await;

    // Bob sends Ann his link. She learns whose it is, and it is of no use to anybody any more.
    let link = bob.link().await;
    let page = Browser::new().get(&link).await;
    assert!(page.body.contains("You connect <code>work</code> for <code>bob</code>"), "{page:?}");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
        ("content-security-policy", "frame-ancestors 'none'"),
    ] {
        assert!(page.header(name).is_some_and(|it| it.contains(value)), "{page:?}");
    }
    let page = Browser::new().post(&link, &format!("token={ANN}")).await;
    assert_eq!(page.status, 403);
    assert!(page.body.contains("was made for `bob`, and you are `ann`"), "{page:?}");
    let page = Browser::new().post(&link, &format!("token={BOB}")).await;
    assert_eq!(page.status, 410, "it was used");
    assert_eq!(Browser::new().get(&link).await.status, 410);

    // A login that was begun and left does not hold up the next one.
    let mut browser = Browser::new();
    let page = browser.post(&bob.link().await, &format!("token={BOB}")).await;
    let left = browser.approve(&page.leads_to(), "bob-at-work").await;
    let page = browser.connect(&bob.link().await, &format!("token={BOB}"), &["bob-at-work"]).await;
    assert!(page.body.contains("is connected"), "{page:?}");
    assert_eq!(browser.get(&left).await.status, 403, "it was given up");

    // A token that is nobody's may be a slip of the hand.
    let link = ann.link().await;
    let page = Browser::new().post(&link, "token=nobody-has-this-token").await;
    assert!(page.status == 403 && page.body.contains("not let in"), "{page:?}");
    let mut browser = Browser::new();
    let page = browser.post(&link, &format!("token={ANN}")).await;
    let back = browser.approve(&page.leads_to(), "ann-at-work").await;
    let page = Browser::new().get(&back).await;
    assert!(page.status == 403 && page.body.contains("another browser"), "{page:?}");
    let other = back.replace("state=", "state=x");
    let page = browser.get(&other).await;
    assert!(page.status == 403 && page.body.contains("is over"), "{page:?}");
    let page = browser.get(&back).await;
    assert!(page.status == 200 && page.body.contains("is connected"), "{page:?}");
    let page = browser.get(&back).await;
    assert_eq!(page.status, 403, "once: {page:?}");
    ann.is("ann-at-work").await;
    assert_eq!(Browser::new().get(&gateway.url("/accounts/login/made-up")).await.status, 410);
}

#[tokio::test]
async fn a_login_outlives_the_gateway_and_ends_when_somebody_says_so() {
    let (place, upstream) = (Place::new("disconnect"), Upstream::start().await);
    let mut gateway = tokens();
    gateway["audit"] = json!("audit.jsonl");
    place.catalog(&upstream.catalog(gateway));
    let gateway = Gateway::start(&place).await;
    let mut ann = Client::open(gateway.address, Revision::V2025_11_25, ANN).await;
    let asked = ann.whoami(json!({})).await;
    let elicitation = &asked["error"]["data"]["elicitations"][0];
    let mut stream = ann.listen().await;
    let link = elicitation["url"].as_str().unwrap();
    Browser::new().connect(link, &format!("token={ANN}"), &["ann-at-work"]).await;
    let told = loop {
        let (_, told) = stream.message().await.expect("the stream is open");
        if told["method"] == "notifications/elicitation/complete" {
            break told;
        }
    };
    assert_eq!(told["params"]["elicitationId"], elicitation["elicitationId"], "{told}");
    ann.is("ann-at-work").await;
    let address = gateway.address.to_string();
    end(gateway).await;

    let gateway = Gateway::start_at(&place, &address).await;
    let mut ann = Client::open(gateway.address, Revision::V2025_06_18, ANN).await;
    ann.is("ann-at-work").await;
    let run = |args: &'static [&'static str]| place.run(args);
    let ps = run(&["ps"]).await;
    assert!(ps.contains("1 logged in"), "{ps}");
    let told = run(&["disconnect", "work", "bob"]).await;
    assert_eq!(told, "Nobody of that name was logged in to `work`.\n");
    let told = run(&["disconnect", "work", "ann"]).await;
    assert_eq!(told, "Logged out of `work`: `ann`.\n");
    assert!(upstream.authority.stats().revocations > 0, "the tokens were given back");
    let link = ann.link().await;
    Browser::new().connect(&link, &format!("token={ANN}"), &["bob-at-work"]).await;
    ann.is("bob-at-work").await;
    assert_eq!(upstream.authority.stats().registrations, 1, "the registration stays");
    end(gateway).await;
    let audit = place.read("audit.jsonl");
    let events = audit.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let events = events.filter(|it| it["server"] == "work" && it["principal"] == "ann");
    let events: Vec<_> = events.filter_map(|it| Some(it["event"].as_str()?.to_owned())).collect();
    assert_eq!(events[..2], ["login", "logout"], "{audit}");
    assert!(!audit.contains("eyJ") && !audit.contains(ANN), "{audit}");
}

#[tokio::test]
async fn a_login_that_is_refused_leads_to_the_page_again() {
    let (place, _upstream, gateway) = opened("refused").await;
    let mut ann = Client::open(gateway.address, Revision::V2026_07_28, ANN).await;
    let link = ann.link().await;
    Browser::new().connect(&link, &format!("token={ANN}"), &["ann-at-work"]).await;
    ann.is("ann-at-work").await;
    end(gateway).await;
    // Nothing of what is kept is worth anything any more.
    for (path, _) in place.files("state/accounts") {
        let text = std::fs::read_to_string(&path).unwrap();
        if let Some((name, token)) = text.split_once('\n').filter(|it| it.0.contains(" token ")) {
            let mut token: Value = serde_json::from_str(token).unwrap();
            (token["access"], token["refresh"]) = ("worn-out".into(), Value::Null);
            std::fs::write(&path, format!("{name}\n{token}")).unwrap();
        }
    }
    let gateway = Gateway::start(&place).await;
    let mut ann = Client::open(gateway.address, Revision::V2026_07_28, ANN).await;
    let mut bob = Client::open(gateway.address, Revision::V2026_07_28, BOB).await;
    let link = bob.link().await;
    Browser::new().connect(&link, &format!("token={BOB}"), &["bob-at-work"]).await;
    let link = ann.link().await;
    bob.is("bob-at-work").await;
    Browser::new().connect(&link, &format!("token={ANN}"), &["ann-at-work"]).await;
    ann.is("ann-at-work").await;
    bob.is("bob-at-work").await;
}

/// An address below the ports that systems give out by themselves, so that nothing takes it before it is used.
async fn free_address() -> SocketAddr {
    for port in 21_000..32_000 {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await {
            return listener.local_addr().unwrap();
        }
    }
    panic!("no port is free")
}

#[tokio::test]
async fn the_gateways_own_issuer_says_who_opens_a_link() {
    let (place, upstream) = (Place::new("issuer"), Upstream::start().await);
    let at = free_address().await;
    let resource = format!("http://{at}/mcp");
    let own = authority(&resource, ["ann", "bob"]).await;
    let auth = json!({ "issuers": [own.issuer()], "resource": resource, "scopes": ["mcp"] });
    place.catalog(&upstream.catalog(json!({ "auth": auth })));
    let gateway = Gateway::start_at(&place, &at.to_string()).await;
    let token = |name| own.token(name, &resource, "mcp", SystemTime::now());
    let (ann, bob) = (token("ann"), token("bob"));
    let mut ann = Client::open(gateway.address, Revision::V2026_07_28, &ann).await;
    let mut bob = Client::open(gateway.address, Revision::V2025_11_25, &bob).await;

    let link = bob.link().await;
    let page = Browser::new().connect(&link, "", &["ann"]).await;
    assert_eq!(page.status, 403);
    assert!(page.body.contains("Not your link"), "{page:?}");

    let link = ann.link().await;
    let page = Browser::new().connect(&link, "", &["ann", "ann-at-work"]).await;
    assert!(page.status == 200 && page.body.contains("is connected"), "{page:?}");
    ann.is("ann-at-work").await;
    let link = bob.link().await;
    Browser::new().connect(&link, "", &["bob", "bob-at-work"]).await;
    bob.is("bob-at-work").await;
    ann.is("ann-at-work").await;
}
