//! A server behind a gate: who is let in, what the others are told, and what belongs to whom. Over
//! every revision and entrance.

mod burdens;
mod desk;
mod entrances;
mod expiry;
mod owners;
mod proofs;
mod public;
mod scopes;
mod streams;
mod upstream;
