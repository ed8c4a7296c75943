//! How do I ask the user? A question is one line, in every revision that has questions.

use std::process::ExitCode;
use trunkline::{Answer, Context, Form, Server, ToolError, tool};

#[derive(Form)]
struct Trip {
    /// Where would you like to go?
    #[form(title = "City", min_length = 2)]
    city: String,
    #[form(min = 1, max = 30, default = 2)]
    nights: u8,
    seat: Seat,
    /// What do you eat?
    #[form(max_items = 2)]
    meals: Vec<Meal>,
}

#[derive(Debug, Form)]
enum Seat {
    #[form(title = "At the window")]
    Window,
    #[form(title = "At the aisle", default)]
    Aisle,
}

#[derive(Debug, Form)]
#[form(rename_all = "kebab-case")]
enum Meal {
    Fish,
    Vegetarian,
}

/// Plans a trip with the user.
#[tool]
async fn plan(cx: Context) -> Result<String, ToolError> {
    let trip: Trip = match cx.ask("Tell me about your trip.").await? {
        Answer::Accept(trip) => trip,
        // "No" is an answer, not a failure.
        Answer::Decline | Answer::Cancel => return Ok("Another time, then.".to_owned()),
    };
    let Trip { city, nights, seat, meals } = trip;
    Ok(format!("{nights} nights in {city}, {seat:?}, {meals:?}"))
}

/// Says what to pack.
#[tool]
async fn pack(cx: Context) -> Result<String, ToolError> {
    // Both reach the user at once.
    let swim = cx.ask::<bool>("Will you swim?");
    let kilos = cx.ask::<u32>("How many kilograms can you carry?");
    let (swim, kilos) = tokio::try_join!(swim, kilos)?;
    let towel = if swim.accepted()? { "a towel" } else { "no towel" };
    Ok(format!("Take {towel} and {} books.", kilos.accepted()? / 2))
}

/// Connects the user's bank.
#[tool]
async fn connect_bank(cx: Context) -> Result<&'static str, ToolError> {
    // Passwords are for the bank's own page, never for a form.
    cx.ask_url("Please log in at your bank.", "https://bank.example/login").await?.accepted()?;
    Ok("The user went to the bank.")
}

fn main() -> ExitCode {
    Server::builder("ask", "1.0.0").tool(plan).tool(pack).tool(connect_bank).build().run()
}
