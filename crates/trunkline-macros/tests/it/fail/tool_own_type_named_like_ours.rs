#[trunkline::data]
enum State {
    Open,
    Closed,
}

/// Counts.
#[trunkline::tool]
async fn count(state: State) -> String {
    matches!(state, State::Open).to_string()
}

/// Counts anew.
#[trunkline::tool]
async fn recount(#[serde(default)] state: State, #[arg] #[extract] other: State) -> String {
    matches!(state, State::Open).to_string()
}

fn main() {}
