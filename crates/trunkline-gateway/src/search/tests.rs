use super::*;
use crate::merge::fixture::server;
use trunkline_wire::revision::Revision;

const GIT: &str = r#"{"tools":[
    {"name":"git_log","description":"Shows the commit logs of a repository","inputSchema":{"type":"object","properties":{"repo_path":{"type":"string"},"max_count":{"type":"integer","description":"how many commits"}}}},
    {"name":"git_commit","description":"Records changes to the repository","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}}},
    {"name":"git_diff_staged","description":"Shows changes that are staged for commit","inputSchema":{"type":"object"}}]}"#;
const FILES: &str = r#"{"tools":[
    {"name":"read_text_file","title":"Read a text file","description":"Reads the complete contents of a file from the file system as text","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}},
    {"name":"write_file","description":"Creates a new file or overwrites an existing one","inputSchema":{"type":"object"}},
    {"name":"searchFiles","description":"Searches for files by a pattern","inputSchema":{"type":"object","properties":{"filter":{"type":"object","properties":{"extension":{"type":"string","description":"such as rs or py"}}}}}}]}"#;
const TIME: &str = r#"{"tools":[
    {"name":"get_current_time","description":"Get current time in a specific timezone","inputSchema":{"type":"object","properties":{"timezone":{"type":"string","description":"IANA name such as Asia/Tokyo"}}}},
    {"name":"天気","description":"都市の天気を調べる","inputSchema":{"type":"object"}}]}"#;

pub(super) fn index() -> Index {
    let revision = Revision::V2025_06_18;
    let servers = [("git", GIT), ("files", FILES), ("time", TIME)]
        .map(|(name, page)| server(name, revision, &[(Kind::Tools, page)]));
    Index::build(crate::catalog::plan::Naming::Prefix, &servers, false)
}

fn find(query: &str) -> Vec<String> {
    let found = Search::build(&index()).find(query, 3, &|_| true);
    assert!(found.is_sorted_by(|(a, _), (b, _)| a >= b), "{found:?}");
    found.into_iter().map(|(_, name)| name.to_string()).collect()
}

#[test]
fn the_tool_that_is_meant_comes_first() {
    for (query, expected) in [
        ("read a file", "files.read_text_file"),
        ("what time is it in Tokyo", "time.get_current_time"),
        ("show commit history log", "git.git_log"),
        ("record a commit with a message", "git.git_commit"),
        ("staged changes", "git.git_diff_staged"),
        ("search for files", "files.searchFiles"),
        ("timezones", "time.get_current_time"),
        ("getCurrentTime", "time.get_current_time"),
        ("git.git_log", "git.git_log"),
        ("filter by extension", "files.searchFiles"),
    ] {
        assert_eq!(find(query).first().map(String::as_str), Some(expected), "{query}");
    }
    assert!(find("天気").first().unwrap().starts_with("time."), "scripts without spaces");
}

#[test]
fn only_relevant_tools_are_found() {
    assert_eq!(find("what time is it in Tokyo"), ["time.get_current_time"]);
    assert_eq!(find("quantum entanglement"), [""; 0]);
    let commits = find("commit");
    assert!(commits.iter().all(|it| it.starts_with("git.")), "{commits:?}");
    assert!(find("file").len() <= 3);
}

#[test]
fn prefixes_of_words_match() {
    assert_eq!(find("repo").first().map(String::as_str), Some("git.git_log"));
    assert_eq!(find("timezon").first().map(String::as_str), Some("time.get_current_time"));
    assert_eq!(find("committing").first().map(String::as_str), Some("git.git_commit"));
}

#[test]
fn hidden_tools_are_not_found_and_an_empty_query_finds_the_first() {
    let search = Search::build(&index());
    let no_git = |name: &str| !name.starts_with("git.");
    assert!(search.find("commit log", 8, &no_git).is_empty());
    let first = search.find("  ", 2, &no_git);
    assert_eq!(
        first.iter().map(|(_, name)| &**name).collect::<Vec<_>>(),
        ["files.read_text_file", "files.write_file"]
    );
    assert!(search.find("file", 0, &|_| true).is_empty());
    assert!(Search::default().find("file", 3, &|_| true).is_empty());
}

#[test]
fn the_same_query_finds_the_same() {
    let once = find("file changes in a repository");
    for _ in 0..20 {
        assert_eq!(find("file changes in a repository"), once);
    }
}
