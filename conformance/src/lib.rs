//! The official conformance suite ⇄ our SDK: the server that it asks for, and the client.
//!
//! Everything here is written as a user of the SDK would write it. [`fixtures`] is what
//! `conformance-server` offers, [`scenarios`] is what `conformance-client` does.

#![forbid(unsafe_code)]

mod executed;
pub mod fixtures;
pub mod scenarios;

use std::process::ExitCode;

pub use executed::calls;

/// How a program ends, with a sentence on stderr if it did not come to its end.
pub fn exit_code(ended: Result<(), String>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            #[allow(clippy::print_stderr)] // It is what the program has to say.
            {
                eprintln!("{message}");
            }
            ExitCode::FAILURE
        }
    }
}
