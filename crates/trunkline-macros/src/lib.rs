//! Attributes on functions and types → the trunkline code that one would write by hand.
//!
//! They only save typing, and explain mistakes in whole sentences. Use them through `trunkline`, which
//! re-exports them all.

#![forbid(unsafe_code)]

mod complete;
mod data;
mod docs;
mod entry;
mod fault;
mod form;
mod function;
mod handler_options;
mod item;
mod kind;
mod matrix;
mod options;
mod params;
mod toolbox;
mod uri;

use kind::Kind;
use proc_macro::TokenStream;

/// Turns an async function into a tool. Its doc comment tells the model what the tool is for, its
/// parameters are the arguments, and its result type gives the output schema.
///
/// ```
/// use trunkline::{Context, Json, Server, ToolError, tool};
///
/// #[trunkline::data]
/// struct Booking {
///     reference: String,
/// }
///
/// /// Books a room.
/// #[tool(title = "Book a room", destructive = false)]
/// async fn book(
///     cx: Context,
///     /// Where to go.
///     city: String,
///     #[serde(default)] nights: u32,
///     note: Option<String>,
/// ) -> Result<Json<Booking>, ToolError> {
///     cx.progress(1.0, 1.0).await;
///     Ok(Json(Booking { reference: format!("{city}-{nights}{}", note.unwrap_or_default()) }))
/// }
///
/// let server = Server::builder("travel", "1.0.0").tool(book).build();
/// # let _ = server;
/// ```
///
/// A parameter is an argument, unless its type is one that is taken from the call: `Context`,
/// `Args<T>` (all arguments as one struct), `State<T>`, `Principal`, `Option<Principal>`,
/// `Extension<T>`, `Headers`, `ClientInfo`, `Capabilities`, `Meta`, `Cancelled`, `TraceContext` and
/// `Uri`, or a type of yours that implements `FromCall`, marked with `#[extract]`. On an argument a doc
/// comment is its description, `#[serde(…)]` and `#[schemars(…)]` mean what they mean on a field,
/// and an `Option` may be left out.
///
/// The macro recognises these types by their last path segment. If an argument has a type of your own
/// with such a name, mark it with `#[arg]`:
///
/// ```
/// /// Where a parcel is.
/// #[trunkline::data]
/// enum State {
///     Sent,
///     Delivered,
/// }
///
/// /// Counts the parcels in a state.
/// #[trunkline::tool]
/// async fn count(#[arg] state: State) -> String {
///     match state {
///         State::Sent => "three".to_owned(),
///         State::Delivered => "none".to_owned(),
///     }
/// }
/// # let schema = count::entry().definition().input_schema.get().to_owned();
/// # assert!(schema.contains("Delivered"), "{schema}");
/// ```
///
/// | option | |
/// |---|---|
/// | `name = "…"` | the tool's name, if not that of the function |
/// | `title = "…"` | its name for people |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | how it behaves; `destructive = false` says no |
/// | `task`, `task = "required"` | it can, or must, run as a task |
/// | `resume` | another process may restart such a task |
/// | `asks = "form"`, `asks = ["url", "roots"]` | what it asks its client: also `sampling` and `sampling_tools`. A client that does not support that gets an error before the function starts |
/// | `timeout = "30s"` | its deadline: a whole number of `ms`, `s`, `min` or `h` |
/// | `visible = path::to::function` | who sees it: a `fn(&Caller<'_>) -> bool` |
/// | `scopes = "…"`, `scopes = ["…", "…"]` | the scopes that its caller needs, all of them |
/// | `crate = "…"` | where `trunkline` is, if not at `::trunkline` |
///
/// ```
/// use trunkline::{Answer, Caller, Context, Server, ToolError, tool};
///
/// fn is_admin(caller: &Caller<'_>) -> bool {
///     caller.principal().is_some_and(|it| it.may("admin"))
/// }
///
/// /// Deletes everything, if somebody agrees.
/// #[tool(asks = "form", timeout = "30s", visible = is_admin)]
/// async fn reset(cx: Context) -> Result<String, ToolError> {
///     match cx.ask::<bool>("Delete everything?").await? {
///         Answer::Accept(true) => Ok("It is gone.".to_owned()),
///         _ => Ok("Nothing happened.".to_owned()),
///     }
/// }
///
/// /// Renders a film.
/// #[tool(task = "required", resume, timeout = "2h", scopes = "films:write")]
/// async fn render() -> &'static str {
///     "A film."
/// }
///
/// let server = Server::builder("studio", "1.0.0").tool(reset).tool(render);
/// assert!(server.try_build().is_ok());
/// ```
///
/// The function stays callable, and [`IntoTool`] turns it into a tool. Everything without an option is
/// a setter of its `entry()`, a [`ToolEntry`]:
///
/// ```
/// use trunkline::{Server, model::Icon, tool};
///
/// /// Books a room.
/// #[tool]
/// async fn book(city: String) -> String {
///     city
/// }
///
/// let icon = Icon::new("https://example.com/bed.png");
/// let server = Server::builder("travel", "1.0.0").tool(book::entry().icon(icon)).build();
/// # let _ = server;
/// ```
///
/// Because it stays callable, you can test it as a function:
///
/// ```
/// /// Adds two numbers.
/// #[trunkline::tool]
/// async fn add(a: i64, b: i64) -> String {
///     (a + b).to_string()
/// }
///
/// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
/// # let mut sum = pin!(async {
/// assert_eq!(add(1, 2).await, "3");
/// # });
/// # assert_eq!(sum.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
/// ```
///
/// # Variables of the same name
///
/// The value is a function, so a variable may shadow its name, here and in other macros.
///
/// ```
/// /// What a stay costs.
/// #[trunkline::tool]
/// async fn total(nights: u32) -> String {
///     (nights * 90).to_string()
/// }
///
/// let server = trunkline::Server::builder("hotel", "1.0.0").tool(total);
/// let total = 5;
/// assert!(server.try_build().is_ok() && total == 5);
/// ```
///
/// # By hand
///
/// The first example is `tool("book", …).about("Books a room.")` with a function that takes `Args` of a
/// struct with the three fields.
///
/// [`ToolEntry`]: https://docs.rs/trunkline/latest/trunkline/server/struct.ToolEntry.html
/// [`IntoTool`]: https://docs.rs/trunkline/latest/trunkline/server/trait.IntoTool.html
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(Kind::Tool, options.into(), item.into()).into()
}

/// Turns an async function into a prompt. Its doc comment tells the user what the prompt is for, its
/// parameters are the prompt's arguments.
///
/// ```
/// use trunkline::{Server, prompt};
///
/// /// Plans a day.
/// #[prompt(title = "Plan a day")]
/// async fn plan(
///     /// Where.
///     city: String,
///     style: Option<String>,
/// ) -> String {
///     format!("Plan a {} day in {city}.", style.as_deref().unwrap_or("quiet"))
/// }
///
/// let server = Server::builder("travel", "1.0.0").prompt(plan).build();
/// # let _ = server;
/// ```
///
/// Parameters are as for [`macro@tool`]; the options are `name`, `title`, `asks`, `timeout`, `visible`,
/// `scopes` and `crate`. Everything without an option is a setter of its `entry()`, a `PromptEntry`:
///
/// ```
/// /// Plans a day.
/// #[trunkline::prompt(timeout = "500ms")]
/// async fn plan(city: String) -> String {
///     format!("Plan a day in {city}.")
/// }
///
/// let with_cities = plan::entry().complete("city", |_, _| vec!["Oslo".to_owned()]);
/// let server = trunkline::Server::builder("travel", "1.0.0").prompt(with_cities).build();
/// # let _ = server;
/// ```
///
/// `#[complete(cities)]` before a parameter names the async function that completes it; in a toolbox
/// `#[complete(self.cities)]` names a method:
///
/// ```
/// use trunkline::{prompt, server::Typed};
///
/// async fn cities(typed: Typed) -> Vec<String> {
///     typed.starts(["Bergen", "Oslo"])
/// }
///
/// /// Plans a day.
/// #[prompt]
/// async fn plan(#[complete(cities)] city: String) -> String {
///     format!("Plan a day in {city}.")
/// }
/// # let _ = trunkline::Server::builder("travel", "1.0.0").prompt(plan).build();
/// ```
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(Kind::Prompt, options.into(), item.into()).into()
}

/// Turns an async function into a resource, or into a template if its URI has variables, which are then
/// the function's parameters.
///
/// ```
/// use trunkline::{Server, resource};
///
/// /// What every guest should know.
/// #[resource("hotel://rules", mime_type = "text/plain")]
/// async fn rules() -> &'static str {
///     "No pets."
/// }
///
/// /// The rooms of a city.
/// #[resource("hotel://{city}/rooms{?kind}", title = "Rooms")]
/// async fn rooms(city: String, kind: Option<String>) -> String {
///     format!("Rooms in {city}: {kind:?}")
/// }
///
/// let server = Server::builder("travel", "1.0.0").resource(rules).resource(rooms).build();
/// # let _ = server;
/// ```
///
/// Other parameters are as for [`macro@tool`]; the options are `name`, `title`, `mime_type`, `asks`,
/// `timeout`, `visible`, `scopes` and `crate`. Everything without an option is a setter of its
/// `entry()`, a `ResourceEntry` or a `TemplateEntry`:
///
/// ```
/// /// The rooms of a city.
/// #[trunkline::resource("hotel://{city}/rooms", timeout = "5s")]
/// async fn rooms(city: String) -> String {
///     format!("Rooms in {city}.")
/// }
///
/// let with_cities = rooms::entry().complete("city", |_, _| vec!["Oslo".to_owned()]);
/// let server = trunkline::Server::builder("travel", "1.0.0").resource(with_cities).build();
/// # let _ = server;
/// ```
///
/// `#[complete(cities)]` before a variable of a template works as for [`macro@prompt`].
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(Kind::Resource, options.into(), item.into()).into()
}

/// Registers the methods of an impl block that have `#[tool]`, `#[prompt]` or `#[resource("…")]`. They
/// share state through `self`.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use trunkline::{Server, toolbox};
///
/// #[derive(Default)]
/// struct Hotel {
///     booked: AtomicU32,
/// }
///
/// #[toolbox]
/// impl Hotel {
///     /// Books a room.
///     #[tool]
///     async fn book(&self, city: String) -> String {
///         let number = self.booked.fetch_add(1, Ordering::Relaxed);
///         format!("{city}-{number}")
///     }
///
///     /// How many rooms are taken.
///     #[resource("hotel://taken")]
///     async fn taken(&self) -> String {
///         self.booked.load(Ordering::Relaxed).to_string()
///     }
/// }
///
/// let server = Server::builder("travel", "1.0.0").toolbox(Hotel::default()).build();
/// # let _ = server;
/// ```
///
/// Methods take `&self`, `self: Arc<Self>` or no receiver. The block may be generic. Its options are
/// `crate` and `scopes`, which every caller of its methods needs besides the scopes of the method
/// itself:
///
/// ```
/// struct Files;
///
/// #[trunkline::toolbox(scopes = "files:read")]
/// impl Files {
///     /// Lists the files.
///     #[tool]
///     async fn list(&self) -> &'static str {
///         "a.txt"
///     }
///
///     /// Deletes all files.
///     #[tool(scopes = "files:write")]
///     async fn clear(&self) -> &'static str {
///         "They are gone."
///     }
/// }
///
/// assert!(trunkline::Server::builder("files", "1.0.0").toolbox(Files).try_build().is_ok());
/// ```
#[proc_macro_attribute]
pub fn toolbox(options: TokenStream, item: TokenStream) -> TokenStream {
    toolbox::expand(options.into(), item.into()).into()
}

/// Turns a flat struct into a form, or an enum without data into a choice, for `Context::ask`.
///
/// ```
/// use trunkline::Form;
///
/// #[derive(Form)]
/// #[form(rename_all = "kebab-case")]
/// enum Class {
///     Economy,
///     /// Business class
///     Business,
/// }
///
/// #[derive(Form)]
/// struct Trip {
///     /// Where to?
///     #[form(title = "City", min_length = 2)]
///     city: String,
///     #[form(min = 1, max = 30, default = 2)]
///     nights: u8,
///     #[form(format = "email")]
///     contact: Option<String>,
///     class: Class,
/// }
///
/// let form = Trip::form();
/// assert_eq!(form.required, ["city", "class"]);
/// ```
///
/// A field is a text, a number, a `bool`, an enum with this derive, a `Vec` of such an enum, or an
/// `Option` of these. Its doc comment is its description. A field with a `default` is optional. A
/// variant's doc comment is its title.
///
/// | option | on | |
/// |---|---|---|
/// | `title = "…"` | everything but structs | what people see |
/// | `rename = "…"` | fields, variants | its name in the answer |
/// | `rename_all = "…"` | types | the spelling of all names, as in serde |
/// | `default = …` | fields | its default |
/// | `default` | variants | it is the default |
/// | `format = "…"`, `min_length`, `max_length` | texts | `email`, `uri`, `date` or `date-time` |
/// | `min`, `max` | numbers | |
/// | `min_items`, `max_items` | a `Vec` | how many may be chosen |
/// | `crate = "…"` | types | where `trunkline` is, if not at `::trunkline` |
#[proc_macro_derive(Form, attributes(form))]
pub fn form(item: TokenStream) -> TokenStream {
    or_error(form::expand(item.into()), None)
}

/// Derives what an argument or a result needs: `Serialize`, `Deserialize` and `JsonSchema`, from
/// trunkline's own `serde` and `schemars`.
///
/// ```
/// use trunkline::data;
///
/// /// A confirmed booking.
/// #[data]
/// #[derive(Debug, PartialEq)]
/// struct Booking {
///     reference: String,
///     #[serde(rename = "totalPrice")]
///     total: f64,
/// }
///
/// let text = r#"{"reference":"a-1","totalPrice":90.0}"#;
/// let booking: Booking = trunkline::serde_json::from_str(text).unwrap();
/// assert_eq!(booking, Booking { reference: "a-1".to_owned(), total: 90.0 });
/// assert_eq!(trunkline::serde_json::to_string(&booking).unwrap(), text);
/// ```
#[proc_macro_attribute]
pub fn data(options: TokenStream, item: TokenStream) -> TokenStream {
    or_error(data::expand(options.into(), item.clone().into()), Some(item))
}

/// Runs one test body in every era and over every transport, with the server from the function
/// `server`. It needs the feature `testing` of `trunkline`.
///
/// ```
/// use trunkline::{Server, tool};
///
/// /// Says hello.
/// #[tool]
/// async fn hello(name: String) -> String {
///     format!("Hello, {name}!")
/// }
///
/// fn server() -> Server {
///     Server::builder("hello", "1.0.0").tool(hello).build()
/// }
///
/// #[trunkline::test]
/// async fn it_says_hello(peer: trunkline::testing::Peer) {
///     let result = peer.call_tool("hello", [("name", "Ada")]).await.unwrap();
///     assert_eq!(result.content[0].as_text(), Some("Hello, Ada!"));
/// }
/// # let _ = server();
/// ```
///
/// That makes six tests, of which the first is `it_says_hello::memory_2025_11_25`. The body may return
/// a `Result`.
///
/// | option | |
/// |---|---|
/// | `eras = [stateful, stateless]` | the newest revision of each; by default of both |
/// | `revisions = "all"`, `revisions = ["2025-06-18"]` | these revisions instead |
/// | `transports = [memory, stdio, http]` | by default all; `http` needs the feature `http` |
/// | `server = path::to::function` | another function that makes the server |
/// | `crate = "…"` | where `trunkline` is, if not at `::trunkline` |
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    or_error(matrix::expand(options.into(), item.into()), None)
}

/// The expansion, or the errors together with the original item.
fn or_error(made: syn::Result<proc_macro2::TokenStream>, item: Option<TokenStream>) -> TokenStream {
    made.map_or_else(
        |error| {
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(item);
            tokens
        },
        Into::into,
    )
}
