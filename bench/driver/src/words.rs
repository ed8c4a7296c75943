//! Command-line words → a measurement with its options, and the command to measure.

/// What is measured: its name in the report, and the words that start it.
pub struct Subject {
    pub label: String,
    pub command: Vec<String>,
}

/// One kind of measurement; its value holds the options.
pub trait Measurement {
    const USAGE: &str;
    /// What the subject is called unless told.
    const LABEL: &str = "server";

    /// Takes an option with its value; false if there is no such option.
    fn take(&mut self, option: &str, value: &str) -> Result<bool, String>;

    fn measure(&self, subject: &Subject) -> Result<(), String>;
}

/// Measures what the words ask for.
pub fn run<M: Measurement + Default>(words: impl Iterator<Item = String>) -> Result<(), String> {
    let mut measurement = M::default();
    let subject =
        read(&mut measurement, words).map_err(|error| format!("{error}\n\n{}", M::USAGE))?;
    measurement.measure(&subject).map_err(|error| format!("`{}` failed: {error}", subject.label))
}

/// Hands every option with its value to the measurement; the command stands after `--`.
fn read<M: Measurement>(
    measurement: &mut M,
    mut words: impl Iterator<Item = String>,
) -> Result<Subject, String> {
    let mut label = M::LABEL.to_owned();
    while let Some(word) = words.next() {
        if word == "--" {
            let command: Vec<String> = words.collect();
            if command.is_empty() {
                break;
            }
            return Ok(Subject { label, command });
        }
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value."))?;
        if word == "--label" {
            label = value;
        } else if !measurement.take(&word, &value)? {
            return Err(format!("`{word}` is no option of this measurement."));
        }
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
