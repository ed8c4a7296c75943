//! A server made with macros and the same server without → the same lists.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline::model::{TaskSupport, ToolAnnotations};
use trunkline::schemars::{self, JsonSchema};
use trunkline::server::ServerBuilder;
use trunkline::{Args, Client, Context, Json, Revision, Server, State, ToolError};

/// The same entries, made in two ways.
mod made {
    use super::*;
    use trunkline::{data, prompt, resource, tool};

    #[data]
    pub(super) struct Booking {
        /// What to show at the desk.
        reference: String,
        #[serde(rename = "totalPrice")]
        total: f64,
    }

    /// Books a room
    /// for some nights.
    #[tool(title = "Book", read_only = false, destructive = false, idempotent, open_world = false)]
    pub(super) async fn book(
        cx: Context,
        /// Where to go.
        city: String,
        State(price): State<f64>,
        #[serde(default)]
        #[schemars(range(min = 1))]
        nights: u32,
        note: Option<String>,
    ) -> Result<Json<Booking>, ToolError> {
        cx.progress(1.0, 1.0).await;
        let reference = format!("{city}{}", note.unwrap_or_default());
        Ok(Json(Booking { reference, total: f64::from(nights) * *price }))
    }

    /// Renders a film.
    #[tool(name = "render.film", task = "required")]
    pub(super) async fn render() -> &'static str {
        "A film."
    }

    /// Plans a day.
    #[prompt(title = "Plan")]
    pub(super) async fn plan(
        /// Where.
        city: String,
        style: Option<String>,
    ) -> String {
        format!("Plan a {} day in {city}.", style.as_deref().unwrap_or("quiet"))
    }

    /// The rooms of a city.
    #[resource("hotel://{city}/rooms{?kind}", title = "Rooms", mime_type = "text/plain")]
    pub(super) async fn rooms(
        city: String,
        #[serde(rename = "kind")] sort: Option<String>,
    ) -> String {
        format!("{city} {sort:?}")
    }

    /// What is to be known.
    #[resource("hotel://help", name = "help")]
    pub(super) async fn help_text() -> &'static str {
        "Ask."
    }

    pub(super) fn builder() -> ServerBuilder {
        Server::builder("hotel", "1")
            .state(10.0_f64)
            .tool(book)
            .tool(render)
            .prompt(plan)
            .resource(rooms)
            .resource(help_text)
    }
}

mod plain {
    use super::*;
    use trunkline::{prompt, resource, template, tool};

    #[derive(Serialize, JsonSchema)]
    struct Booking {
        /// What to show at the desk.
        reference: String,
        #[serde(rename = "totalPrice")]
        total: f64,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Book {
        /// Where to go.
        city: String,
        #[serde(default)]
        #[schemars(range(min = 1))]
        nights: u32,
        note: Option<String>,
    }

    async fn book(
        cx: Context,
        price: State<f64>,
        Args(it): Args<Book>,
    ) -> Result<Json<Booking>, ToolError> {
        cx.progress(1.0, 1.0).await;
        let reference = format!("{}{}", it.city, it.note.unwrap_or_default());
        Ok(Json(Booking { reference, total: f64::from(it.nights) * *price }))
    }

    #[derive(Deserialize, JsonSchema)]
    struct Plan {
        /// Where.
        city: String,
        style: Option<String>,
    }

    async fn plan(Args(it): Args<Plan>) -> String {
        format!("Plan a {} day in {}.", it.style.as_deref().unwrap_or("quiet"), it.city)
    }

    #[derive(Deserialize, JsonSchema)]
    struct Rooms {
        city: String,
        kind: Option<String>,
    }

    async fn rooms(Args(it): Args<Rooms>) -> String {
        format!("{} {:?}", it.city, it.kind)
    }

    pub(super) fn builder() -> ServerBuilder {
        let hints = ToolAnnotations::new()
            .read_only_hint(false)
            .destructive_hint(false)
            .idempotent_hint(true)
            .open_world_hint(false);
        let book = tool("book", book)
            .about("Books a room\nfor some nights.")
            .title("Book")
            .annotations(hints);
        let render = tool("render.film", async || "A film.")
            .about("Renders a film.")
            .task(TaskSupport::Required);
        let rooms = template("hotel://{city}/rooms{?kind}", "rooms", rooms);
        let rooms = rooms.about("The rooms of a city.").title("Rooms").mime_type("text/plain");
        let help = resource("hotel://help", "help", async || "Ask.").about("What is to be known.");
        Server::builder("hotel", "1")
            .state(10.0_f64)
            .tool(book)
            .tool(render)
            .prompt(prompt("plan", plan).about("Plans a day.").title("Plan"))
            .resource(rooms)
            .resource(help)
    }
}

/// The same as methods.
mod boxed {
    use super::made::Booking;
    use super::*;
    use trunkline::toolbox;

    pub(super) struct Hotel {
        pub(super) price: f64,
    }

    #[toolbox]
    impl Hotel {
        const QUIET: &str = "quiet";

        /// Books a room
        /// for some nights.
        #[trunkline::tool(
            title = "Book",
            read_only = false,
            destructive = false,
            idempotent,
            open_world = false
        )]
        pub(super) async fn book(
            &self,
            cx: Context,
            /// Where to go.
            city: String,
            #[serde(default)]
            #[schemars(range(min = 1))]
            nights: u32,
            note: Option<String>,
        ) -> Result<Json<Booking>, ToolError> {
            cx.progress(1.0, 1.0).await;
            Ok(Json(Booking::new(&city, note, self.total(nights))))
        }

        fn total(&self, nights: u32) -> f64 {
            f64::from(nights) * self.price
        }

        /// Renders a film.
        #[tool(name = "render.film", task = "required")]
        async fn render(self: Arc<Self>) -> &'static str {
            "A film."
        }

        /// Plans a day.
        #[prompt(title = "Plan")]
        async fn plan(
            /// Where.
            city: String,
            style: Option<String>,
        ) -> String {
            format!("Plan a {} day in {city}.", style.as_deref().unwrap_or(Self::QUIET))
        }

        /// The rooms of a city.
        #[resource("hotel://{city}/rooms{?kind}", title = "Rooms", mime_type = "text/plain")]
        async fn rooms(self: &Arc<Self>, city: String, kind: Option<String>) -> String {
            format!("{city} {kind:?}")
        }

        /// What is to be known.
        #[resource("hotel://help", name = "help")]
        async fn help(&self) -> &'static str {
            "Ask."
        }

        /// Is not there at all.
        #[cfg(any())]
        #[tool]
        async fn never(&self) {}
    }
}

impl made::Booking {
    fn new(city: &str, note: Option<String>, total: f64) -> Self {
        let text =
            format!(r#"{{"reference":"{city}{}","totalPrice":{total}}}"#, note.unwrap_or_default());
        trunkline::serde_json::from_str(&text).unwrap()
    }
}

fn json(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).unwrap()
}

async fn connect(builder: ServerBuilder, revision: Revision) -> Client {
    let server = builder.protocol(revision).build();
    Client::builder("test", "1").connect_memory(&server).await.unwrap()
}

#[tokio::test]
async fn what_macros_make_is_listed_like_what_is_written_by_hand() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let expected = connect(plain::builder(), revision).await;
        let toolbox = Server::builder("hotel", "1").toolbox(boxed::Hotel { price: 10.0 });
        for made in [made::builder(), toolbox] {
            let made = connect(made, revision).await;
            assert_eq!(made.list_tools().await.unwrap(), expected.list_tools().await.unwrap());
            assert_eq!(made.list_prompts().await.unwrap(), expected.list_prompts().await.unwrap());
            assert_eq!(
                made.list_resources().await.unwrap(),
                expected.list_resources().await.unwrap()
            );
            assert_eq!(
                made.list_resource_templates().await.unwrap(),
                expected.list_resource_templates().await.unwrap()
            );
        }
    }
}

#[tokio::test]
async fn what_macros_make_answers_like_what_is_written_by_hand() {
    let boxed = Server::builder("hotel", "1").toolbox(boxed::Hotel { price: 10.0 });
    for builder in [plain::builder(), made::builder(), boxed] {
        let client = connect(builder, Revision::V2026_07_28).await;
        let arguments = serde_json::json!({ "city": "Oslo", "nights": 3, "note": "!" });
        let booking: serde_json::Value = client.call("book", &arguments).await.unwrap();
        assert_eq!(booking, serde_json::json!({ "reference": "Oslo!", "totalPrice": 30.0 }));
        let refused = client.call_tool("book", serde_json::json!({ "nights": 3 })).await.unwrap();
        assert!(refused.is_error.unwrap_or_default());
        let film = client.call_tool("render.film", ()).await.unwrap();
        assert_eq!(film.content[0].as_text(), Some("A film."));
        let plan = client.get_prompt("plan", [("city", "Oslo")]).await.unwrap();
        let said = plan.messages[0].content.as_text();
        assert_eq!(said, Some("Plan a quiet day in Oslo."));
        let rooms = client.read_resource("hotel://Oslo/rooms?kind=twin").await.unwrap();
        assert_eq!(json(&rooms.contents[0])["text"], r#"Oslo Some("twin")"#);
        let help = client.read_resource("hotel://help").await.unwrap();
        assert_eq!(json(&help.contents[0])["text"], "Ask.");
    }
}
