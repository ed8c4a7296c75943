//! HTTP/1.1 as both ends speak it: the lines of a head, the length of a body, and what is read and written.

pub(super) mod chunks;
pub(super) mod fields;
pub(super) mod inlet;
pub(super) mod outlet;
