//! Questions that do not say whose call they are about, while calls of several are open.

use serde_json::json;
use trunkline::Revision;

use super::place::{Place, SOON, person, text, until};

const BLUE: &str = r#"{"action":"accept","content":{"answer":"blue"}}"#;

#[tokio::test]
async fn a_question_waits_until_it_is_clear_whom_it_is_for_and_then_none_has_to() {
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let place = Place::new(&format!("unclear-{revision}"));
        let gateway = place.serve(json!({ "a": place.fake("a", &[], json!({})) })).await;
        let (ada, grace) = (person(&gateway, revision).await, person(&gateway, revision).await);
        let slow = text(&ada, "a.slow", json!({ "ms": 3000 }));
        let asking = async {
            let is_begun = async || place.log().all().iter().any(|it| it["tool"] == "slow");
            until("the other call is open", SOON, is_begun).await;
            text(&grace, "a.ask", json!({})).await
        };
        let (slow, asked) = tokio::join!(slow, asking);
        assert_eq!((slow.as_str(), asked.as_str()), ("slept", BLUE), "{revision}");
        let both = (text(&ada, "a.ask", json!({})), text(&grace, "a.ask", json!({})));
        let both = tokio::join!(both.0, both.1);
        let blue = BLUE.to_owned();
        assert_eq!(
            both,
            (blue.clone(), blue),
            "{revision}: from now on each has a process of its own"
        );
    }
}
