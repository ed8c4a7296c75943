//! A server's gate: which tokens grant access to whom.
//!
//! [`Protect`] is the configuration; a [`Gate`] made of it admits each request or says exactly why
//! not. Tokens are JWTs of [`JwtIssuer`]s, opaque ones that are introspected ([`Introspection`]),
//! or API keys.
//!
//! ```
//! use std::sync::Arc;
//! use trunkline_auth::fetch::{Answer, Ask, Fetch, FetchError, Pending};
//! use trunkline_auth::resource::{Gate, HeadView, JwtIssuer, Protect};
//!
//! # struct Nobody;
//! # impl Fetch for Nobody {
//! #     fn fetch(&self, _: Ask) -> Pending<'_, Result<Answer, FetchError>> { unreachable!() }
//! #     fn now(&self) -> std::time::SystemTime { std::time::SystemTime::now() }
//! # }
//! # fn block_on<T>(task: impl Future<Output = T>) -> T {
//! #     let mut task = std::pin::pin!(task);
//! #     let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! #     loop { if let std::task::Poll::Ready(it) = task.as_mut().poll(&mut context) { return it } }
//! # }
//! let protect = Protect::new("https://mcp.example/mcp")
//!     .jwt(JwtIssuer::new("https://id.example"))
//!     .scopes_required(["files:read"]);
//! let gate = Gate::new(protect, Arc::new(Nobody))?;
//! let denied = block_on(gate.admit(HeadView::new("POST", "/mcp", None, []))).unwrap_err();
//! assert_eq!(denied.status, 401);
//! assert_eq!(
//!     denied.challenge.unwrap(),
//!     "Bearer scope=\"files:read\", resource_metadata=\
//!      \"https://mcp.example/.well-known/oauth-protected-resource/mcp\"",
//! );
//! # Ok::<(), trunkline_auth::resource::Misconfigured>(())
//! ```

mod answer;
mod api_keys;
mod gate;
mod introspect;
pub mod jwt;
mod keys;
mod present;
mod protect;
mod replays;
#[cfg(test)]
mod scripted;
mod target;
mod turn;

pub use answer::{Admission, Denied};
pub use gate::Gate;
pub use present::HeadView;
pub use protect::{Dpop, Introspection, JwtIssuer, Misconfigured, Protect};
pub use replays::Replays;
