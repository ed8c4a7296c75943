//! The location of a secret → the secret. Never on the command line, which others can read.

use std::path::PathBuf;
use std::str::FromStr;
use std::{env, fs, io};

use crate::failure::Failure;

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Env(String),
    File(PathBuf),
    Stdin,
}

impl Source {
    pub(crate) fn read(&self) -> Result<String, Failure> {
        let (text, place) = match self {
            Self::Env(name) => (env::var(name).map_err(|error| error.to_string()), name.clone()),
            Self::File(path) => (
                fs::read_to_string(path).map_err(|error| error.to_string()),
                path.display().to_string(),
            ),
            Self::Stdin => {
                let mut line = String::new();
                let read = io::stdin().read_line(&mut line);
                (read.map(|_| line).map_err(|error| error.to_string()), "stdin".to_owned())
            }
        };
        let text = text.map_err(|why| {
            Failure::usage(format!("The secret in `{place}` cannot be read: {why}."))
        })?;
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(Failure::usage(format!("There is no secret in `{place}`."))),
            secret => Ok(secret.to_owned()),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            _ if text == "-" => Ok(Self::Stdin),
            Some(("env", name)) if !name.is_empty() => Ok(Self::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err("a secret on the command line can be read by everybody on this machine; say \
                      where it is: env:NAME, file:PATH, or - for stdin"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_named_and_never_given() {
        assert_eq!("env:KEY".parse(), Ok(Source::Env("KEY".to_owned())));
        assert_eq!("file:/run/key".parse(), Ok(Source::File("/run/key".into())));
        assert_eq!("-".parse(), Ok(Source::Stdin));
        for text in ["hunter2", "env:", "file:", "", "ENV:KEY"] {
            let refusal = text.parse::<Source>().unwrap_err();
            assert!(refusal.contains("env:NAME"), "{text}");
            assert!(!refusal.contains("hunter2"));
        }
    }
}
