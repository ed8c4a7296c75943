//! A function's name → the stage of a call that it belongs to.

/// The stage of a function: that of the first row one of whose parts is in its name.
pub fn of(function: &str) -> &'static str {
    let is_in = |row: &&(&str, &[&str])| row.1.iter().any(|part| function.contains(part));
    STAGES.iter().find(is_in).map_or(OTHER, |(stage, _)| stage)
}

const OTHER: &str = "other";

pub const NAMES: [&str; 2] = ["allocator", OTHER];

const STAGES: [(&str, &[&str]); 1] = [("allocator", &["malloc", "free"])];
