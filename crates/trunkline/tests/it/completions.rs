//! `#[complete(…)]` before a parameter, in functions and in toolboxes.

use tokio::task::yield_now;
use trunkline::model::{CompleteParams, Reference};
use trunkline::server::Typed;
use trunkline::{Client, Revision, Server, ToolError, prompt, resource, toolbox};

async fn cities(typed: Typed) -> Vec<String> {
    // It may take its time.
    yield_now().await;
    match typed.argument("country") {
        Some("Norway") => typed.starts(["Bergen", "Oslo"]),
        _ => typed.starts(["Bergen", "Berlin", "Oslo"]),
    }
}

async fn broken(_: Typed) -> Result<Vec<String>, ToolError> {
    Err(ToolError::new("The map is gone."))
}

/// Plans a day.
#[prompt]
async fn plan(
    country: Option<String>,
    /// Where.
    #[complete(cities)]
    #[serde(rename = "town")]
    city: String,
    #[complete(broken)] street: Option<String>,
) -> String {
    format!("{country:?} {city} {street:?}")
}

/// The rooms of a city.
#[resource("hotel://{city}/rooms")]
async fn rooms(#[complete(self::cities)] city: String) -> String {
    format!("Rooms in {city}.")
}

struct Library(Vec<&'static str>);

#[toolbox]
impl Library {
    async fn titles(&self, typed: Typed) -> Vec<String> {
        yield_now().await;
        typed.starts(self.0.iter().copied())
    }

    /// One book.
    #[resource("library://{title}")]
    async fn book(&self, #[complete(self.titles)] title: String) -> Option<String> {
        self.0.contains(&&*title).then_some(title)
    }

    /// Praises a book.
    #[prompt]
    async fn praise(
        #[complete(self.titles)] title: String,
        #[complete(cities)] city: Option<String>,
    ) -> String {
        format!("Praise {title} in {city:?}.")
    }
}

#[tokio::test]
async fn arguments_are_completed_by_the_functions_that_are_named() {
    for revision in Revision::ALL {
        let builder = Client::builder("c", "1.0.0").protocol(revision);
        let client = builder.connect_memory(&server()).await.unwrap();
        let complete = async |reference: Reference, argument: &str, typed: &str| {
            let params = CompleteParams::new(reference, argument, typed);
            client.complete(params).await.map(|it| it.values)
        };
        let (plan, praise) = (|| Reference::prompt("plan"), || Reference::prompt("praise"));
        assert_eq!(complete(plan(), "town", "ber").await.unwrap(), ["Bergen", "Berlin"]);
        assert!(complete(plan(), "country", "N").await.unwrap().is_empty(), "nobody completes it");
        let failed = complete(plan(), "street", "K").await.unwrap_err();
        assert!(failed.to_string().contains("The map is gone."), "{failed}");
        let rooms = Reference::resource("hotel://{city}/rooms");
        assert_eq!(complete(rooms, "city", "O").await.unwrap(), ["Oslo"]);
        let book = Reference::resource("library://{title}");
        assert_eq!(complete(book, "title", "h").await.unwrap(), ["Hunger"]);
        assert_eq!(complete(praise(), "title", "P").await.unwrap(), ["Pan"]);
        assert_eq!(complete(praise(), "city", "Berg").await.unwrap(), ["Bergen"]);
        let prompt = client.get_prompt("plan", [("town", "Oslo")]).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("None Oslo None"));
    }
}

fn server() -> Server {
    let library = Library(vec!["Hunger", "Pan"]);
    Server::builder("travel", "1.0.0").prompt(plan).resource(rooms).toolbox(library).build()
}

#[tokio::test]
async fn a_completion_knows_the_other_arguments() {
    let client = Client::in_memory(&server()).await.unwrap();
    let mut params = CompleteParams::new(Reference::prompt("plan"), "town", "Ber");
    params.context.insert("country".to_owned(), "Norway".to_owned());
    assert_eq!(client.complete(params).await.unwrap().values, ["Bergen"]);
}
