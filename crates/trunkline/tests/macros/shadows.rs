//! The macros' output means the same whatever names are in scope.

use serde_json::{Value, json};
use trunkline::{Client, Server};

/// Names of the prelude, of trunkline's types and of variables, all taken.
mod taken {
    use std::fmt::Debug;

    use Size::*;
    use trunkline::{Form, data, prompt, resource, tool, toolbox};

    #[derive(Debug, PartialEq, Form)]
    pub(super) enum Size {
        None,
        Some,
        Ok,
        Err,
    }

    #[derive(Debug, PartialEq, Form)]
    pub(super) struct Order {
        #[form(min = 1, max = 30, default = 2)]
        pub(super) count: u8,
        #[form(min_length = 1)]
        pub(super) name: String,
        #[form(min_items = 1)]
        pub(super) sizes: Vec<Size>,
        #[form(max_items = 2, default = [Ok])]
        pub(super) others: Vec<Size>,
    }

    /// Where a parcel is.
    #[data]
    #[derive(Debug)]
    pub(super) enum State {
        Sent,
        Delivered,
    }

    #[data]
    #[derive(Debug)]
    pub(super) struct Uri {
        path: String,
    }

    /// Says where parcels are.
    #[tool]
    pub(super) async fn parcels(#[arg] state: State, #[arg] uri: Option<Uri>) -> String {
        format!("{state:?} {uri:?}")
    }

    // Tools with names that the expansions of others might use for variables.
    /// A form.
    #[tool]
    pub(super) async fn form() -> String {
        shown(&(None, Some, Err))
    }

    /// A value.
    #[tool]
    pub(super) async fn value(#[allow(unused_variables)] _cx: trunkline::Context) -> String {
        "value".to_owned()
    }

    /// A field.
    #[prompt]
    pub(super) async fn field() -> String {
        "field".to_owned()
    }

    /// Fields.
    #[prompt]
    pub(super) async fn fields() -> String {
        "fields".to_owned()
    }

    /// Content.
    #[resource("test://content")]
    pub(super) async fn content() -> String {
        "content".to_owned()
    }

    /// Either this.
    #[tool(name = "either")]
    #[cfg(any())]
    pub(super) async fn either(city: String) -> String {
        city
    }

    /// Or that.
    #[tool]
    #[cfg(test)]
    pub(super) async fn either() -> String {
        "that".to_owned()
    }

    pub(super) struct Builders;

    #[toolbox]
    impl Builders {
        /// Builds.
        #[tool]
        async fn build(&self, #[arg] state: State, cx: trunkline::Context) -> String {
            cx.progress(1.0, 1.0).await;
            shown(&state)
        }
    }

    /// A builder.
    #[tool]
    pub(super) async fn builder() -> String {
        "builder".to_owned()
    }

    fn shown(it: &impl Debug) -> String {
        format!("{it:?}")
    }
}

/// Entries whose names are those of variables: of the module itself, and of derived code.
mod shadowed {
    use trunkline::{data, prompt, resource, tool};

    /// A book.
    #[resource("library://book")]
    pub(super) async fn book() -> &'static str {
        "Moby Dick"
    }

    /// A shelf.
    #[resource("library://shelf/{number}")]
    pub(super) async fn shelf(number: u32) -> String {
        // A variable elsewhere may have the same name.
        let book = number + 1;
        format!("{book}")
    }

    /// A schema.
    #[tool]
    pub(super) async fn schema(book: Book) -> String {
        let Book { title, generator } = book;
        format!("{title} {generator}")
    }

    /// A generator.
    #[prompt]
    pub(super) async fn generator(book: String) -> String {
        let (schema, generator) = (book, "by hand");
        format!("{schema} {generator}")
    }

    /// What there is to read.
    #[data]
    pub(super) struct Book {
        pub(super) title: String,
        pub(super) generator: u32,
    }

    pub(super) fn count() -> u32 {
        let book = 1;
        let add = |shelf: u32| book + shelf;
        match 2 {
            schema if schema > 5 => schema,
            generator => add(generator),
        }
    }
}

/// The names of primitives, shadowed. serde's derives do not support that, ours do.
mod primitive {
    #[allow(non_camel_case_types, dead_code)]
    pub(super) struct u64;
    #[allow(non_camel_case_types, dead_code)]
    pub(super) struct f64;
    #[allow(non_camel_case_types, dead_code)]
    pub(super) struct str;
    #[allow(non_camel_case_types, dead_code)]
    pub(super) struct bool;

    #[derive(trunkline::Form)]
    pub(super) enum Colour {
        Red,
    }

    #[derive(trunkline::Form)]
    pub(super) struct Paint {
        #[form(min = 1, max = 30)]
        pub(super) layers: u8,
        #[form(min_length = 1)]
        pub(super) name: String,
        pub(super) colour: Colour,
    }
}

async fn text(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call_tool(tool, arguments).await.unwrap();
    result.content[0].as_text().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_type_of_the_users_can_be_an_argument_whatever_its_name() {
    let server = Server::builder("test", "1").tool(taken::parcels).toolbox(taken::Builders).build();
    let client = Client::builder("test", "1").connect_memory(&server).await.unwrap();
    let arguments = json!({ "state": "Sent", "uri": { "path": "a" } });
    assert_eq!(text(&client, "parcels", arguments).await, r#"Sent Some(Uri { path: "a" })"#);
    let arguments = json!({ "state": "Delivered" });
    assert_eq!(text(&client, "parcels", arguments.clone()).await, "Delivered None");
    assert_eq!(text(&client, "build", arguments).await, "Delivered");
    let refused = client.call_tool("parcels", json!({ "state": "Lost" })).await.unwrap();
    assert_eq!(refused.is_error, Some(true));
}

#[tokio::test]
async fn tools_may_be_called_like_variables_of_the_expansions() {
    let server = Server::builder("test", "1")
        .tool(taken::form)
        .tool(taken::value)
        .tool(taken::builder)
        .tool(taken::either)
        .prompt(taken::field)
        .prompt(taken::fields)
        .resource(taken::content)
        .build();
    let client = Client::builder("test", "1").connect_memory(&server).await.unwrap();
    for (name, said) in [
        ("form", "(None, Some, Err)"),
        ("value", "value"),
        ("builder", "builder"),
        ("either", "that"),
    ] {
        assert_eq!(text(&client, name, json!({})).await, said);
    }
    assert_eq!(client.list_prompts().await.unwrap().len(), 2);
    assert_eq!(client.list_resources().await.unwrap().len(), 1);
}

#[tokio::test]
async fn variables_may_be_called_like_tools() {
    let book = shadowed::count();
    assert_eq!(book, 3);
    let server = Server::builder("test", "1")
        .resource(shadowed::book)
        .resource(shadowed::shelf)
        .tool(shadowed::schema)
        .prompt(shadowed::generator::entry().title("Generator"))
        .build();
    let client = Client::builder("test", "1").connect_memory(&server).await.unwrap();
    let arguments = json!({ "book": { "title": "Moby Dick", "generator": 2 } });
    assert_eq!(text(&client, "schema", arguments).await, "Moby Dick 2");
    assert_eq!(shadowed::book().await, "Moby Dick");
    assert_eq!(shadowed::shelf(6).await, "7");
}

#[test]
fn a_form_may_have_choices_called_like_the_prelude() {
    use taken::{Order, Size};
    use trunkline::{Form, RawJson};
    let form = Order::form();
    assert_eq!(form.required, ["name", "sizes"]);
    let filled = json!({ "name": "Ada", "sizes": ["None", "Some", "Err"] });
    let order = Order::read(&RawJson::of(&filled)).unwrap();
    let sizes = vec![Size::None, Size::Some, Size::Err];
    assert_eq!(order, Order { count: 2, name: "Ada".to_owned(), sizes, others: vec![Size::Ok] });
    assert!(Order::read(&RawJson::of(&json!({ "name": "Ada", "sizes": ["All"] }))).is_err());
    let filled = json!({ "layers": 3, "name": "Coat", "colour": "Red" });
    let paint = primitive::Paint::read(&RawJson::of(&filled)).unwrap();
    assert_eq!((paint.layers, &*paint.name), (3, "Coat"));
    assert!(matches!(paint.colour, primitive::Colour::Red));
}
