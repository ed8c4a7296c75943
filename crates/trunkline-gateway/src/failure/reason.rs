//! The table of failure reasons, from which the enum is made.

use std::fmt;

macro_rules! reasons {
    ($($variant:ident $word:literal $sentence:literal)*) => {
        /// Why a call failed, as a word for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = $sentence] $variant,)*
        }

        impl Reason {
            /// The word that callers, logs and metrics see.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

reasons! {
    AmbiguousUri "ambiguous_uri" "Several servers claim a URI."
    ApprovalUnavailable "approval_unavailable" "The user would have to approve, and the caller cannot be asked."
    AuditUnavailable "audit_unavailable" "The audit cannot be written, and the catalog demands to refuse calls then."
    Backoff "backoff" "The last start failed, and the next one is delayed."
    BadAccounts "bad_accounts" "The logins of principals cannot be read."
    BadAnswer "bad_answer" "The answer breaks the protocol, or cannot be carried to the caller's revision."
    BadAudit "bad_audit" "The audit cannot be opened."
    BadAuth "bad_auth" "The settings of `gateway.auth` cannot be used."
    BadCertificates "bad_certificates" "The certificates of a server's entry cannot be used."
    BadRecording "bad_recording" "The file of recorded calls cannot be opened."
    Busy "busy" "Every instance was busy for as long as the caller waited."
    Cancelled "cancelled" "The server cancelled the work."
    Draining "draining" "The server is being stopped or replaced."
    Gone "gone" "The server is no longer in the catalog."
    HandshakeFailed "handshake_failed" "The server started, but the handshake failed."
    HeldBack "held_back" "The definition differs from its pin and waits for approval."
    InstanceEnded "instance_ended" "An instance ended before the call was made."
    InstanceMoved "instance_moved" "The instance is moving to another replica; nothing was done."
    ListFailed "list_failed" "The server did not list what it offers."
    LoginDeclined "login_declined" "The user declined to log in."
    LoginRequired "login_required" "The caller has to log in to the server first."
    MadeWay "made_way" "The call made way for others while its caller was asked."
    NoAuth "no_auth" "The gateway has no `auth`, so no token is checked."
    NotApproved "not_approved" "The user declined or did not answer."
    NotCompared "not_compared" "What an instance offers could not be compared with the pins."
    NotExecutable "not_executable" "The program may not be executed."
    NotFound "not_found" "The program was not found."
    NotLetIn "not_let_in" "The token is refused."
    NotYours "not_yours" "The instance acts with another principal's login."
    OutcomeUnknown "outcome_unknown" "The server went away during the call; the work may have been done."
    Overloaded "overloaded" "Too many callers wait already."
    Panicked "panicked" "The start panicked."
    PluginFailed "plugin_failed" "A plugin failed or did not answer in time."
    RateLimited "rate_limited" "A rate limit is used up."
    Refused "refused" "The server did not take the call."
    Rejected "rejected" "A plugin refused the call."
    SpawnFailed "spawn_failed" "The program could not be started."
    StartTimeout "start_timeout" "The server did not start in time."
    StickyBusy "sticky_busy" "The instance of this session or key is busy."
    StoreUnavailable "store_unavailable" "The store that replicas share does not answer."
    Suspended "suspended" "Too many starts failed; the next one needs `retry`."
    TaskLost "task_lost" "The instance that worked on a task is gone."
    Timeout "timeout" "The server did not answer in time; the work may have been done."
    TooManyParked "too_many_parked" "Too many calls wait for their callers' answers."
    TooManyTasks "too_many_tasks" "Too many tasks are running."
    TotalReached "total_reached" "As many instances run over all replicas as the catalog allows."
    UnknownPrompt "unknown_prompt" "There is no such prompt for the caller."
    UnknownReference "unknown_reference" "There is no such prompt or template for the caller."
    UnknownTask "unknown_task" "There is no such task of the caller."
    UnknownTool "unknown_tool" "There is no such tool for the caller."
    Unreachable "unreachable" "The server could not be reached; nothing was done."
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl PartialEq<&str> for Reason {
    fn eq(&self, word: &&str) -> bool {
        self.word() == *word
    }
}
