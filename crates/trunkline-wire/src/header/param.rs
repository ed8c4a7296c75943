//! The `x-mcp-header` annotations of a tool's input schema → the headers of a call, and the check
//! that headers and arguments agree.

mod read;
mod scalar;

use std::fmt;

use super::PARAM_PREFIX;
use super::value::{BadValue, decode_value, encode_value};
use crate::code;
use crate::json::Json;
use crate::jsonrpc::ErrorObject;
use scalar::Scalar;

/// The arguments of one tool that HTTP repeats as headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<Param>);

/// One such argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Param {
    /// The full header name, in lower case.
    header: String,
    /// The path of properties to the argument.
    path: Vec<String>,
}

impl ParamHeaders {
    /// Reads the annotations of an input schema. An invalid one makes the whole tool invalid.
    pub fn read(input_schema: &Json) -> Result<Self, InvalidAnnotation> {
        // Hardly any schema has one. A name with escapes needs the full parse.
        let text = input_schema.get();
        if !text.contains(ANNOTATION) && !text.contains(r"\u") {
            return Ok(Self::default());
        }
        read::read(input_schema).map(Self)
    }

    /// Whether no argument is repeated.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many arguments are repeated.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The full header names, in lower case.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|it| &*it.header)
    }

    /// The headers of a call: full names in lower case, encoded values. An argument that is absent or
    /// `null` has no header.
    pub fn headers_for(&self, arguments: Option<&Json>) -> Vec<(String, String)> {
        let header = |param: &Param| {
            // Only strings, numbers and booleans can be repeated; the server refuses others.
            let value = Scalar::find(arguments, &param.path).ok()??;
            Some((param.header.clone(), encode_value(&value.to_text()).into_owned()))
        };
        self.0.iter().filter_map(header).collect()
    }

    /// Checks that the headers and arguments of a call agree. `header` returns every value of the
    /// header with that (lower-case) name. Other headers are ignored.
    pub fn check<'h, I>(
        &self,
        arguments: Option<&Json>,
        header: impl Fn(&str) -> I,
    ) -> Result<(), Mismatch>
    where
        I: IntoIterator<Item = &'h [u8]>,
    {
        let judge = |param: &Param| {
            let mut values = header(&param.header).into_iter();
            let said = values.next();
            if values.next().is_some() {
                return Err(Fault::Repeated);
            }
            let said = said.map(decode_value).transpose().map_err(Fault::Malformed)?;
            match (Scalar::find(arguments, &param.path)?, said) {
                (None, None) => Ok(()),
                (None, Some(_)) => Err(Fault::Uncalled),
                (Some(_), None) => Err(Fault::Missing),
                (Some(meant), Some(said)) => meant.is_said_by(&said),
            }
        };
        self.0.iter().try_for_each(|param| {
            judge(param).map_err(|fault| Mismatch {
                header: param.header.clone(),
                argument: param.path.join("."),
                fault,
            })
        })
    }

    /// Roughly how much memory the names take.
    pub(super) fn weight(&self) -> usize {
        let of =
            |it: &Param| it.header.len() + it.path.iter().map(|it| it.len() + 24).sum::<usize>();
        self.0.iter().map(|it| of(it) + 48).sum()
    }
}

/// Why a tool's annotations are invalid, and with them the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnnotation {
    /// The position of the annotation: the keywords and properties that lead there.
    pub at: String,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It is not a valid header name.
    Name,
    /// Another argument has the same name, ignoring case.
    Taken,
    /// The property is not just a string, an integer or a boolean.
    Type,
    /// It cannot be reached through `properties` alone.
    Place,
}

impl fmt::Display for InvalidAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self.at.as_str() {
            "" => "the schema itself",
            at => at,
        };
        write!(
            f,
            "The `{ANNOTATION}` of `{at}` {}.",
            match self.why {
                Why::Name => "is not a name that a header can have",
                Why::Taken => "is the name of another argument's header",
                Why::Type =>
                    "stands on something that is neither `string`, `integer` nor `boolean`",
                Why::Place => "is not reached through `properties` alone",
            }
        )
    }
}

impl std::error::Error for InvalidAnnotation {}

/// A header and an argument that disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The header.
    pub header: String,
    /// The argument.
    pub argument: String,
    /// How they differ.
    pub fault: Fault,
}

/// How a header and an argument disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The argument is present, the header is not.
    Missing,
    /// The header is present, the argument is not.
    Uncalled,
    /// The header occurs more than once.
    Repeated,
    /// The header's value is malformed.
    Malformed(BadValue),
    /// They have different values.
    Differs,
    /// The argument is an integer that not every JSON parser keeps exactly.
    Unsafe,
    /// The argument is duplicated, or has a type that a header cannot repeat.
    Unreadable,
}

impl Mismatch {
    /// The error for the caller.
    pub fn to_error(&self) -> ErrorObject {
        ErrorObject::new(code::HEADER_MISMATCH, self.to_string())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { header, argument, fault } = self;
        match fault {
            Fault::Missing => {
                write!(f, "The header `{header}` must repeat the argument `{argument}`.")
            }
            Fault::Uncalled => {
                write!(
                    f,
                    "The header `{header}` repeats the argument `{argument}`, which is not there."
                )
            }
            Fault::Repeated => write!(f, "The header `{header}` stands there more than once."),
            Fault::Malformed(bad) => write!(f, "The header `{header}` cannot be read: {bad}."),
            Fault::Differs => {
                write!(f, "The header `{header}` does not match the argument `{argument}`.")
            }
            Fault::Unsafe => write!(
                f,
                "The argument `{argument}` is repeated in `{header}`, so it must be an integer \
                 between -(2^53-1) and 2^53-1."
            ),
            Fault::Unreadable => {
                write!(f, "The argument `{argument}` is nothing that `{header}` could repeat.")
            }
        }
    }
}

impl std::error::Error for Mismatch {}

const ANNOTATION: &str = "x-mcp-header";

#[cfg(test)]
mod tests;
