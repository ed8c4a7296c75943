//! A server behind a gate: who is admitted, what the others are told, and what belongs to whom;
//! over every revision and on every path.

mod burdens;
mod entrances;
mod expiry;
mod issuer;
mod owners;
mod proofs;
mod public;
mod scopes;
mod streams;
mod upstream;
