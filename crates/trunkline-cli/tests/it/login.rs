//! `login`, `logout` and `whoami`, and calls that use what they keep.

mod broken;
mod damaged;
mod ends;
mod machine;
mod place;
mod programs;
mod refused;

use serde_json::Value;
use trunkline_authority::Settings;

use self::place::{Demo, Place, get, pages};

#[tokio::test]
async fn a_person_logs_in_to_the_demo_and_calls_are_let_in() {
    let demo = Demo::start("demo").await;
    let url = &*demo.url;
    let found = demo.run(&["call", "whoami", url]).await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    assert!(found.stderr.contains(&format!("`{url}` wants a login, and there is none.")));
    assert!(found.stderr.contains(&format!("try: `trunkline login {url}`")), "{}", found.stderr);
    let token = "or `--header 'Authorization: Bearer TOKEN'` if you were given one";
    assert!(found.stderr.contains(token), "{}", found.stderr);

    let found = demo.login(&["login", "--no-browser", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    let steps = ["connect: ", "discover: ", "register: ", "browser: ", "token: ", "check: "];
    let places: Vec<_> = steps.iter().map(|it| found.stderr.find(it).expect(it)).collect();
    assert!(places.is_sorted(), "{}", found.stderr);
    assert!(
        found.stdout.starts_with("Logged in. (The trunkline demo 0.1.0)\n"),
        "{}",
        found.stdout
    );
    for line in [format!("\n{url}\n"), "  as        alice\n".into(), "  scopes    demo\n".into()] {
        assert!(found.stdout.contains(&line), "{line:?} in {}", found.stdout);
    }
    assert!(found.stdout.contains(", and renews itself\n"), "{}", found.stdout);

    let found = demo.run(&["call", "whoami", url]).await;
    assert_eq!((found.code, &*found.stdout), (0, "alice may demo\n"), "{}", found.stderr);
    let found = demo.run(&["list", "tools", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);

    let found = demo.run(&["call", "touch", "uri=demo://readme", url]).await;
    assert_eq!(found.code, 4, "{}", found.stderr);
    let more = format!("try: `trunkline login --scope 'demo demo:write' {url}`");
    assert!(found.stderr.contains("lacks a scope"), "{}", found.stderr);
    assert!(found.stderr.contains(&more), "{}", found.stderr);
    let found = demo.login(&["login", "--no-browser", "--scope", "demo demo:write", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    let found = demo.run(&["call", "touch", "uri=demo://readme", url]).await;
    assert_eq!((found.code, &*found.stdout), (0, "touched\n"), "{}", found.stderr);

    let found = demo.run(&["logout", url]).await;
    assert_eq!((found.code, found.stdout), (0, format!("Logged out of {url}.\n")));
    let found = demo.run(&["call", "whoami", url]).await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    assert!(found.stderr.contains(&format!("`trunkline login {url}`")), "{}", found.stderr);
}

#[tokio::test]
async fn who_is_logged_in_is_told_to_people_and_to_programs() {
    let place = Place::open("told", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    let found = place.run(&["whoami"]).await;
    assert_eq!(found.code, 0);
    assert!(found.stdout.starts_with("Nobody is logged in anywhere."), "{}", found.stdout);
    let found = place.run(&["whoami", url]).await;
    assert_eq!(found.code, 4);
    assert!(found.stderr.contains(&format!("Nobody is logged in to `{url}`.")), "{}", found.stderr);
    assert!(found.stderr.contains(&format!("try: `trunkline login {url}`")), "{}", found.stderr);

    let found = place.login(&["login", "--no-browser", "--json", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    let told: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(told["subject"], "alice");
    let found = place.run(&["whoami", "--json", url]).await;
    let one: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(one, told);
    assert_eq!((&one["server"], &one["resource"]), (&Value::from(url), &Value::from(url)));
    assert_eq!(one["issuer"], place.authority.issuer());
    assert_eq!((&one["loggedIn"], &one["renews"]), (&true.into(), &true.into()));
    assert!(one["expiresAt"].as_u64().is_some(), "{one}");
    let found = place.run(&["whoami", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&found.stdout).unwrap(), Value::from(vec![one]));
    let found = place.run(&["whoami"]).await;
    assert!(
        found.stdout.contains("  expires   in 60 minutes, and renews itself\n"),
        "{}",
        found.stdout
    );
    let secrets = place.texts();
    assert!(!secrets.is_empty());
    for word in secrets.iter().flat_map(|it| it.split('"')).filter(|it| it.starts_with("eyJ")) {
        assert!(!found.stdout.contains(word), "a token is shown");
    }

    let found = place.run(&["logout", "--all", "--json"]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(place.authority.stats().revocations, 1, "the login was given back");
    assert!(place.texts().is_empty(), "nothing is left");
    let found = place.run(&["logout", url]).await;
    assert_eq!((found.code, found.stdout), (0, format!("Nobody was logged in to {url}.\n")));
}

#[tokio::test]
async fn a_registration_that_the_authorization_server_forgot_costs_one_login() {
    let place = Place::open("forgotten", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    let login = ["login", "--no-browser", url];
    assert_eq!(place.login(&login).await.code, 0);
    // As if the authorization server had been started anew.
    place.change("client ", |client| client["id"] = "nobody".into());
    let mut stuck = place.start(&login);
    let page = get(&stuck.page().await).await;
    assert_eq!((page.status, page.location), (400, None), "it can tell nobody but the person");
    stuck.terminate();
    assert_eq!(stuck.end().await.code, 143);

    let found = place.login(&login).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    let issuer = place.authority.issuer();
    let why = format!(
        "register: the last login at `{issuer}` never came back from its page, so the client \
         registers there again.\nregister: becoming known to `{issuer}` …\n"
    );
    assert!(found.stderr.contains(&why), "{}", found.stderr);
    assert!(place.texts().iter().all(|it| !it.contains("nobody")));
    let found = place.login(&login).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(!found.stderr.contains("register: "), "it is known: {}", found.stderr);
    assert_eq!(place.authority.stats().authorizations, 4);
}

#[tokio::test]
async fn a_new_registration_can_be_asked_for() {
    let place = Place::open("anew", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    place.change("client ", |client| client["id"] = "nobody".into());
    let found = place.login(&["login", "--no-browser", "--register", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stderr.contains("register: becoming known"), "{}", found.stderr);
    let found = place.run(&["login", "--register", "--client-id", "x", url]).await;
    assert_eq!(found.code, 2, "{}", found.stderr);
}

#[tokio::test]
async fn a_logout_of_all_says_which_registrations_it_forgot() {
    let place = Place::open("registrations", Settings::new().approve_as("alice")).await;
    let (url, issuer) = (&*place.url, place.authority.issuer().to_owned());
    let registration = format!("Forgot the registration of this client at {issuer}.\n");
    let login = ["login", "--no-browser", url];
    assert_eq!(place.login(&login).await.code, 0);
    let found = place.run(&["logout", "--all"]).await;
    let expected = format!("Logged out of {url}.\n{registration}");
    assert_eq!((found.code, found.stdout), (0, expected), "{}", found.stderr);
    // A login that came to nothing leaves a registration, and that alone.
    let mut left = place.start(&login);
    left.page().await;
    left.terminate();
    assert_eq!(left.end().await.code, 143);
    let found = place.run(&["logout", "--all"]).await;
    assert_eq!((found.code, found.stdout), (0, registration), "{}", found.stderr);
    assert!(place.texts().is_empty(), "nothing is left");
    let found = place.run(&["logout", "--all"]).await;
    assert_eq!((found.code, &*found.stdout), (0, "Nobody was logged in anywhere.\n"));

    assert_eq!(place.login(&login).await.code, 0);
    let found = place.run(&["logout", "--all", "--json"]).await;
    let told: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(told, serde_json::json!({ "forgotten": [url], "registrations": [issuer] }));
}

#[tokio::test]
async fn a_login_that_is_due_is_renewed_once_for_two_calls() {
    let place = Place::open("due", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    let found = place.login(&["login", "--no-browser", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(place.authority.stats().refreshes, 0);
    place.change_token(|token| {
        token["expires"] = 1.into();
        token["renew"] = 1.into();
    });
    let found = place.run(&["whoami", url]).await;
    assert!(found.stdout.contains("days ago; the next call renews it"), "{}", found.stdout);
    let call = ["call", "whoami", url];
    let (one, other) = tokio::join!(place.run(&call), place.run(&call));
    for found in [one, other] {
        assert_eq!((found.code, &*found.stdout), (0, "alice\n"), "{}", found.stderr);
        assert_eq!(found.stderr, "", "nobody hears of it");
    }
    let stats = place.authority.stats();
    assert_eq!((stats.refreshes, stats.reuses, stats.authorizations), (1, 0, 1));
}

#[tokio::test]
async fn a_login_that_has_ended_says_what_to_do() {
    let place = Place::open("ended", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    place.change_token(|token| {
        token["expires"] = 1.into();
        token["renew"] = 1.into();
        token["refresh"] = "spent-long-ago".into();
    });
    for json in [&[][..], &["--json"]] {
        let found = place.run(&[&["call", "whoami"], json, &[url]].concat()).await;
        assert_eq!(found.code, 3, "{}", found.stderr);
        assert!(found.stderr.contains(&format!("The login to `{url}` has ended.")));
        assert!(found.stderr.contains(&format!("try: `trunkline login {url}`")));
    }
    assert_eq!(place.authority.stats().authorizations, 1, "nobody was sent to a browser");
    let found = place.login(&["login", "--no-browser", url]).await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(place.run(&["ping", url]).await.code, 0);
}

#[tokio::test]
async fn the_address_can_be_pasted() {
    let place = Place::open("pasted", Settings::new().approve_as("alice")).await;
    let mut login = place.start(&["login", "--no-browser", &place.url]);
    let page = login.page().await;
    let back = get(&page).await.location.expect("it redirects");
    login.type_line("http://127.0.0.1:1/callback?code=other").await;
    login.type_line(&back).await;
    let found = login.end().await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stderr.contains("That address does not begin with"), "{}", found.stderr);
    assert!(found.stdout.contains("  as        alice\n"), "{}", found.stdout);
}

#[tokio::test]
async fn a_person_may_say_no() {
    let place = Place::open("no", Settings::new().users(["alice"])).await;
    let mut login = place.start(&["login", "--no-browser", &place.url]);
    let page = login.page().await;
    assert_eq!(get(&page).await.status, 200, "the authorization server asks");
    let field = |name: &str| {
        let at = page.find(&format!("{name}=")).expect("it is there") + name.len() + 1;
        page[at..].split('&').next().unwrap_or_default().to_owned()
    };
    let back = field("redirect_uri").replace("%3A", ":").replace("%2F", "/");
    let issuer = place.authority.issuer().replace(':', "%3A").replace('/', "%2F");
    let query = format!("error=access_denied&state={}&iss={issuer}", field("state"));
    assert_eq!(get(&format!("{back}?{query}")).await.status, 200);
    let found = login.end().await;
    assert_eq!(found.code, 4, "{}", found.stderr);
    assert!(found.stderr.contains("login failed: "), "{}", found.stderr);
    assert!(found.stderr.contains("access_denied"), "{}", found.stderr);
    assert!(place.run(&["whoami"]).await.stdout.starts_with("Nobody is logged in"));
}

#[tokio::test]
async fn a_header_of_ones_own_goes_before_the_login() {
    let place = Place::open("header", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    let header = ["--header", "authorization: Bearer guessed"];
    let found = place.run(&[&["call", "whoami"], &header[..], &[url]].concat()).await;
    assert_eq!(found.code, 3, "{}", found.stderr);
    assert!(found.stderr.contains("Check the `Authorization` header"), "{}", found.stderr);
    let key = ["--header", "Authorization: Bearer pQ7-lVhCgW2kXr9bTz4n"];
    let found = place.run(&[&["call", "whoami"], &key[..], &[url]].concat()).await;
    assert_eq!((found.code, &*found.stdout), (0, "build-robot\n"), "{}", found.stderr);
}

#[tokio::test]
async fn the_port_can_be_chosen_and_tokens_bound_to_a_key() {
    let place = Place::open("port", Settings::new().approve_as("alice")).await;
    let url = &*place.url;
    assert_eq!(place.login(&["login", "--no-browser", url]).await.code, 0);
    // One that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = port.to_string();
    let mut login = place.start(&["login", "--no-browser", "--dpop", "--port", &port, url]);
    let page = login.page().await;
    assert!(page.contains(&format!("redirect_uri=http%3A%2F%2F127.0.0.1%3A{port}%2Fcallback")));
    pages(&page).await;
    let found = login.end().await;
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert!(found.stdout.contains("  bound     to a key of this machine (DPoP)\n"));
    assert_eq!(place.run(&["call", "whoami", url]).await.stdout, "alice\n");
    assert_eq!(place.authority.stats().registrations, 2, "the first had another port");
}
