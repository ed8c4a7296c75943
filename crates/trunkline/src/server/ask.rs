//! Questions to the client's user and model, as straight-line code in every revision.

mod many;
mod put;
mod question;

use std::fmt;

use trunkline_proto::CallError;
use trunkline_wire::jsonrpc::ErrorObject;

pub(super) use put::question_params;
pub use question::{Ask, AskForm, AskModel, AskRoots, AskUrl};

/// What the user did with a question.
///
/// ```
/// use trunkline::Answer;
///
/// assert_eq!(Answer::Accept(3).accepted(), Ok(3));
/// assert_eq!(Answer::Accept(3).map(|it| it + 1), Answer::Accept(4));
/// let no: Answer<bool> = Answer::Decline;
/// assert_eq!(no.accepted().unwrap_err().to_string(), "The user declined.");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The user answered it.
    Accept(T),
    /// The user said no.
    Decline,
    /// The user closed it without choosing.
    Cancel,
}

impl<T> Answer<T> {
    /// The answer, if there is one; `?` turns the rest into an error that the model reads.
    ///
    /// ```
    /// use trunkline::Answer;
    ///
    /// assert_eq!(Answer::Accept(3).accepted().ok(), Some(3));
    /// assert!(Answer::<u8>::Cancel.accepted().is_err());
    /// ```
    pub fn accepted(self) -> Result<T, Declined> {
        match self {
            Self::Accept(answer) => Ok(answer),
            Self::Decline | Self::Cancel => Err(Declined),
        }
    }

    /// Converts the answer, if there is one.
    ///
    /// ```
    /// use trunkline::Answer;
    ///
    /// assert_eq!(Answer::Accept(3).map(|it| it + 1), Answer::Accept(4));
    /// assert_eq!(Answer::<u8>::Decline.map(|it| it + 1), Answer::Decline);
    /// ```
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Accept(answer) => Answer::Accept(make(answer)),
            Self::Decline => Answer::Decline,
            Self::Cancel => Answer::Cancel,
        }
    }
}

/// The user did not answer.
///
/// ```
/// use trunkline::server::Declined;
///
/// assert_eq!(Declined.to_string(), "The user declined.");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declined;

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The user declined.")
    }
}

impl std::error::Error for Declined {}

/// Why a question could not be asked, or its answer could not be used. Waiting for an answer is
/// never an error, so no `unwrap_or` can swallow a question.
///
/// ```
/// use trunkline::server::AskError;
/// use trunkline::{Context, ToolError};
///
/// async fn greet(cx: Context) -> Result<String, ToolError> {
///     let name = match cx.ask::<String>("What is your name?").await {
///         Ok(answer) => answer.accepted()?,
///         Err(AskError::Unsupported { .. }) => "stranger".to_owned(),
///         Err(other) => return Err(other.into()),
///     };
///     Ok(format!("Hello, {name}!"))
/// }
/// # let _ = trunkline::tool("greet", greet);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum AskError {
    /// The client or its revision lacks this kind of question.
    Unsupported {
        /// The missing capability.
        what: &'static str,
        /// The error that 2026-07-28 sends to the caller.
        refusal: Option<ErrorObject>,
    },
    /// The question itself is invalid.
    Invalid(String),
    /// The client answered with an error.
    Refused(ErrorObject),
    /// The answer does not match the question.
    Answer(String),
    /// Nobody answered in time.
    TimedOut,
    /// The conversation ended first.
    Closed,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { what, .. } => {
                write!(f, "This client cannot be asked: it lacks {what}.")
            }
            Self::Invalid(why) => write!(f, "The question is wrong: {why}"),
            Self::Refused(error) => write!(f, "The client refused to answer: {}", error.message),
            Self::Answer(why) => write!(f, "The answer does not fit the question: {why}"),
            Self::TimedOut => f.write_str("Nobody answered in time."),
            Self::Closed => f.write_str("The client hung up before it answered."),
        }
    }
}

impl std::error::Error for AskError {}

impl From<CallError> for AskError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Peer(error) | CallError::Refused(error) => Self::Refused(error),
            CallError::Invalid(why) => Self::Answer(why),
            CallError::TimedOut => Self::TimedOut,
            _ => Self::Closed,
        }
    }
}

/// The name of a question.
pub(super) struct Key {
    pub(super) text: String,
    /// Whether the handler's author chose it. Only then can clients know it in advance.
    pub(super) is_chosen: bool,
}
