//! The tools and prompts that ask the user, the model or the client. Straight-line code; nothing
//! here knows which revision it runs in.

use trunkline::model::{CreateMessageParams, PromptMessage, SamplingMessage};
use trunkline::server::ServerBuilder;
use trunkline::{Answer, Args, Context, Form, Json, ToolError, data, prompt, tool};

pub(super) fn register(server: ServerBuilder) -> ServerBuilder {
    server
        .tool(tool("greet", greet).about("Asks the user's name and greets them."))
        .tool(tool("book", book).about("Books a hotel after the user has confirmed, twice."))
        .tool(tool("open_page", open_page).about("Asks the user to visit a page."))
        .tool(tool("sample", sample).about("Asks the client's model."))
        .tool(tool("roots", roots).about("Lists the folders the user works in."))
        .prompt(
            prompt("greet", greeting).about("A greeting; asks for the name if it is not given."),
        )
}

#[derive(Form)]
struct Who {
    /// Your name
    name: String,
    /// Whether to be formal
    formal: Option<bool>,
}

async fn greet(cx: Context) -> Result<String, ToolError> {
    let who: Who = cx.ask("What is your name?").await?.accepted()?;
    Ok(match who.formal {
        Some(true) => format!("Good day, {}.", who.name),
        _ => format!("Hello, {}!", who.name),
    })
}

#[data]
struct Trip {
    /// City to visit
    city: String,
    nights: u32,
}

#[data]
struct Booking {
    reference: String,
    total: u32,
}

#[derive(Form)]
struct Confirm {
    /// Yes or no
    ok: bool,
}

#[derive(Form)]
struct Name {
    name: String,
}

async fn book(cx: Context, Args(trip): Args<Trip>) -> Result<Json<Booking>, ToolError> {
    let reference = cx.once("hold", async || hold_a_room(&trip.city)).await?;
    cx.progress(1.0, 3.0).await;
    let total = trip.nights.saturating_mul(99);
    let question = format!("{} nights in {} for {total}?", trip.nights, trip.city);
    let (confirm, name) = tokio::join!(
        cx.ask::<Confirm>(question).into_future(),
        cx.ask::<Name>("Name on the booking?").into_future(),
    );
    if !confirm?.accepted()?.ok {
        return Err(ToolError::new("The booking was not confirmed."));
    }
    let name = name?.accepted()?.name;
    cx.progress(2.0, 3.0).await;
    let sure = cx.ask::<Confirm>(format!("{name}, this cannot be refunded. Go ahead?")).await?;
    if !sure.accepted()?.ok {
        return Err(ToolError::new("The booking was not confirmed."));
    }
    cx.progress(3.0, 3.0).await;
    Ok(Json(Booking { reference, total }))
}

/// The effect that must happen once, however often the handler runs.
fn hold_a_room(city: &str) -> Result<String, ToolError> {
    Ok(format!("R-{}", city.to_uppercase()))
}

async fn open_page(cx: Context) -> Result<&'static str, ToolError> {
    let answer = cx.ask_url("Please agree to the terms.", "https://example.com/consent").await?;
    Ok(match answer {
        Answer::Accept(()) => "accepted",
        Answer::Decline | Answer::Cancel => "declined",
    })
}

#[data]
struct Sample {
    /// What to ask the model.
    prompt: String,
}

async fn sample(cx: Context, Args(it): Args<Sample>) -> Result<String, ToolError> {
    let params = CreateMessageParams::new(vec![SamplingMessage::user(it.prompt)], 100);
    let result = cx.sample(params).await?;
    Ok(format!("{} said: {}", result.model, result.text()))
}

async fn roots(cx: Context) -> Result<String, ToolError> {
    let uris: Vec<_> = cx.roots().await?.into_iter().map(|it| it.uri).collect();
    Ok(uris.join("\n"))
}

#[data]
struct Greeting {
    /// Whom to greet.
    name: Option<String>,
}

async fn greeting(cx: Context, Args(it): Args<Greeting>) -> Result<Vec<PromptMessage>, ToolError> {
    let name = match it.name {
        Some(name) => name,
        None => cx.ask::<Name>("What is your name?").await?.accepted()?.name,
    };
    Ok(vec![PromptMessage::user(format!("Say hello to {name}, in one sentence."))])
}
