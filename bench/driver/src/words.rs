//! Command-line words → options and the values they take.

/// Hands every option with its value to `take`, and returns the command after `--`.
pub fn options(
    mut words: impl Iterator<Item = String>,
    mut take: impl FnMut(&str, String) -> Result<(), String>,
) -> Result<Vec<String>, String> {
    while let Some(word) = words.next() {
        if word == "--" {
            let command: Vec<String> = words.collect();
            if command.is_empty() {
                break;
            }
            return Ok(command);
        }
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value."))?;
        take(&word, value)?;
    }
    Err("There is no command to start; put it after `--`.".into())
}

/// Every count here is at least one: no calls, no depth and no time measure nothing.
pub fn number<N: std::str::FromStr + PartialOrd + From<u8>>(
    option: &str,
    value: &str,
) -> Result<N, String> {
    match value.parse::<N>() {
        Ok(number) if number >= N::from(1) => Ok(number),
        _ => Err(format!("`{option} {value}`: give a whole number above zero.")),
    }
}

/// What to say of an option that nobody knows.
pub fn unknown(option: &str) -> Result<(), String> {
    Err(format!("`{option}` is no option of this measurement."))
}
