//! How do I share state, take what I need from a call, and fail well?

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::sync::Mutex;
use trunkline::server::{FromCall, Input, Rejection};
use trunkline::{Meta, Server, State, ToolError, tool};

/// How many rooms are free in each city.
type Rooms = Mutex<BTreeMap<String, u32>>;

/// A custom parameter: the language the caller prefers, from the request's `_meta`.
struct Language(String);

impl FromCall for Language {
    fn from_call(input: &Input<'_>) -> Result<Self, Rejection> {
        let wish = Meta::from_call(input)?.get("com.example/language");
        Ok(Self(wish.unwrap_or_else(|| "en".to_owned())))
    }
}

/// A custom error: `?` turns it into what the model reads.
#[derive(Debug)]
struct Full(String);

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Every room in {} is taken. Try another city.", self.0)
    }
}

impl std::error::Error for Full {}

/// Takes a room.
#[tool]
async fn take(
    State(rooms): State<Rooms>,
    #[extract] Language(language): Language,
    city: String,
) -> Result<String, ToolError> {
    let left = take_one(&rooms, city)?;
    Ok(match language.as_str() {
        "no" => format!("{left} rom igjen."),
        _ => format!("{left} rooms left."),
    })
}

fn take_one(rooms: &Rooms, city: String) -> Result<u32, Full> {
    let mut rooms = rooms.lock().expect("nobody panics while counting rooms");
    match rooms.get_mut(&city) {
        Some(left) if *left > 0 => {
            *left -= 1;
            Ok(*left)
        }
        _ => Err(Full(city)),
    }
}

fn main() -> ExitCode {
    let rooms = Rooms::new(BTreeMap::from([("Oslo".to_owned(), 2), ("Bergen".to_owned(), 0)]));
    Server::builder("state", "1.0.0").state(rooms).tool(take).build().run()
}
