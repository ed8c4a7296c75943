//! A value that is read but never shown.
