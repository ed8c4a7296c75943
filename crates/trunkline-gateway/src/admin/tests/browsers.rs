//! Browsers: how they get in, what they have open, and the calls that their operators try.

use super::*;

#[tokio::test]
async fn a_browser_with_a_link_gets_in_once() {
    let (admin, token) = Running::on_tcp().await;
    let own = format!("host: localhost\r\nauthorization: Bearer {token}\r\n");
    let link = admin.ask("POST /v1/console/link", &own, "").await;
    let start = format!(r#"200 {{"url":"{}/#k="#, admin.place);
    let key = link.strip_prefix(&start).and_then(|it| it.strip_suffix("\"}")).unwrap().to_owned();
    let port = admin.place.rsplit(':').next().unwrap().to_owned();
    let origin = format!("host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:{port}\r\n");
    let enter = "POST /v1/console/enter";
    let body = json!({ "key": key }).to_string();

    // From elsewhere the link is worth nothing, and stays good.
    for headers in [
        "host: evil.example\r\n".to_owned(),
        "host: localhost\r\norigin: http://evil.example\r\n".to_owned(),
        format!("host: 127.0.0.1:{port}\r\norigin: http://127.0.0.1:1\r\n"),
    ] {
        assert!(admin.ask(enter, &headers, &body).await.starts_with("403"), "{headers}");
    }
    for wrong in ["", "{}", r#"{"key":1}"#] {
        assert!(admin.ask(enter, &origin, wrong).await.starts_with("400"), "{wrong}");
    }
    assert!(admin.ask(enter, &origin, r#"{"key":"guessed"}"#).await.starts_with("401"));

    let (head, told) = admin.raw(enter, &origin, &body).await;
    let csrf = serde_json::from_str::<Value>(&told).unwrap()["csrf"].as_str().unwrap().to_owned();
    let cookie = head.lines().find_map(|it| it.strip_prefix("set-cookie: ")).unwrap().to_owned();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with(&format!("trunkline_console_{port}=")), "{cookie}");
    let again = admin.ask(enter, &origin, &body).await;
    assert!(again.starts_with("401") && again.contains("trunkline console"), "{again}");

    let stop = "POST /v1/servers/time/stop";
    let inside = format!("host: localhost\r\ncookie: a=b; {cookie}\r\n");
    let page = format!("{inside}sec-fetch-site: same-origin\r\n");
    let value = cookie.split_once('=').unwrap().1;
    for (request, headers, expected) in [
        ("GET /v1/servers/git", inside.clone(), "200"),
        ("GET /v1/servers/git", page.clone(), "200"),
        ("GET /v1/console/me", page.clone(), &*format!(r#"200 {{"csrf":"{csrf}"}}"#)),
        // Only the browser can vouch for the page.
        ("GET /v1/console/me", inside.clone(), "403"),
        ("GET /v1/servers/git", format!("{inside}sec-fetch-site: same-site\r\n"), "403"),
        ("GET /v1/servers/git", format!("{inside}sec-fetch-site: cross-site\r\n"), "403"),
        // What changes something needs more than a cookie.
        (stop, page.clone(), "403"),
        (stop, format!("{page}x-trunkline-csrf: guessed\r\n"), "403"),
        (stop, format!("{page}x-trunkline-csrf: {csrf}\r\n"), "200"),
        (stop, format!("{page}x-trunkline-csrf: {csrf}\r\norigin: http://evil.example\r\n"), "403"),
        ("GET /v1/servers/git", page.replace("localhost", "evil.example"), "403"),
        // The cookie of another port, under its name and under ours.
        (
            "GET /v1/servers/git",
            format!("host: localhost\r\ncookie: trunkline_console_1={value}\r\n"),
            "401",
        ),
        (
            "GET /v1/servers/git",
            format!("host: localhost\r\ncookie: trunkline_console_{port}={}\r\n", "0".repeat(64)),
            "401",
        ),
        ("GET /v1/servers/git", "host: localhost\r\n".to_owned(), "401"),
    ] {
        let found = admin.ask(request, &headers, "").await;
        assert!(found.starts_with(expected), "{request}\n{headers}{found}");
    }
    let out = format!("{page}x-trunkline-csrf: {csrf}\r\n");
    let (head, _) = admin.raw("POST /v1/console/leave", &out, "").await;
    assert!(head.contains("Max-Age=0"), "{head}");
    assert!(admin.ask("GET /v1/console/me", &page, "").await.starts_with("401"));
    assert!(admin.ask("GET /v1/servers/git", &inside, "").await.starts_with("401"));
    admin.stop().await;
}

#[tokio::test]
async fn a_link_older_than_five_minutes_lets_nobody_in() {
    let (admin, _) = Running::on_tcp().await;
    let (old, new) = (admin.link().await, admin.link().await);
    time_passes(Duration::from_secs(5 * 60 - 1)).await;
    let enter = async |key: &str| {
        let body = json!({ "key": key }).to_string();
        admin.ask("POST /v1/console/enter", "", &body).await
    };
    assert!(enter(&new).await.starts_with("200"));
    time_passes(Duration::from_secs(1)).await;
    let refused = enter(&old).await;
    assert!(refused.starts_with("401") && refused.contains("older than five minutes"), "{refused}");
    admin.stop().await;
}

#[tokio::test]
async fn what_a_browser_has_open_ends_when_it_signs_out_or_after_twelve_hours() {
    let (admin, token) = Running::on_tcp().await;
    *admin.operate.traffic.lock().unwrap() = Some(Traffic::new());
    let own = format!("host: localhost\r\nauthorization: Bearer {token}\r\n");
    for signs_out in [true, false] {
        let browser = admin.browser().await;
        let mut open = Vec::new();
        for headers in [&browser, &own] {
            let log = admin.stream("GET /v1/logs?follow=1", headers, "").await;
            let traffic = admin.stream("GET /v1/traffic/stream", headers, "").await;
            let tried = r#"{"method":"tools/call","params":{"name":"x"}}"#;
            let call = admin.stream("POST /v1/try", headers, tried).await;
            open.extend([log, traffic, call]);
        }
        for lines in &mut open {
            lines.says("").await;
        }
        match signs_out {
            true => {
                let left = admin.ask("POST /v1/console/leave", &browser, "").await;
                assert!(left.starts_with("200"), "{left}");
            }
            false => time_passes(Duration::from_secs(12 * 60 * 60)).await,
        }
        let others = open.split_off(3);
        for lines in open {
            lines.end().await;
        }
        let tries = std::mem::take(&mut *admin.operate.tries.lock().unwrap());
        tries[0].closed().await;
        assert!(!tries[1].is_closed(), "the token is good for longer");
        admin.operate.updates.send(Arc::new(line_of("git", "later"))).unwrap();
        tries[1].send(b"data: later\n\n".to_vec()).await.unwrap();
        for (number, mut lines) in others.into_iter().enumerate() {
            if number != 1 {
                lines.says("later").await;
            }
        }
        let again = admin.ask("GET /v1/logs", &browser, "").await;
        assert!(again.starts_with("401"), "{again}");
    }
    admin.stop().await;
}

#[tokio::test]
async fn a_browser_removes_a_recording_only_with_the_token_of_its_page() {
    let (admin, _) = Running::on_tcp().await;
    let browser = admin.browser().await;
    let without = browser.lines().filter(|it| !it.starts_with("x-trunkline-csrf"));
    let without: String = without.map(|it| format!("{it}\r\n")).collect();
    let remove = "DELETE /v1/recordings/one";
    assert!(admin.ask(remove, &without, "").await.starts_with("403"));
    assert_eq!(admin.ask(remove, &browser, "").await, r#"200 {"removed":"one"}"#);
    for (request, expected) in [
        ("DELETE /v1/recordings/other", "404 There is no recording `other`."),
        ("DELETE /v1/recordings", "405 "),
        ("POST /v1/recordings/one", "405 "),
        // A recording may have this name, too.
        ("DELETE /v1/recordings/diff", "404 There is no recording `diff`."),
    ] {
        let found = admin.ask(request, &browser, "").await;
        let found = found.replace(r#"{"error":{"advice":null,"message":""#, "");
        assert!(found.starts_with(expected), "{request}: {found}");
    }
    admin.stop().await;
}

#[tokio::test]
async fn beside_the_socket_browsers_have_a_port() {
    let admin = Running::on_socket().await;
    let link = admin.ask("POST /v1/console/link", "", "").await;
    let url = link.strip_prefix(r#"200 {"url":"http://"#).and_then(|it| it.strip_suffix("\"}"));
    let (address, key) = url.and_then(|it| it.split_once("/#k=")).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = json!({ "key": key }).to_string();
    for (request, expected) in [
        ("GET /v1/servers/git HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), "401"),
        ("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), "200"),
        ("GET /healthz HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(), "403"),
        (
            format!(
                "POST /v1/console/enter HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            ),
            "200",
        ),
    ] {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = vec![0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head[9..], expected.as_bytes(), "{request}");
        let mut rest = BufReader::new(&mut stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            rest.read_line(&mut line).await.unwrap();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        rest.read_exact(&mut vec![0; length]).await.unwrap();
    }
    admin.stop().await;
}

#[tokio::test]
async fn a_call_of_an_operator_may_be_as_large_as_a_message_of_anybody() {
    let admin = Running::on_socket().await;
    let call = |size: usize| {
        let text = "x".repeat(size);
        json!({ "method": "tools/call", "params": { "text": text } }).to_string()
    };
    let mut lines = admin.stream("POST /v1/try", "", &call(5 << 20)).await;
    lines.says(&format!("data: {}", 5 << 20)).await;
    let answer = json!({ "question": "q", "result": { "text": "x".repeat(1 << 20) } }).to_string();
    let told = admin.ask("POST /v1/try/t/answer", "", &answer).await;
    assert_eq!(told, r#"200 {"answered":"q"}"#);
    let found = admin.refused("POST /v1/try", &call(16 << 20)).await;
    assert!(found.starts_with("413 The body has more than 16777216 bytes."), "{found}");
    admin.stop().await;
}

#[tokio::test]
async fn a_question_is_answered_with_a_result_or_an_error_and_not_with_both() {
    let admin = Running::on_socket().await;
    let answer = "POST /v1/try/t/answer";
    for (body, expected) in [
        (r#"{"question":"q","result":{}}"#, r#"200 {"answered":"q"}"#),
        (
            r#"{"question":"q","error":{"code":-1,"message":"No."}}"#,
            r#"200 {"answered":{"code":-1,"message":"No."}}"#,
        ),
        (r#"{"question":"q"}"#, "400 "),
        (r#"{"question":"q","result":{},"error":{"code":-1,"message":"No."}}"#, "400 "),
        (r#"{"question":"q","error":{"code":-1}}"#, "400 "),
        (r#"{"question":"q","error":"No."}"#, "400 "),
        (r#"{"result":{}}"#, "400 "),
    ] {
        let found = admin.ask(answer, "", body).await;
        assert!(found.starts_with(expected), "{body}: {found}");
    }
    admin.stop().await;
}
