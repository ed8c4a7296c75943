//! How does it look without macros? The travel server again, with a prompt and a template:
//! everything that macros write can be written by hand.

use std::process::ExitCode;
use trunkline::schemars::{self, JsonSchema};
use trunkline::serde::{self, Deserialize, Serialize};
use trunkline::{Args, Context, Json, Server, ToolError, prompt, template, tool};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "serde")]
struct Trip {
    /// Where to.
    city: String,
    nights: u32,
}

#[derive(Serialize, JsonSchema)]
#[serde(crate = "serde")]
struct Booking {
    reference: String,
    total: f64,
}

async fn book(cx: Context, Args(trip): Args<Trip>) -> Result<Json<Booking>, ToolError> {
    let Trip { city, nights } = trip;
    cx.progress(1.0, 2.0).await;
    let total = f64::from(nights) * 99.0;
    if !cx.ask::<bool>(format!("{nights} nights in {city} for {total} euros?")).await?.accepted()? {
        return Err(ToolError::new("The user does not want it at that price."));
    }
    cx.progress(2.0, 2.0).await;
    Ok(Json(Booking { reference: format!("{city}-{nights}"), total }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "serde")]
struct City {
    city: String,
}

async fn plan(Args(it): Args<City>) -> String {
    format!("Plan a quiet day in {}.", it.city)
}

async fn hotel(Args(it): Args<City>) -> Option<String> {
    CITIES.contains(&&*it.city).then(|| format!("The hotel in {} has 12 rooms.", it.city))
}

fn cities(typed: &str) -> Vec<String> {
    CITIES.iter().filter(|it| it.starts_with(typed)).map(|it| (*it).to_owned()).collect()
}

const CITIES: [&str; 3] = ["Bergen", "Bodø", "Oslo"];

fn main() -> ExitCode {
    let book = tool("book", book).about("Books a hotel, if the user agrees to the price.");
    let plan =
        prompt("plan", plan).about("Plans a day.").complete("city", |typed, _| cities(typed));
    let hotel =
        template("hotel://{city}", "hotel", hotel).complete("city", |typed, _| cities(typed));
    Server::builder("by-hand", "1.0.0").tool(book).prompt(plan).resource(hotel).build().run()
}
