//! Many processes that serve as one: who owns which session, and who goes on with it when its owner is gone.
#![forbid(unsafe_code)]
mod state;
mod timing;
pub use timing::Timing;
