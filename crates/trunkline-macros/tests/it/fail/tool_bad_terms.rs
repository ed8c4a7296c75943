/// Asks.
#[trunkline::tool(asks = ["form", "forms", "form"], timeout = "soon")]
async fn ask() -> String {
    String::new()
}

/// Waits.
#[trunkline::tool(asks, timeout = 30, visible = |_| true, resume = "no")]
async fn wait() -> String {
    String::new()
}

fn is_late(_: u8) -> bool {
    true
}

/// Hides.
#[trunkline::prompt(visible = is_late, resume)]
async fn hide() -> String {
    String::new()
}

fn main() {
    let _ = (ask::entry(), wait::entry(), hide::entry());
}
