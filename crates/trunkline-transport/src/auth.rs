//! What authorization needs of the world: fetches, logins, and where they are kept.
