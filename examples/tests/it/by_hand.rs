use trunkline::model::{CompleteParams, Reference, ResourceData};
use trunkline::serde_json::{Value, json};

use crate::common::{ERAS, builder, connect, example};

#[tokio::test]
async fn what_is_written_by_hand_does_the_same() {
    for revision in ERAS {
        let yes = builder(revision).on_ask(async |question| question.accept(true));
        let client = yes.connect_args([example!("by-hand")]).await.unwrap();
        let trip = json!({ "city": "Oslo", "nights": 2 });
        let booking: Value = client.call("book", trip).await.unwrap();
        assert_eq!(booking, json!({ "reference": "Oslo-2", "total": 198.0 }));

        let hotel = client.read_resource("hotel://Oslo").await.unwrap();
        let expected = ResourceData::Text("The hotel in Oslo has 12 rooms.".to_owned());
        assert_eq!(hotel.contents[0].data, expected);
        let plan = client.get_prompt("plan", [("city", "Oslo")]).await.unwrap();
        assert_eq!(plan.messages[0].content.as_text(), Some("Plan a quiet day in Oslo."));
        let of_plan = Reference::Prompt { name: "plan".to_owned(), title: None };
        let typed = CompleteParams::new(of_plan, "city", "B");
        assert_eq!(client.complete(typed).await.unwrap().values, ["Bergen", "Bodø"]);
        client.close().await;
    }
}

#[tokio::test]
async fn the_model_cannot_tell_it_from_the_one_with_macros() {
    let by_hand = connect(example!("by-hand"), ERAS[1]).await.list_tools().await.unwrap();
    let made = connect(example!("travel-server"), ERAS[1]).await.list_tools().await.unwrap();
    assert_eq!(by_hand[0].name, made[0].name);
    assert_eq!(by_hand[0].description, made[0].description);
    assert_eq!(by_hand[0].output_schema, made[0].output_schema);
}
