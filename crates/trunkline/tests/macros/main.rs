//! The macros: their output equals hand-written code, and their errors name what is missing.

mod by_hand;
mod forms;
mod handler_options;
mod matrix;
mod scopes;
mod served;
mod shadows;
