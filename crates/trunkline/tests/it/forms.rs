//! Forms that people fill in, in every revision that has them: what is asked, parsed and refused.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trunkline::model::{EnumSchema, FormSchema, StringSchema};
use trunkline::server::AskError;
use trunkline::{Answer, Context, Form, Revision, ToolError, tool};
use trunkline_testkit::peer::Peer;

use crate::server::{builder, open, text};

const ASKING: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(Clone, Copy, Debug, PartialEq, Form)]
enum Class {
    #[form(title = "The cheap one")]
    Economy,
    Business,
}

#[derive(Clone, Copy, Debug, PartialEq, Form)]
enum Meal {
    Fish,
    Meat,
    Cake,
}

#[derive(Debug, PartialEq, Form)]
struct Trip {
    /// Where to
    #[form(min_length = 2)]
    city: String,
    #[form(min = 1, max = 30, default = 2)]
    nights: u8,
    #[form(format = "date")]
    start: Option<String>,
    class: Class,
    #[form(min_items = 1, default = [Meal::Fish])]
    meals: Vec<Meal>,
    sure: bool,
}

/// Answers the user's questions with this, and records them.
fn answering(peer: &mut Peer, answer: Value) -> Arc<Mutex<Vec<Value>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&asked);
    peer.host = Box::new(move |_, params| {
        notes.lock().unwrap().push(params["requestedSchema"].clone());
        Ok(json!({ "action": "accept", "content": answer }))
    });
    asked
}

async fn book(cx: Context) -> Result<String, ToolError> {
    let trip: Trip = cx.ask("Tell me about your trip.").await?.accepted()?;
    Ok(format!("{trip:?}"))
}

#[tokio::test]
async fn a_struct_is_asked_for_and_read_in_every_revision() {
    let server = builder().tool(tool("book", book)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        let mut answer = json!({
            "city": "Oslo", "start": "2026-07-28", "class": "Business", "sure": true,
        });
        match revision {
            // Its forms have no lists: each choice is a yes-or-no field.
            Revision::V2025_06_18 => {
                answer["meals.Fish"] = json!(false);
                answer["meals.Cake"] = json!(true);
            }
            _ => answer["meals"] = json!(["Cake"]),
        }
        let asked = answering(&mut peer, answer);
        let trip = Trip {
            city: "Oslo".into(),
            nights: 2,
            start: Some("2026-07-28".into()),
            class: Class::Business,
            meals: vec![Meal::Cake],
            sure: true,
        };
        assert_eq!(text(&peer.tool("book", json!({})).await), format!("{trip:?}"), "{revision}");
        let form = asked.lock().unwrap()[0].clone();
        let fields = &form["properties"];
        assert_eq!(fields["nights"]["minimum"], 1);
        match revision {
            Revision::V2025_06_18 => {
                assert_eq!(fields["class"]["enum"], json!(["Economy", "Business"]));
                assert_eq!(fields["class"]["enumNames"], json!(["The cheap one", "Business"]));
                assert_eq!(fields.get("meals"), None);
                assert_eq!(fields["meals.Fish"]["default"], true);
                assert_eq!(form["required"], json!(["city", "class", "sure"]));
            }
            _ => {
                let class = json!({ "const": "Economy", "title": "The cheap one" });
                assert_eq!(fields["class"]["oneOf"][0], class);
                assert_eq!(fields["meals"]["items"]["enum"], json!(["Fish", "Meat", "Cake"]));
                assert_eq!(fields["nights"]["default"], 2);
            }
        }
    }
}

#[tokio::test]
async fn everything_wrong_with_an_answer_is_told_at_once() {
    let server = builder().tool(tool("book", book)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        let answer = json!({ "city": "O", "nights": 31, "start": "soon", "class": "First" });
        answering(&mut peer, answer);
        let result = peer.tool("book", json!({})).await;
        assert_eq!(result["isError"], true, "{revision}");
        for place in ["/city", "/nights", "/start", "/class", "/sure"] {
            assert!(text(&result).contains(&format!("`{place}`")), "{revision}: {result}");
        }
    }
}

#[tokio::test]
async fn one_thing_alone_is_a_form_too() {
    let ask = async |cx: Context| {
        let (sure, count, class, meals) = tokio::join!(
            cx.ask::<bool>("Sure?").into_future(),
            cx.ask::<u32>("How many?").into_future(),
            cx.ask::<Class>("How?").into_future(),
            cx.ask::<Vec<Meal>>("What?").into_future(),
        );
        let (sure, count) = (sure?.accepted()?, count?.accepted()?);
        let (class, meals) = (class?.accepted()?, meals?.accepted()?);
        Ok::<_, ToolError>(format!("{sure} {count} {class:?} {meals:?}"))
    };
    let server = builder().tool(tool("ask", ask)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        peer.host = Box::new(|_, params| {
            let content = match params["message"].as_str().unwrap() {
                "Sure?" => json!({ "value": true }),
                "How many?" => json!({ "value": 3 }),
                "How?" => json!({ "value": "Business" }),
                _ if params["requestedSchema"]["properties"].get("value").is_some() => {
                    json!({ "value": ["Meat"] })
                }
                _ => json!({ "value.Meat": true, "value.Cake": false }),
            };
            Ok(json!({ "action": "accept", "content": content }))
        });
        let result = peer.tool("ask", json!({})).await;
        assert_eq!(text(&result), "true 3 Business [Meat]", "{revision}");
    }
}

#[tokio::test]
async fn a_form_by_hand_is_held_to_as_well() {
    let ask = async |cx: Context| {
        let form = FormSchema::new()
            .required("mail", StringSchema::new().format("email"))
            .optional("colour", EnumSchema::new(["red", "blue"]));
        Ok::<_, ToolError>(match cx.ask_form("Your mail?", form.to_json()).await {
            Ok(Answer::Accept(content)) => content.get().to_owned(),
            Ok(_) => "nothing".to_owned(),
            Err(AskError::Answer(why)) => why,
            Err(other) => return Err(other.into()),
        })
    };
    let nested = async |cx: Context| {
        let form = json!({ "type": "object", "properties": { "a": { "type": "object" } } });
        Ok::<_, ToolError>(cx.ask_form("What?", form).await?.accepted()?.get().to_owned())
    };
    let server = builder().tool(tool("ask", ask)).tool(tool("nested", nested)).build();
    for revision in ASKING {
        let mut peer = open(&server, revision).await;
        answering(&mut peer, json!({ "mail": "ada@example.com", "colour": "red" }));
        let result = peer.tool("ask", json!({})).await;
        assert_eq!(text(&result), r#"{"colour":"red","mail":"ada@example.com"}"#, "{revision}");
        answering(&mut peer, json!({ "mail": "ada", "colour": "green" }));
        let result = peer.tool("ask", json!({})).await;
        assert!(text(&result).contains("`/mail`"), "{revision}: {result}");
        assert!(text(&result).contains("`/colour`"), "{revision}: {result}");
        // An invalid form is never sent.
        let asked = answering(&mut peer, json!({}));
        let result = peer.tool("nested", json!({})).await;
        assert!(text(&result).contains("flat"), "{revision}: {result}");
        assert!(asked.lock().unwrap().is_empty(), "{revision}");
    }
}
