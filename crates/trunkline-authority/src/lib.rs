//! A small authorization server for trying out and testing: a request → its response. **Not for
//! production**: it keeps everything in memory and knows its users by name alone.

#![forbid(unsafe_code)]
