//! The parameters of a query → which calls it is about.

use std::time::Duration;

use crate::merge::names::is_like;

/// Which calls are wanted. Each list holds globs, of which one has to fit; an empty one fits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficFilter {
    /// The server.
    pub server: Vec<String>,
    /// The outcome word, or `running`.
    pub outcome: Vec<String>,
    /// The principal.
    pub principal: Vec<String>,
    /// The method.
    pub method: Vec<String>,
    /// A part of the name, the method, the server, the principal, the client or the reason, in any case.
    pub text: Option<String>,
    /// Calls that began less than this long ago.
    pub since: Option<Duration>,
    /// Calls that began before the one with this id.
    pub before: Option<String>,
    /// How many.
    pub limit: Option<usize>,
}

/// What a filter sees of a call.
pub(crate) struct Facts<'a> {
    pub(crate) server: &'a str,
    pub(crate) outcome: &'a str,
    pub(crate) principal: &'a str,
    pub(crate) method: &'a str,
    pub(crate) name: &'a str,
    pub(crate) client: &'a str,
    pub(crate) reason: &'a str,
    /// How long ago it began.
    pub(crate) age: Duration,
}

impl TrafficFilter {
    /// Whether every call fits, whatever it is.
    pub(crate) fn fits_all(&self) -> bool {
        let Self { server, outcome, principal, method, text, since, before: _, limit: _ } = self;
        let lists = [server, outcome, principal, method];
        lists.iter().all(|it| it.is_empty()) && text.is_none() && since.is_none()
    }

    /// Sets one parameter; `false` if there is none of that name, an error if its value means nothing.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let globs = || value.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
        match name {
            "server" => self.server = globs(),
            "outcome" => self.outcome = globs(),
            "principal" => self.principal = globs(),
            "method" => self.method = globs(),
            "text" => self.text = (!value.is_empty()).then(|| value.to_lowercase()),
            "since" if value.is_empty() => self.since = None,
            "since" => {
                let time = duration(value);
                let message = "`since` is a time such as `90s`, `15m` or `2h`.";
                self.since = Some(time.ok_or_else(|| message.to_owned())?);
            }
            "before" => self.before = (!value.is_empty()).then(|| value.to_owned()),
            "limit" => {
                let limit = value.parse().map_err(|_| "`limit` is no number.".to_owned())?;
                self.limit = Some(limit);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the call is wanted. `before` and `limit` are about the list, not about one call.
    pub(crate) fn fits(&self, call: &Facts<'_>) -> bool {
        let fits = |globs: &[String], text: &str| {
            globs.is_empty() || globs.iter().any(|it| is_like(it, text))
        };
        let has = |text: &str| {
            let texts =
                [call.name, call.method, call.server, call.principal, call.client, call.reason];
            texts.iter().any(|it| it.to_lowercase().contains(text))
        };
        fits(&self.server, call.server)
            && fits(&self.outcome, call.outcome)
            && fits(&self.principal, call.principal)
            && fits(&self.method, call.method)
            && self.since.is_none_or(|it| call.age <= it)
            && self.text.as_deref().is_none_or(has)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u32>().ok().map(|it| Duration::from_secs(u64::from(it) * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, fits: bool) {
        let call = Facts {
            server: "files",
            outcome: "tool_error",
            principal: "ci-7",
            method: "tools/call",
            name: "files.Read",
            client: "ide/1",
            reason: "",
            age: Duration::from_secs(100),
        };
        let mut filter = TrafficFilter::default();
        for pair in query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap();
            assert_eq!(filter.set(name, value), Ok(true), "{pair}");
        }
        assert_eq!(filter.fits(&call), fits, "{query}");
    }

    #[test]
    fn every_filter_has_to_fit_and_one_of_its_globs() {
        for (query, fits) in [
            ("", true),
            ("server=files", true),
            ("server=file", false),
            ("server=git,fil*", true),
            ("outcome=*error&principal=ci-*", true),
            ("outcome=*error&principal=ide", false),
            ("method=tools/*", true),
            ("method=prompts/*", false),
            ("text=READ", true),
            ("text=ide/1", true),
            ("text=write", false),
            ("since=2m", true),
            ("since=99s", false),
            ("since=&server=", true),
        ] {
            check(query, fits);
        }
    }

    #[test]
    fn what_means_nothing_is_said() {
        let mut filter = TrafficFilter::default();
        for (name, value) in [("since", "soon"), ("since", "é"), ("since", "5"), ("limit", "many")]
        {
            assert!(filter.set(name, value).unwrap_err().ends_with('.'), "{name}={value}");
        }
        assert_eq!(filter.set("colour", "red"), Ok(false));
    }
}
