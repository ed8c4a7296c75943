//! One handler asks its questions in every revision that has questions, and comes to the same end.

use serde_json::{Map, Value, json};
use trunkline::Revision::{self, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};
use trunkline_testkit::peer::{Host, Peer, helpful};

use crate::stdio::{Session, in_each};

const ASKING: [Revision; 3] = [V2025_06_18, V2025_11_25, V2026_07_28];

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("there is no text in {result}"))
}

/// What of a result does not depend on the revision.
fn core(result: &Value) -> Value {
    let members = ["content", "structuredContent", "isError"];
    let kept = members.into_iter().filter_map(|it| Some((it.to_owned(), result.get(it)?.clone())));
    kept.collect::<Map<_, _>>().into()
}

/// Answers forms with `content`, whatever is asked.
fn say(content: Value) -> Host {
    Box::new(move |_, _| Ok(json!({ "action": "accept", "content": content })))
}

fn progress(peer: &Peer) -> Vec<f64> {
    let steps = peer.heard.iter().filter(|it| it["method"] == "notifications/progress");
    steps.map(|it| it["params"]["progress"].as_f64().unwrap()).collect()
}

#[tokio::test]
async fn a_greeting_uses_the_name_that_the_user_gave() {
    in_each(ASKING, async |_, peer| {
        assert_eq!(text(&peer.tool("greet", json!({})).await), "Hello, Ada!");
        assert_eq!(peer.rounds, [["What is your name?"]]);
        peer.host = say(json!({ "name": "Grace", "formal": true }));
        assert_eq!(text(&peer.tool("greet", json!({})).await), "Good day, Grace.");
        peer.host = say(json!({ "name": "Alan", "formal": false }));
        let prompt = peer.expect("prompts/get", json!({ "name": "greet" })).await;
        let said = prompt["messages"][0]["content"]["text"].as_str();
        assert_eq!(said, Some("Say hello to Alan, in one sentence."));
    })
    .await;
}

#[tokio::test]
async fn a_booking_ends_the_same_in_every_revision_that_has_questions() {
    in_each(ASKING, async |revision, peer| {
        let params = json!({
            "name": "book",
            "arguments": { "city": "Oslo", "nights": 2 },
            "_meta": { "progressToken": "steps" },
        });
        let result = peer.expect("tools/call", params).await;
        let booking = json!({ "reference": "R-OSLO", "total": 198 });
        assert_eq!(result["structuredContent"], booking, "{revision}");
        assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), booking);
        // Strictly increasing, nothing twice, however often the handler ran.
        assert_eq!(progress(peer), [1.0, 2.0, 3.0], "{revision}");

        let first = ["2 nights in Oslo for 198?", "Name on the booking?"];
        let last = ["Ada, this cannot be refunded. Go ahead?"];
        match peer.is_stateless() {
            true => assert_eq!(peer.rounds, [&first[..], &last[..]], "two questions in one round"),
            false => assert_eq!(peer.rounds.concat(), [&first[..], &last[..]].concat()),
        }
    })
    .await;
}

#[tokio::test]
async fn a_user_who_declines_is_a_result_that_the_model_reads() {
    for (action, revision) in
        ["decline", "cancel"].into_iter().flat_map(|it| ASKING.map(|revision| (it, revision)))
    {
        let mut session = Session::demo(revision).await;
        let peer = &mut session.peer;
        peer.host = Box::new(move |_, _| Ok(json!({ "action": action })));
        let expected = json!({
            "content": [{ "type": "text", "text": "The user declined." }],
            "isError": true,
        });
        assert_eq!(core(&peer.tool("greet", json!({})).await), expected, "{revision}");
        let trip = json!({ "city": "Oslo", "nights": 2 });
        assert_eq!(core(&peer.tool("book", trip).await), expected, "{revision}");
        assert_eq!(peer.refused("prompts/get", json!({ "name": "greet" })).await, -32603);
        if revision >= V2025_11_25 {
            assert_eq!(text(&peer.tool("open_page", json!({})).await), "declined");
        }
        session.end().await;
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_an_error_that_says_so() {
    in_each(ASKING, async |revision, peer| {
        for wrong in [json!({}), json!({ "name": 7 }), json!({ "name": "Ada", "formal": "very" })] {
            peer.host = say(wrong);
            let result = peer.tool("greet", json!({})).await;
            assert_eq!(result["isError"], true, "{revision}");
            assert!(text(&result).starts_with("The answer does not fit the question"), "{result}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_answers_with_an_error_is_quoted() {
    for revision in [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25] {
        let mut session = Session::demo(revision).await;
        let peer = &mut session.peer;
        peer.host = Box::new(|_, _| Err(json!({ "code": -1, "message": "User rejected it." })));
        let result = peer.tool("sample", json!({ "prompt": "Well?" })).await;
        assert_eq!(result["isError"], true);
        assert_eq!(text(&result), "The client refused to answer: User rejected it.");
        session.end().await;
    }
}

#[tokio::test]
async fn the_model_the_roots_and_a_page_can_be_asked_for() {
    for revision in Revision::ALL {
        let mut session = Session::demo(revision).await;
        let peer = &mut session.peer;
        peer.host = Box::new(|method, params| {
            match method {
                "sampling/createMessage" => {
                    assert_eq!(params["maxTokens"], 100);
                    assert_eq!(params["messages"][0]["content"]["text"], "Six times nine?");
                }
                "elicitation/create" => {
                    assert_eq!(params["mode"], "url");
                    assert_eq!(params["url"], "https://example.com/consent");
                }
                _ => assert_eq!(method, "roots/list"),
            }
            helpful(method, params)
        });
        let sampled = peer.tool("sample", json!({ "prompt": "Six times nine?" })).await;
        assert_eq!(text(&sampled), "oracle-1 said: forty-two");
        assert_eq!(text(&peer.tool("roots", json!({})).await), "file:///home/ada\nfile:///srv");
        let page = peer.tool("open_page", json!({})).await;
        match revision >= V2025_11_25 {
            true => assert_eq!(text(&page), "accepted"),
            false => assert_eq!(page["isError"], true, "{revision} has no URLs to visit"),
        }
        session.end().await;
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_learns_what_is_missing() {
    let questions = [
        ("greet", json!({}), json!({ "elicitation": { "form": {} } }), "form elicitation"),
        ("open_page", json!({}), json!({ "elicitation": { "url": {} } }), "URL elicitation"),
        ("sample", json!({ "prompt": "?" }), json!({ "sampling": {} }), "sampling"),
        ("roots", json!({}), json!({ "roots": {} }), "roots"),
    ];
    for revision in Revision::ALL {
        let mut session =
            Session::new(crate::stdio::Way::Process(trunkline::client::Framing::Newline), revision)
                .await;
        let peer = &mut session.peer;
        peer.capabilities = json!({});
        peer.open().await;
        for (tool, arguments, required, words) in &questions {
            let params = json!({ "name": tool, "arguments": arguments });
            match peer.call("tools/call", params).await {
                Err(error) => {
                    assert_eq!(revision, V2026_07_28, "{error}");
                    assert_eq!(error["code"], -32021);
                    assert_eq!(error["data"]["requiredCapabilities"], *required);
                }
                Ok(result) => {
                    assert_ne!(revision, V2026_07_28, "{result}");
                    assert_eq!(result["isError"], true);
                    let expected = format!("This client cannot be asked: it lacks {words}.");
                    assert_eq!(text(&result), expected);
                }
            }
        }
        assert!(peer.rounds.is_empty(), "nothing was asked");
        session.end().await;
    }
}

#[tokio::test]
async fn a_revision_without_questions_gets_a_clear_error_and_no_question() {
    for revision in [V2024_11_05, V2025_03_26] {
        let mut session = Session::demo(revision).await;
        let peer = &mut session.peer;
        for (tool, arguments) in
            [("greet", json!({})), ("book", json!({ "city": "Oslo", "nights": 1 }))]
        {
            let result = peer.tool(tool, arguments).await;
            assert_eq!(result["isError"], true, "{revision}");
            let expected = "This client cannot be asked: it lacks form elicitation.";
            assert_eq!(text(&result), expected);
        }
        // The prompt needs no question when it is given the name.
        assert_eq!(peer.refused("prompts/get", json!({ "name": "greet" })).await, -32603);
        let named = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        peer.expect("prompts/get", named).await;
        assert!(peer.rounds.is_empty(), "nothing was asked");
        session.end().await;
    }
}

/// Begins a call of the newest revision, up to its first questions.
async fn begin(peer: &mut Peer, params: &Value) -> Map<String, Value> {
    let id = peer.request("tools/call", params.clone()).await;
    let required = peer.answer_to(&id).await.unwrap();
    assert_eq!(required["resultType"], "input_required", "{required}");
    peer.answer_round(&required)
}

fn with(params: &Value, round: &Map<String, Value>) -> Value {
    let mut params = params.clone();
    for (name, value) in round {
        params[name] = value.clone();
    }
    params
}

#[tokio::test]
async fn a_state_that_is_not_the_servers_own_for_this_call_is_refused_unread() {
    let mut session = Session::demo(V2026_07_28).await;
    let peer = &mut session.peer;
    let token = json!({ "progressToken": "seen" });
    let oslo =
        json!({ "name": "book", "arguments": { "city": "Oslo", "nights": 2 }, "_meta": token });
    let round = begin(peer, &oslo).await;
    let state = round["requestState"].as_str().unwrap().to_owned();
    let reported = progress(peer).len();

    let mut forged: Vec<Value> =
        vec![json!(""), json!("x"), json!("AA"), json!(state.clone() + "A")];
    for at in (0..state.len()).step_by(7) {
        let other = if &state[at..=at] == "A" { "B" } else { "A" };
        let mut tampered = state.clone();
        tampered.replace_range(at..=at, other);
        forged.push(json!(tampered));
        forged.push(json!(state[..at]));
    }
    let count = forged.len();
    for forged in forged {
        let mut round = round.clone();
        round.insert("requestState".to_owned(), forged.clone());
        let error = peer.call("tools/call", with(&oslo, &round)).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{forged}: {error}");
        assert_eq!(error["message"], "`requestState` is not valid here.", "{forged}");
    }
    assert!(count > 100, "{count} are too few to show much");
    for not_text in [json!(7), json!(null), json!({ "a": 1 })] {
        let mut round = round.clone();
        round.insert("requestState".to_owned(), not_text);
        let error = peer.call_unchecked("tools/call", with(&oslo, &round)).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
    }

    // Another tool, other arguments, another method.
    let greet = json!({ "name": "greet", "_meta": token });
    let paris =
        json!({ "name": "book", "arguments": { "city": "Paris", "nights": 2 }, "_meta": token });
    for other in [&greet, &paris] {
        assert_eq!(peer.refused("tools/call", with(other, &round)).await, -32602, "{other}");
    }
    assert_eq!(peer.refused("prompts/get", with(&greet, &round)).await, -32602);
    assert_eq!(progress(peer).len(), reported, "no handler ran");

    // And the real one is still good.
    let result = peer.expect("tools/call", with(&oslo, &round)).await;
    assert_eq!(result["structuredContent"]["reference"], "R-OSLO");
    session.end().await;
}

#[tokio::test]
async fn a_state_of_another_server_is_refused() {
    let (mut one, mut other) = (Session::demo(V2026_07_28).await, Session::demo(V2026_07_28).await);
    let greet = json!({ "name": "greet" });
    let round = begin(&mut one.peer, &greet).await;
    assert_eq!(other.peer.refused("tools/call", with(&greet, &round)).await, -32602);
    one.end().await;
    other.end().await;
}

#[tokio::test]
async fn answers_to_questions_that_were_not_asked_change_nothing() {
    let mut session = Session::demo(V2026_07_28).await;
    let peer = &mut session.peer;
    let greet = json!({ "name": "greet" });
    let mallory = json!({ "action": "accept", "content": { "name": "Mallory" } });

    // Given before anything was asked.
    let eager = json!({ "inputResponses": { "q1": mallory } });
    let id = peer.request("tools/call", with(&greet, eager.as_object().unwrap())).await;
    let required = peer.answer_to(&id).await.unwrap();
    assert_eq!(required["resultType"], "input_required");

    // Given beside the real one.
    let mut round = peer.answer_round(&required);
    for key in ["q0", "q2", "name", ""] {
        round["inputResponses"][key] = mallory.clone();
    }
    assert_eq!(text(&peer.expect("tools/call", with(&greet, &round)).await), "Hello, Ada!");

    // Given instead of it: the question is asked again.
    let mut round = begin(peer, &greet).await;
    round.insert("inputResponses".to_owned(), json!({ "q7": mallory }));
    let id = peer.request("tools/call", with(&greet, &round)).await;
    let again = peer.answer_to(&id).await.unwrap();
    assert_eq!(again["resultType"], "input_required");
    assert_eq!(again["inputRequests"], required["inputRequests"]);
    let round = peer.answer_round(&again);
    assert_eq!(text(&peer.expect("tools/call", with(&greet, &round)).await), "Hello, Ada!");
    session.end().await;
}

#[tokio::test]
async fn half_the_answers_bring_only_the_other_half_of_the_questions_again() {
    let mut session = Session::demo(V2026_07_28).await;
    let peer = &mut session.peer;
    let book = json!({ "name": "book", "arguments": { "city": "Rome", "nights": 1 } });
    let mut round = begin(peer, &book).await;
    let answers = round["inputResponses"].as_object_mut().unwrap();
    assert_eq!(answers.len(), 2);
    let kept = answers.keys().next().unwrap().clone();
    answers.retain(|key, _| *key == kept);
    let id = peer.request("tools/call", with(&book, &round)).await;
    let required = peer.answer_to(&id).await.unwrap();
    let asked = required["inputRequests"].as_object().unwrap();
    assert_eq!(asked.len(), 1);
    assert!(!asked.contains_key(&kept));
    let round = peer.answer_round(&required);
    let result = peer.expect("tools/call", with(&book, &round)).await;
    assert_eq!(result["structuredContent"], json!({ "reference": "R-ROME", "total": 99 }));
    session.end().await;
}
