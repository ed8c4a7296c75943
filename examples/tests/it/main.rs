//! Every example, started as its users start it, and used by clients of both eras.

mod ask;
mod by_hand;
mod change;
mod clients;
mod common;
mod compose;
mod hello;
mod http;
mod lines;
mod long_work;
mod observe;
mod protected;
mod replicas;
mod sample;
mod secrets;
mod state;
mod toolbox;
mod travel;
