//! The context of a call that starts, made when a parameter of its function asks for it. Most functions have no use
//! for one, and their calls do without.

use std::fmt;
use std::sync::OnceLock;

use super::Context;
use crate::server::job::Job;

/// Makes the context of a job.
pub(in crate::server) type MakeContext<'a> = &'a (dyn Fn(&Job) -> Context + Sync);

/// The context of a call, made at the first [`Self::get`].
pub(crate) struct LazyContext<'a> {
    job: &'a Job,
    make: MakeContext<'a>,
    made: OnceLock<Context>,
}

impl<'a> LazyContext<'a> {
    pub(in crate::server) fn new(job: &'a Job, make: MakeContext<'a>) -> Self {
        Self { job, make, made: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> &Context {
        self.made.get_or_init(|| {
            let context = (self.make)(self.job);
            if let Some(origin) = self.job.target.origin() {
                context.set_home(&origin.home);
            }
            context
        })
    }

    /// The context, if anybody has asked for it.
    pub(in crate::server) fn into_made(self) -> Option<Context> {
        self.made.into_inner()
    }
}

impl fmt::Debug for LazyContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyContext").field("made", &self.made.get()).finish_non_exhaustive()
    }
}
