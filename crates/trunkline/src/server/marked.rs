//! A function with `#[tool]`, `#[prompt]` or `#[resource]` → its entry.
//!
//! Such a function stays a function, so that variables may have its name. Its return type knows its
//! entry, and the builder finds the entry through that type.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::prompt::{IntoPromptEntry, PromptEntry};
use super::resource::{IntoResource, ResourceOrTemplate};
use super::tool::{IntoTool, ToolEntry};

/// What a function with an attribute returns: the future of one call.
#[doc(hidden)]
pub trait Made {
    /// The kind of entry of the function.
    type Entry;

    /// The entry of the function.
    fn entry() -> Self::Entry;
}

/// A function with an attribute. `Signature` keeps the implementations apart.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered",
    note = "put `#[tool]`, `#[prompt]` or `#[resource]` on the function"
)]
pub trait Marked<Signature> {
    /// What it returns.
    type Made: Made;
}

impl<F: Marked<S>, S> IntoTool<(S,)> for F
where
    F::Made: Made<Entry = ToolEntry>,
{
    fn into_tool(self) -> ToolEntry {
        F::Made::entry()
    }
}

impl<F: Marked<S>, S> IntoPromptEntry<(S,)> for F
where
    F::Made: Made<Entry = PromptEntry>,
{
    fn into_prompt_entry(self) -> PromptEntry {
        F::Made::entry()
    }
}

impl<F: Marked<S>, S> IntoResource<(S,)> for F
where
    <F::Made as Made>::Entry: IntoResource,
{
    fn into_resource(self) -> ResourceOrTemplate {
        F::Made::entry().into_resource()
    }
}

/// A type that can be an argument of a tool.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "this is no argument",
    note = "put `#[data]` on `{Self}`; or `#[extract]` before the parameter, if the caller does not give it"
)]
pub trait Argument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> Argument for T {}

/// Compiles if `T` can be an argument.
#[doc(hidden)]
pub fn argument<T: Argument>() {}

macro_rules! functions {
    () => { function!(); };
    ($first:ident $($rest:ident)*) => {
        function!($first $($rest)*);
        functions!($($rest)*);
    };
}

macro_rules! function {
    ($($param:ident)*) => {
        impl<F, R, $($param),*> Marked<fn($($param),*) -> R> for F
        where
            F: FnOnce($($param),*) -> R,
            R: Made,
        {
            type Made = R;
        }
    };
}

// As many as the macros let a function have.
functions!(A B C D E G H I J K L M N O P Q T U V W X Y Z A1 B1 C1 D1 E1 G1 H1 I1 J1);
