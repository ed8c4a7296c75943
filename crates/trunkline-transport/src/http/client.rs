//! Messages ⇄ POSTs and event streams: the client's end of HTTP.
