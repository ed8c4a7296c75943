//! Questions with chosen keys and custom forms, and answers given in advance.

use serde_json::{Value, json};
use trunkline::model::{CreateMessageParams, SamplingMessage};
use trunkline::{Context, Form, Revision, ToolError, tool};

use crate::server::{ERAS, builder, open, text};

const ASKING: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];
const NEWEST: Revision = Revision::V2026_07_28;

#[derive(Form)]
struct Name {
    name: String,
}

#[tokio::test]
async fn questions_of_every_kind_can_be_named() {
    let ask = async |cx: Context| {
        let params = CreateMessageParams::new(vec![SamplingMessage::user("Say it.")], 10);
        let (name, said, roots) = tokio::join!(
            cx.ask::<Name>("Who?").key("who").into_future(),
            cx.sample(params).key("what").into_future(),
            cx.roots().key("where").into_future(),
        );
        let (name, said, roots) = (name?.accepted()?.name, said?.text(), roots?.len());
        Ok::<_, ToolError>(format!("{name}: {said}, {roots}"))
    };
    let server = builder().tool(tool("ask", ask)).build();
    for revision in ERAS {
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("ask", json!({})).await), "Ada: forty-two, 2", "{revision}");
    }
    let mut peer = open(&server, NEWEST).await;
    let params = peer.enveloped(json!({ "name": "ask" }));
    let asked = peer.call_unchecked("tools/call", params).await.unwrap();
    let keys: Vec<_> = asked["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["what", "where", "who"]);
}

#[tokio::test]
async fn a_form_may_be_written_by_hand() {
    let form = json!({
        "type": "object",
        "properties": { "pick": { "type": "string", "enum": ["Ada", "Eve"], "enumNames": ["A", "E"] } },
        "required": ["pick"],
    });
    let sent = form.clone();
    let ask = move |cx: Context| {
        let form = sent.clone();
        async move {
            let answer = cx.ask_form("Which?", form).await?.accepted()?;
            Ok::<_, ToolError>(answer.to_string())
        }
    };
    let server = builder().tool(tool("ask", ask)).build();
    let mut peer = open(&server, NEWEST).await;
    let params = peer.enveloped(json!({ "name": "ask" }));
    let asked = peer.call_unchecked("tools/call", params).await.unwrap();
    assert_eq!(asked["inputRequests"]["q1"]["params"]["requestedSchema"], form);
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        assert_eq!(text(&peer.tool("ask", json!({})).await), r#"{"pick":"Ada"}"#, "{revision}");
    }
}

#[tokio::test]
async fn answers_may_come_before_questions_that_have_a_name() {
    let ask = async |cx: Context| {
        let one = cx.ask::<Name>("One?").key("one").await?.accepted()?.name;
        let two = cx.ask::<Name>("Two?").key("two").await?.accepted()?.name;
        Ok::<_, ToolError>(format!("{one} and {two}"))
    };
    let server = builder().tool(tool("ask", ask)).build();
    let mut peer = open(&server, NEWEST).await;
    let accept = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    let with = |responses: Value| json!({ "name": "ask", "inputResponses": responses });

    // Both at once, and an answer without a question.
    let both = with(json!({ "one": accept("Ada"), "two": accept("Eve"), "six": accept("Bob") }));
    let params = peer.enveloped(both);
    let result = peer.call_unchecked("tools/call", params).await.unwrap();
    assert_eq!(text(&result), "Ada and Eve");

    // The first answer only: the second question is asked, and the first answer is remembered.
    let params = peer.enveloped(with(json!({ "one": accept("Ada") })));
    let asked = peer.call_unchecked("tools/call", params).await.unwrap();
    assert_eq!(asked["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["two"]);
    let mut next = with(json!({ "one": accept("Mallory"), "two": accept("Eve") }));
    next["requestState"] = asked["requestState"].clone();
    let params = peer.enveloped(next);
    let result = peer.call_unchecked("tools/call", params).await.unwrap();
    assert_eq!(text(&result), "Ada and Eve", "what was answered stays answered");

    // An invalid answer is refused, not asked again.
    for responses in [json!({ "one": 12345 }), json!(null), json!([])] {
        let params = peer.enveloped(with(responses.clone()));
        let error = peer.call_unchecked("tools/call", params).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{responses}");
    }
}
