//! The macros: what they make is what one would write by hand, and what is missing is told.

mod by_hand;
mod forms;
mod matrix;
mod scopes;
mod served;
mod shadows;
mod terms;
