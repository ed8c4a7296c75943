//! Rules: decides whether a principal may use a target: allow, deny or ask.
//!
//! The first matching rule decides; without a match the call is allowed. A rule matches if each of its three
//! lists is empty or has a matching entry. The target is a [`Subject`]: a tool is `server.tool`, reading a
//! resource is `server.read:URI` and getting a prompt is `server.prompt:NAME`. So `git.*` is everything at
//! `git`, and `*.read:file:*` every file of every server. Names are the server's own, whatever they are shown
//! as.
//!
//! Of all readings of a URI, the one with the strictest effect counts.

use super::subject::{Patterns, Reading, Subject};
use crate::catalog::plan::{Effect, Rule};
use crate::merge::names::is_like;

/// Compiled rules.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Ready>);

#[derive(Clone, Debug)]
struct Ready {
    principals: Globs,
    tags: Vec<String>,
    tools: Patterns,
    /// The same as written, for decisions about a server as a whole.
    written: Globs,
    effect: Effect,
}

impl Rules {
    /// Compiles rules, in their order.
    pub fn new(rules: &[Rule]) -> Self {
        let ready = rules.iter().map(|rule| Ready {
            principals: Globs::new(&rule.principals),
            tags: rule.tags.iter().map(|it| it.to_lowercase()).collect(),
            tools: Patterns::new(&rule.tools),
            written: Globs::new(&rule.tools),
            effect: rule.effect,
        });
        Self(ready.collect())
    }

    /// Whether everything is allowed to everyone.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decides about a target on a server with these tags, for a caller with these names. An anonymous caller
    /// has none, and the empty name stands for it: `*` matches it, `a*` does not.
    pub fn decide(
        &self,
        principal: &[impl AsRef<str>],
        tags: &[String],
        subject: &Subject<'_>,
    ) -> Effect {
        if subject.is_ambiguous() && !self.is_empty() {
            return Effect::Deny;
        }
        let concerns = |rule: &Ready| rule.is_about(principal, tags);
        // Far readings can only deny or ask, unless an earlier rule allows the near ones.
        let first = |near: &Reading<'_>, far: Option<&Reading<'_>>| {
            let fits = |rule: &&Ready| {
                let reading = far.filter(|_| rule.effect != Effect::Allow).unwrap_or(near);
                concerns(rule) && rule.tools.fits(subject, reading)
            };
            self.0.iter().find(fits).map_or(Effect::Allow, |rule| rule.effect)
        };
        let readings = subject.near().iter().flat_map(|near| {
            let far = subject.far().iter().map(Some);
            std::iter::once(None).chain(far).map(move |far| (near, far))
        });
        let effects = readings.map(|(near, far)| first(near, far));
        effects.max_by_key(|it| strictness(*it)).unwrap_or(Effect::Allow)
    }

    /// Whether anything on a server with these tags could be allowed, whatever it offers.
    pub(crate) fn may_allow(
        &self,
        principal: &[impl AsRef<str>],
        tags: &[String],
        server: &str,
    ) -> bool {
        let prefix = format!("{server}.");
        for rule in &self.0 {
            if !rule.is_about(principal, tags) {
                continue;
            }
            match rule.effect {
                Effect::Deny if rule.written.fit_all_behind(&prefix) => return false,
                Effect::Deny => {}
                Effect::Allow | Effect::Ask if rule.written.fit_some_behind(&prefix) => {
                    return true;
                }
                Effect::Allow | Effect::Ask => {}
            }
        }
        true
    }
}

fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Allow => 0,
        Effect::Ask => 1,
        Effect::Deny => 2,
    }
}

impl Ready {
    fn is_about(&self, principal: &[impl AsRef<str>], tags: &[String]) -> bool {
        let tagged = self.tags.is_empty()
            || tags.iter().any(|tag| self.tags.iter().any(|it| it.eq_ignore_ascii_case(tag)));
        tagged && self.principals.fit_one_of(principal)
    }
}

/// Patterns of which one must match; an empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Globs(Vec<Glob>);

impl Globs {
    pub(crate) fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().map(|it| Glob::new(it)).collect())
    }

    pub(crate) fn fits(&self, text: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|glob| glob.fits(text))
    }

    /// Whether they match a caller with these names.
    pub(crate) fn fit_one_of(&self, names: &[impl AsRef<str>]) -> bool {
        match names {
            [] => self.fits(""),
            names => names.iter().any(|it| self.fits(it.as_ref())),
        }
    }

    /// Whether one matches every text with this prefix.
    fn fit_all_behind(&self, prefix: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|glob| glob.fits_all_behind(prefix))
    }

    /// Whether one matches some text with this prefix.
    fn fit_some_behind(&self, prefix: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|glob| glob.fits_some_behind(prefix))
    }
}

/// A glob: `*` stands for any text, including none. Nothing else is special.
#[derive(Clone, Debug, PartialEq)]
pub struct Glob(Box<str>);

impl Glob {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.into())
    }

    /// Whether all of `text` matches, in time linear in its length.
    pub fn fits(&self, text: &str) -> bool {
        is_like(&self.0, text)
    }

    fn fits_all_behind(&self, prefix: &str) -> bool {
        let parts = self.0.split_once('*');
        parts.is_some_and(|(first, rest)| {
            rest.bytes().all(|it| it == b'*') && prefix.starts_with(first)
        })
    }

    fn fits_some_behind(&self, prefix: &str) -> bool {
        match self.0.split_once('*') {
            Some((first, _)) => first.starts_with(prefix) || prefix.starts_with(first),
            None => self.0.starts_with(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::What;
    use crate::policy::subject::tool;
    use Effect::{Allow, Ask, Deny};

    const NOBODY: &[&str] = &[];

    fn texts(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    fn rules(lines: &[(&str, &str, &str, Effect)]) -> Rules {
        let rule = |(principals, tags, tools, effect): &(&str, &str, &str, Effect)| Rule {
            principals: texts(principals),
            tags: texts(tags),
            tools: texts(tools),
            effect: *effect,
        };
        Rules::new(&lines.iter().map(rule).collect::<Vec<_>>())
    }

    #[test]
    fn a_star_is_any_text_and_nothing_else_is_special() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("git.push", &["git.push"], &["git.push2", "agit.push"]),
            ("*", &["", "anything at all"], &[]),
            ("", &[""], &["a"]),
            ("git.*", &["git.push"], &["github.push"]),
            ("*.push", &["git.push", ".push"], &["git.pushed"]),
            ("a*b", &["ab", "aXb"], &[]),
            ("a*a", &[], &["a"]),
            ("ab*ba", &[], &["aba"]),
            ("a*b*c", &["a1b2c"], &["acb"]),
            ("a*b*b", &[], &["ab"]),
            ("a**b", &["ab"], &[]),
            ("*é*", &["caféteria"], &[]),
            ("git.p?sh", &[], &["git.push"]),
            ("git[.]push", &[], &["git.push"]),
            ("GIT.*", &[], &["git.push"]),
            ("files.read:file:///etc/*", &["files.read:file:///etc/passwd"], &[]),
        ];
        for (pattern, like, unlike) in cases {
            let fits = |text: &&&str| Glob::new(pattern).fits(text);
            assert_eq!(like.iter().find(|it| !fits(it)), None, "`{pattern}` fits it");
            assert_eq!(unlike.iter().find(fits), None, "`{pattern}` does not fit it");
        }
    }

    #[test]
    fn stars_that_fit_in_many_ways_are_tried_once() {
        let pattern = "*a".repeat(5_000) + "*b";
        let text = "a".repeat(1 << 20);
        // Backtracking would take practically for ever.
        assert!(!Glob::new(&pattern).fits(&text));
        assert!(Glob::new(&pattern).fits(&(text + "b")));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = rules(&[
            ("root", "", "", Allow),
            ("", "", "git.push* db.drop", Deny),
            ("", "", "git.*", Ask),
            ("", "", "git.status", Deny),
        ]);
        assert_eq!(rules.decide(&["root"], &[], &tool("git.push_force")), Allow);
        assert_eq!(rules.decide(&["alice"], &[], &tool("git.push_force")), Deny);
        assert_eq!(rules.decide(NOBODY, &[], &tool("db.drop")), Deny);
        assert_eq!(
            rules.decide(&["alice"], &[], &tool("git.status")),
            Ask,
            "the later rule is late"
        );
        assert_eq!(rules.decide(&["alice"], &[], &tool("time.now")), Allow, "nothing fits");
    }

    #[test]
    fn without_rules_everything_is_allowed() {
        assert!(Rules::new(&[]).is_empty());
        assert_eq!(Rules::new(&[]).decide(NOBODY, &[], &tool("a.b")), Allow);
    }

    #[test]
    fn a_server_of_which_everything_is_denied_is_known_before_its_lists_are() {
        type Line = (&'static str, &'static str, &'static str, Effect);
        let table: &[(&[Line], bool)] = &[
            (&[], true),
            (&[("", "", "", Deny)], false),
            (&[("", "", "*", Deny)], false),
            (&[("", "", "db.*", Deny)], false),
            (&[("", "", "d*", Deny)], false),
            (&[("bob", "", "db.*", Deny)], true),
            (&[("", "prod", "db.*", Deny)], false),
            (&[("", "test", "db.*", Deny)], true),
            (&[("", "", "db.drop", Deny)], true),
            (&[("", "", "*.drop", Deny)], true),
            (&[("", "", "dbx.*", Deny)], true),
            (&[("", "", "db.read", Allow), ("", "", "*", Deny)], true),
            (&[("", "", "*.read", Ask), ("", "", "*", Deny)], true),
            (&[("", "", "public.*", Allow), ("", "", "*", Deny)], false),
            (&[("bob", "", "db.*", Allow), ("", "", "*", Deny)], false),
        ];
        for (lines, expected) in table {
            let may = rules(lines).may_allow(&["alice"], &texts("prod"), "db");
            assert_eq!(may, *expected, "{lines:?}");
        }
    }

    #[test]
    fn every_list_of_a_rule_must_fit() {
        let rules = rules(&[("a* bob", "Prod live", "db.*", Deny)]);
        let tags = |words| texts(words);
        assert_eq!(rules.decide(&["alice"], &tags("eu prod"), &tool("db.read")), Deny);
        assert_eq!(rules.decide(&["bob"], &tags("live"), &tool("db.read")), Deny);
        assert_eq!(
            rules.decide(&["carol"], &tags("prod"), &tool("db.read")),
            Allow,
            "another person"
        );
        assert_eq!(rules.decide(&["alice"], &tags("test"), &tool("db.read")), Allow, "another tag");
        assert_eq!(rules.decide(&["alice"], &tags(""), &tool("db.read")), Allow, "no tag");
        assert_eq!(
            rules.decide(&["alice"], &tags("prod"), &tool("git.read")),
            Allow,
            "another tool"
        );
    }

    #[test]
    fn an_anonymous_caller_matches_a_star_alone() {
        let rules = rules(&[("a*", "", "x.*", Allow), ("*", "", "x.*", Deny)]);
        assert_eq!(rules.decide(&["alice"], &[], &tool("x.y")), Allow);
        assert_eq!(rules.decide(NOBODY, &[], &tool("x.y")), Deny);
    }

    #[test]
    fn resources_and_prompts_go_by_the_same_rules() {
        let rules =
            rules(&[("", "", "files.read:file:///etc/*", Deny), ("", "", "*.prompt:*", Ask)]);
        let decide = |what: What| rules.decide(NOBODY, &[], &Subject::new("files", what));
        assert_eq!(decide(What::Resource("file:///etc/passwd")), Deny);
        assert_eq!(decide(What::Resource("file:///users/a")), Allow);
        assert_eq!(decide(What::Prompt("review")), Ask);
        assert_eq!(decide(What::Tool("write")), Allow);
    }
}
