use super::*;

fn client(revision: Revision) -> TryClient {
    let params = json!({ "name": "push", "arguments": { "a": 1 } });
    let Value::Object(params) = params else { unreachable!("it is an object") };
    TryClient::new(revision, "t1", "tools/call", params)
}

fn sent(acts: &[Act], place: usize) -> Value {
    match &acts[place] {
        Act::Send(line) => serde_json::from_str(line).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_old_revision_is_opened_and_asks_by_requests() {
    let mut client = client(Revision::V2025_06_18);
    let hello = sent(&client.begin(), 0);
    assert_eq!(hello["params"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["params"]["clientInfo"]["version"], "t1");
    let acts = client.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#);
    assert_eq!(sent(&acts, 0)["method"], "notifications/initialized");
    let call = sent(&acts, 1);
    assert_eq!((&call["id"], &call["params"]["arguments"]["a"]), (&json!(2), &json!(1)));
    let acts = client
        .hear(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#);
    assert_eq!(acts, [Act::Tell("progress", json!({ "progress": 1 }))]);
    let acts = client.hear(
        r#"{"jsonrpc":"2.0","id":"s7","method":"elicitation/create","params":{"message":"?"}}"#,
    );
    let asked = json!({ "id": "r1", "method": "elicitation/create", "params": { "message": "?" } });
    assert_eq!(acts, [Act::Tell("question", asked)]);
    assert_eq!(client.answer("r9", Ok(json!({}))), [], "nobody asked that");
    let acts = client.answer("r1", Ok(json!({ "action": "accept" })));
    assert_eq!(
        sent(&acts, 0),
        json!({ "jsonrpc": "2.0", "id": "s7", "result": { "action": "accept" } })
    );
    let acts = client.hear(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[]}}"#);
    assert_eq!(acts, [Act::Tell("done", json!({ "result": { "content": [] } }))]);
}

#[test]
fn the_new_revision_asks_by_results_and_goes_on_with_all_answers() {
    let mut client = client(Revision::V2026_07_28);
    let call = sent(&client.begin(), 0);
    assert_eq!(call["params"]["_meta"][meta::PROTOCOL_VERSION], "2026-07-28");
    let acts = client.hear(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s",
            "inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{}}}}}"#,
    );
    assert_eq!(acts.len(), 2);
    assert_eq!(client.answer("a", Ok(json!({ "roots": [] }))), []);
    let acts = client.answer("b", Ok(json!({ "action": "decline" })));
    let again = sent(&acts, 0);
    assert_eq!((&again["id"], &again["params"]["requestState"]), (&json!(2), &json!("s")));
    assert_eq!(
        again["params"]["inputResponses"],
        json!({ "a": { "roots": [] }, "b": { "action": "decline" } })
    );
    let acts = client.hear(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"No."}}"#);
    assert_eq!(acts, [Act::Tell("done", json!({ "error": { "code": -1, "message": "No." } }))]);
}

fn no() -> ErrorObject {
    ErrorObject::new(-1, "The user said no.")
}

const GIVEN_UP: &str = r#"done {"error":{"code":-1,"message":"A client of 2026-07-28 cannot answer this question with an error, so the call was given up. The user said no."}}"#;

#[test]
fn an_old_server_gets_an_error_for_its_request() {
    let mut client = client(Revision::V2025_11_25);
    client.begin();
    hears(&mut client, 1, &json!({ "protocolVersion": "2025-11-25" }));
    client.hear(r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}"#);
    let data = Some(trunkline_wire::json::Json::parse("[1]").unwrap());
    let acts = client.answer("r1", Err(ErrorObject { data, ..no() }));
    let error = json!({ "code": -1, "message": "The user said no.", "data": [1] });
    assert_eq!(sent(&acts, 0), json!({ "jsonrpc": "2.0", "id": 9, "error": error }));
    assert_eq!(client.answer("r1", Err(no())), [], "it is answered");
}

#[test]
fn a_round_has_no_errors_so_a_form_is_cancelled_and_the_rest_ends_the_call() {
    let asks = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": {
        "form": { "method": "elicitation/create", "params": {} },
        "roots": { "method": "roots/list" },
    }});
    for is_roots in [false, true] {
        let mut client = client(Revision::V2026_07_28);
        client.begin();
        hears(&mut client, 1, &asks);
        assert_eq!(client.answer("form", Err(no())), []);
        let outcome = if is_roots { Err(no()) } else { Ok(json!({ "roots": [] })) };
        let said = shown(&client.answer("roots", outcome));
        match is_roots {
            true => assert_eq!(said, GIVEN_UP),
            false => {
                assert!(said.contains(r#""form":{"action":"cancel"}"#), "{said}");
            }
        }
    }
}

#[test]
fn a_task_whose_question_has_an_error_for_an_answer_is_cancelled() {
    let mut client = client(Revision::V2026_07_28);
    client.begin();
    let created = json!({ "resultType": "task", "taskId": "t", "status": "working" });
    hears(&mut client, 1, &created);
    client.due();
    let open = json!({ "q": { "method": "sampling/createMessage", "params": {} } });
    let asks = json!({ "taskId": "t", "status": "input_required", "inputRequests": open });
    hears(&mut client, 2, &asks);
    assert_eq!(shown(&client.answer("q", Err(no()))), r#"> tasks/cancel {"taskId":"t"}"#);
    assert_eq!(hears(&mut client, 3, &json!({})), r#"> tasks/get {"taskId":"t"}"#);
    let said = hears(&mut client, 4, &json!({ "taskId": "t", "status": "cancelled" }));
    assert!(said.ends_with(&format!("\n{GIVEN_UP}")), "{said}");
}

#[test]
fn a_handshake_that_fails_is_the_end() {
    let mut client = client(Revision::V2024_11_05);
    client.begin();
    let acts = client.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-2,"message":"Never."}}"#);
    assert_eq!(acts, [Act::Tell("done", json!({ "error": { "code": -2, "message": "Never." } }))]);
    let lost = client.hear("no JSON");
    assert_eq!(lost, []);
}

/// What is sent and told, one line each: `> METHOD PARAMS`, `EVENT DATA`, `wait MS`.
fn shown(acts: &[Act]) -> String {
    let line = |act: &Act| match act {
        Act::Send(line) => {
            let mut sent: Value = serde_json::from_str(line).unwrap();
            if let Some(params) = sent["params"].as_object_mut() {
                params.remove("_meta");
            }
            format!("> {} {}", sent["method"].as_str().unwrap(), sent["params"])
        }
        Act::Tell(name, data) => format!("{name} {data}"),
        Act::Wait(time) => format!("wait {}", time.as_millis()),
    };
    acts.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn hears(client: &mut TryClient, id: u64, result: &Value) -> String {
    shown(&client.hear(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()))
}

#[test]
fn a_task_of_2026_07_28_is_followed_through_its_question_to_its_result() {
    let mut client = client(Revision::V2026_07_28);
    let call = sent(&client.begin(), 0);
    let declared = &call["params"]["_meta"][meta::CLIENT_CAPABILITIES]["extensions"];
    assert!(declared[TASKS_EXTENSION].is_object(), "{call}");
    let state = |status: &str, more: Value| {
        let mut state = json!({ "resultType": "complete", "taskId": "t", "status": status, "pollIntervalMs": 70 });
        state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        state
    };
    let mut created = state("working", json!({}));
    created["resultType"] = json!("task");
    let told = r#"task {"pollIntervalMs":70,"status":"working","taskId":"t"}"#;
    assert_eq!(hears(&mut client, 1, &created), format!("{told}\nwait 70"));
    assert_eq!(shown(&client.due()), r#"> tasks/get {"taskId":"t"}"#);
    assert_eq!(client.due(), [], "one question about its state at a time");
    assert_eq!(hears(&mut client, 2, &state("working", json!({}))), "wait 70", "no news");
    client.due();
    let question = json!({ "method": "elicitation/create", "params": { "message": "?" } });
    let asks = state("input_required", json!({ "inputRequests": { "q": question } }));
    let said = hears(&mut client, 3, &asks);
    assert!(said.contains(r#""status":"input_required""#), "{said}");
    assert!(said.contains("\nquestion ") && said.ends_with("\nwait 70"), "{said}");
    client.due();
    assert_eq!(hears(&mut client, 4, &asks), "wait 70", "it is asked once");
    assert_eq!(
        shown(&client.answer("q", Ok(json!({ "action": "accept" })))),
        r#"> tasks/update {"inputResponses":{"q":{"action":"accept"}},"taskId":"t"}"#
    );
    assert_eq!(hears(&mut client, 5, &json!({})), r#"> tasks/get {"taskId":"t"}"#);
    let end = state("completed", json!({ "result": { "content": [] } }));
    let said = hears(&mut client, 6, &end);
    assert!(said.ends_with("\ndone {\"result\":{\"content\":[]}}"), "{said}");
}

#[test]
fn a_question_that_a_task_no_longer_asks_is_withdrawn() {
    let mut client = client(Revision::V2026_07_28);
    client.begin();
    let created = json!({ "resultType": "task", "taskId": "t", "status": "working" });
    hears(&mut client, 1, &created);
    client.due();
    let asks = json!({ "q": { "method": "roots/list" } });
    let asks = json!({ "taskId": "t", "status": "input_required", "inputRequests": asks });
    hears(&mut client, 2, &asks);
    client.due();
    let said = hears(&mut client, 3, &json!({ "taskId": "t", "status": "working" }));
    assert!(said.contains("withdrawn {\"id\":\"q\"}"), "{said}");
    assert_eq!(client.answer("q", Ok(json!({}))), []);
}

#[test]
fn a_task_of_2025_11_25_is_awaited_when_it_asks_and_when_it_ends() {
    let mut client = client(Revision::V2025_11_25);
    client.begin();
    hears(&mut client, 1, &json!({ "protocolVersion": "2025-11-25" }));
    let state = |status: &str| json!({ "taskId": "t", "status": status, "pollInterval": 60 });
    let said = hears(&mut client, 2, &json!({ "task": state("working") }));
    assert!(said.starts_with("task ") && said.ends_with("\nwait 60"), "{said}");
    client.due();
    let said = hears(&mut client, 3, &state("input_required"));
    assert!(said.ends_with("> tasks/result {\"taskId\":\"t\"}\nwait 60"), "{said}");
    let asked = r#"{"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{}}"#;
    assert!(shown(&client.hear(asked)).starts_with("question "));
    let withdrawn =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s1"}}"#;
    assert_eq!(shown(&client.hear(withdrawn)), r#"withdrawn {"id":"r1"}"#);
    let said = hears(&mut client, 4, &json!({ "content": [] }));
    assert_eq!(said, r#"> tasks/get {"taskId":"t"}"#, "its last state is told as well");
    let said = hears(&mut client, 5, &state("completed"));
    assert!(said.contains(r#""status":"completed""#), "{said}");
    assert!(said.ends_with("\ndone {\"result\":{\"content\":[]}}"), "{said}");
}

#[test]
fn a_task_of_2025_11_25_that_ends_without_a_question_is_asked_for_its_result() {
    let mut client = client(Revision::V2025_11_25);
    client.begin();
    hears(&mut client, 1, &json!({ "protocolVersion": "2025-11-25" }));
    hears(&mut client, 2, &json!({ "task": { "taskId": "t", "status": "working" } }));
    client.due();
    let said = hears(&mut client, 3, &json!({ "taskId": "t", "status": "failed" }));
    assert!(said.ends_with("\n> tasks/result {\"taskId\":\"t\"}"), "{said}");
    let said =
        shown(&client.hear(r#"{"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"No."}}"#));
    assert_eq!(said, r#"done {"error":{"code":-1,"message":"No."}}"#);
}

#[test]
fn a_task_is_cancelled_at_its_server_and_whoever_cancels_again_does_not_wait() {
    let mut client = client(Revision::V2025_11_25);
    client.begin();
    hears(&mut client, 1, &json!({ "protocolVersion": "2025-11-25" }));
    hears(&mut client, 2, &json!({ "task": { "taskId": "t", "status": "working" } }));
    assert_eq!(shown(&client.cancel()), r#"> tasks/cancel {"taskId":"t"}"#);
    assert_eq!(client.leave(), None, "it is cancelled already");
    assert!(shown(&client.cancel()).starts_with("done "), "the operator does not wait");
    let said = hears(&mut client, 3, &json!({ "taskId": "t", "status": "cancelled" }));
    assert!(
        said.ends_with(r#"done {"error":{"code":-32000,"message":"The task was cancelled."}}"#),
        "{said}"
    );
}

#[test]
fn a_task_that_cannot_be_asked_about_is_the_end() {
    let mut client = client(Revision::V2026_07_28);
    client.begin();
    let created = json!({ "resultType": "task", "taskId": "t", "status": "working" });
    hears(&mut client, 1, &created);
    client.due();
    let acts = client.hear(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"Gone."}}"#);
    assert_eq!(acts, [Act::Tell("done", json!({ "error": { "code": -1, "message": "Gone." } }))]);
}
