//! The file that callgrind writes → what every function cost itself, and how often memory was asked for.

use std::collections::BTreeMap;
use std::path::Path;

use super::read;

/// What one run of a program took.
#[derive(Debug, Default, PartialEq)]
pub struct Profile {
    pub instructions: u64,
    pub allocations: u64,
    /// The instructions of each function without those of what it calls.
    functions: BTreeMap<String, u64>,
}

impl Profile {
    pub fn read(path: &Path) -> Result<Profile, String> {
        let profile = Profile::parse(&read(path)?);
        match profile.instructions {
            0 => Err(format!("`{}` counts no instructions.", path.display())),
            _ => Ok(profile),
        }
    }

    /// See "Callgrind Format Specification" in Valgrind's manual.
    fn parse(text: &str) -> Profile {
        let mut profile = Profile::default();
        // A name is written once, behind its number; afterwards the number stands for it.
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        let (mut current, mut called) = (String::new(), String::new());
        let mut is_of_a_call = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                current = named(&mut names, name);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                called = named(&mut names, name);
            } else if let Some(rest) = line.strip_prefix("calls=") {
                is_of_a_call = true;
                if ALLOCATORS.contains(&called.as_str()) {
                    let count = rest.split(' ').next().and_then(|count| count.parse::<u64>().ok());
                    profile.allocations += count.unwrap_or(0);
                }
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                // What follows a call is what the callee cost, and is counted there.
                let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
                if let Some(cost) = cost.filter(|_| !is_of_a_call) {
                    profile.instructions += cost;
                    *profile.functions.entry(current.clone()).or_default() += cost;
                }
                is_of_a_call = false;
            }
        }
        profile
    }

    /// What each call took, when this was measured with `calls` more of them than `shorter`: start and end cancel out.
    pub fn per_call(&self, shorter: &Profile, calls: u64) -> PerCall {
        let share = |more: u64, less: u64| (more as f64 - less as f64) / calls as f64;
        let own = |(name, cost): (&String, &u64)| {
            let before = shorter.functions.get(name).copied().unwrap_or(0);
            (name.clone(), share(*cost, before))
        };
        PerCall {
            instructions: share(self.instructions, shorter.instructions),
            allocations: share(self.allocations, shorter.allocations),
            functions: self.functions.iter().map(own).collect(),
        }
    }
}

/// What one call takes.
#[derive(Clone, Debug, PartialEq)]
pub struct PerCall {
    pub instructions: f64,
    pub allocations: f64,
    /// Every function and what it costs itself.
    pub functions: Vec<(String, f64)>,
}

fn named<'a>(names: &mut BTreeMap<&'a str, String>, text: &'a str) -> String {
    match text.split_once(' ') {
        Some((number, name)) => {
            let name = plain(name);
            names.insert(number, name.clone());
            name
        }
        None => names.get(text).cloned().unwrap_or_else(|| plain(text)),
    }
}

/// A function's name without what only tells two builds of it apart: the hash, and how deep it is in itself.
fn plain(name: &str) -> String {
    let name = match name.rsplit_once('\'') {
        Some((name, depth)) if depth.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => name,
    };
    match name.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|it| it.is_ascii_hexdigit()) => {
            name.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// The ways to ask glibc for memory.
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# callgrind format
positions: line
events: Ir
summary: 130

fn=(1) server::answer::h0123456789abcdef
10 20
+2 30
cfn=(2) malloc
calls=3 0
* 60
fn=(2)
0 60
fn=(1)
12 20
totals: 130
";

    #[test]
    fn what_a_callee_costs_is_not_its_callers() {
        let profile = Profile::parse(TEXT);
        assert_eq!((profile.instructions, profile.allocations), (130, 3));
        let expected = [("malloc".to_owned(), 60), ("server::answer".to_owned(), 70)];
        assert_eq!(profile.functions, BTreeMap::from(expected));
    }

    #[test]
    fn two_runs_give_what_a_call_takes() {
        let short = Profile::parse(TEXT);
        let long = Profile::parse(&TEXT.replace("12 20", "12 220").replace("calls=3", "calls=23"));
        let per_call = long.per_call(&short, 10);
        assert_eq!((per_call.instructions, per_call.allocations), (20.0, 2.0));
        let expected = [("malloc".to_owned(), 0.0), ("server::answer".to_owned(), 20.0)];
        assert_eq!(per_call.functions, expected);
    }
}
