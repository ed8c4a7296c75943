//! Both backends, through their public API.

mod backend;
mod bounds;
mod child;
mod damage;
mod kill;
mod model;
mod processes;
mod redis;
mod suite;
