//! Log messages from server to client.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// The levels of RFC 5424, least severe first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // The names are the documentation.
pub enum LogLevel {
    Debug,
    #[default]
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

model! {
    /// One log message.
    pub struct LogMessage {
        /// Its severity.
        pub level: LogLevel,
        /// The name of the logger.
        pub logger?: String,
        /// The message: a string or any JSON.
        pub data: Json,
    }

    /// The parameters of `logging/setLevel`.
    pub struct SetLevelParams {
        /// The least severe level to send.
        pub level: LogLevel,
    }
}

impl LogLevel {
    /// All eight, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level as it is on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is not a log level; choose one of {known}.")
        })
    }
}

impl LogMessage {
    /// A message without a logger's name.
    pub fn new(level: LogLevel, data: Json) -> Self {
        Self { level, logger: None, data }
    }

    /// A plain text message.
    pub fn text(level: LogLevel, text: &str) -> Self {
        Self::new(level, Json::string(text))
    }
}

setters! { LogMessage = LogMessage::text(LogLevel::Error, "The disk is full.");
    /// Names the logger.
    logger(String) = "storage"
        => r#"{"level":"error","logger":"storage","data":"The disk is full."}"#;
}

impl SetLevelParams {
    /// Asks for `level` and more severe ones.
    pub fn new(level: LogLevel) -> Self {
        Self { level }
    }
}
