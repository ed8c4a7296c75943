use std::collections::{HashMap, HashSet};

use trunkline_testkit::Dice;

use super::super::fixture::plan;
use super::*;

/// `server/tool` or `server/tool=renamed`, with the shown name of each.
fn check(scheme: Scheme, expected: &[(&str, &str)]) {
    let own: Vec<Own<'_>> = expected
        .iter()
        .map(|(it, _)| {
            let (server, name) = it.split_once('/').unwrap();
            let (name, base) = name.split_once('=').unwrap_or((name, name));
            Own { server, name, base }
        })
        .collect();
    let shown = assign(scheme, &own);
    let found: Vec<(&str, &str)> =
        expected.iter().zip(&shown).map(|((it, _), shown)| (*it, &**shown)).collect();
    assert_eq!(found, expected);
}

fn own(server: &'static str, name: &'static str, base: &'static str) -> Own<'static> {
    Own { server, name, base }
}

#[test]
fn prefix_naming_is_server_dot_tool() {
    check(
        Scheme::Prefix,
        &[
            ("git/log", "git.log"),
            ("git/a.b", "git.a.b"),
            ("time/log", "time.log"),
            ("time/now=clock", "time.clock"),
        ],
    );
}

#[test]
fn flat_naming_gives_each_of_several_its_servers_name() {
    check(
        Scheme::Flat,
        &[("git/log", "log_git"), ("git/status", "status"), ("svn/log", "log_svn")],
    );
}

#[test]
fn underscores_stand_for_dots_and_none_is_two_things() {
    check(Scheme::Underscore, &[("git/log", "git_log"), ("git/a.b", "git_a_b")]);
    let both = [("a_b", "c"), ("a", "b_c")].map(|(server, name)| Own { server, name, base: name });
    let shown = assign(Scheme::Underscore, &both);
    assert!(shown[0] != shown[1] && shown.iter().all(|it| it.starts_with("a_b_c_")), "{shown:?}");
}

#[test]
fn where_that_is_taken_too_a_number_follows() {
    check(
        Scheme::Flat,
        &[
            ("a/echo", "echo_a_2"),
            ("b/echo", "echo_b"),
            // It would collide with `echo` of `a`, so neither gets the name.
            ("c/echo_a", "echo_a_c"),
        ],
    );
}

#[test]
fn and_as_a_last_resort_a_hash() {
    // Both would be called `x_b_c` and `x_b_c_2`.
    let all =
        [own("b_c", "x", "x"), own("c", "x_b", "x_b"), own("d", "x", "x"), own("d", "x_b", "x_b")];
    let shown = assign(Scheme::Flat, &all);
    assert!(shown[0].starts_with("x_b_c_") && shown[0].len() == "x_b_c_".len() + 8, "{shown:?}");
    assert!(shown[1].starts_with("x_b_c_") && shown[1] != shown[0], "{shown:?}");
    assert_eq!([&*shown[2], &*shown[3]], ["x_d", "x_b_d"]);
}

#[test]
fn a_selected_server_is_shown_as_it_is() {
    check(Scheme::Raw, &[("git/log", "log"), ("git/odd name/é", "odd name/é")]);
}

#[test]
fn odd_and_overlong_names_are_made_legal_and_stay_apart() {
    let long = "x".repeat(300);
    let longer = format!("{long}y");
    for scheme in [Scheme::Prefix, Scheme::Flat] {
        let names = ["a b", "a/b", "é", &long, &longer, "a_b"];
        let own: Vec<_> = names.iter().map(|name| Own { server: "s", name, base: name }).collect();
        let shown = assign(scheme, &own);
        assert!(shown.iter().all(|it| is_tool_name(it)), "{shown:?}");
        assert_eq!(shown.iter().collect::<HashSet<_>>().len(), names.len(), "{shown:?}");
        assert!(shown[0].contains("a_b_"), "one can still read it: {}", shown[0]);
        assert!(shown[5].ends_with("a_b"), "and legal ones stay: {}", shown[5]);
        assert_eq!(shown[3].len(), MAX_TOOL_NAME);
        // Each alone gets the same name.
        for (own, shown) in own.iter().zip(&shown) {
            assert_eq!(assign(scheme, &[*own])[0], *shown);
        }
    }
}

#[test]
fn renames_that_collide_both_lose_the_name() {
    let all = [own("s", "a", "b"), own("s", "b", "b"), own("t", "b", "b")];
    for scheme in [Scheme::Prefix, Scheme::Flat] {
        let shown = assign(scheme, &all);
        assert_eq!(shown.iter().collect::<HashSet<_>>().len(), 3, "{scheme:?} {shown:?}");
    }
    assert_eq!(&*assign(Scheme::Prefix, &all)[2], "t.b", "another server is not concerned");
}

#[test]
fn patterns_have_stars() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("get_*", &["get_time"], &["set_time"]),
        ("*", &[""], &[]),
        ("*time", &["get_time"], &[]),
        ("a*b*c", &["a-b-b-c"], &["a-c-b"]),
        ("a*a", &[], &["a"]),
        ("**", &["x"], &[]),
        ("exact", &["exact"], &["exactly"]),
    ];
    for (pattern, like, unlike) in cases {
        assert!(like.iter().all(|it| is_like(pattern, it)), "{pattern} {like:?}");
        assert!(!unlike.iter().any(|it| is_like(pattern, it)), "{pattern} {unlike:?}");
    }
}

#[test]
fn only_exposed_tools_are_seen_and_renames_come_first() {
    let mut plan = plan("s");
    assert!(is_exposed(&plan, "anything"));
    plan.expose = Some(vec!["get_*".to_owned(), "now".to_owned()]);
    plan.rename.insert("now".to_owned(), "clock".to_owned());
    assert!(is_exposed(&plan, "get_time") && is_exposed(&plan, "now"));
    assert!(!is_exposed(&plan, "clock"), "it is the own name that counts");
    assert_eq!((base(&plan, "now"), base(&plan, "get_time")), ("clock", "get_time"));
    plan.expose = Some(Vec::new());
    assert!(!is_exposed(&plan, "now"));
}

/// Names that are meant to collide.
fn random_name(dice: &mut Dice) -> String {
    const PIECES: [&str; 10] = ["a", "b", "_", "_a", "_b", "_2", ".", "/", "é", "a.b"];
    let mut name = String::new();
    for _ in 0..1 + dice.roll(4) {
        name.push_str(PIECES[dice.roll(PIECES.len())]);
    }
    if dice.roll(20) == 0 { name.repeat(70) } else { name }
}

/// `(server, own name, base)`, without duplicate own names in a server.
fn random_tools(dice: &mut Dice) -> Vec<(String, String, String)> {
    const SERVERS: [&str; 6] = ["a", "b", "a_b", "b_2", "2", "a-a"];
    let mut all = Vec::new();
    let mut taken = HashSet::new();
    for _ in 0..dice.roll(40) {
        let (server, name) = (SERVERS[dice.roll(SERVERS.len())].to_owned(), random_name(dice));
        let base = if dice.roll(8) == 0 { random_name(dice) } else { name.clone() };
        if taken.insert((server.clone(), name.clone())) {
            all.push((server, name, base));
        }
    }
    all
}

fn named(scheme: Scheme, all: &[(String, String, String)]) -> Vec<Arc<str>> {
    let own: Vec<_> = all.iter().map(|(server, name, base)| Own { server, name, base }).collect();
    assign(scheme, &own)
}

#[test]
fn no_two_have_the_same_name_whatever_they_are_called() {
    for seed in 1..=2_000 {
        let mut dice = Dice(seed);
        let all = random_tools(&mut dice);
        for scheme in [Scheme::Prefix, Scheme::Flat] {
            let shown = named(scheme, &all);
            assert_eq!(shown.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?} {shown:?}");
            assert!(shown.iter().all(|it| is_tool_name(it)), "{shown:?}");
        }
        let only: Vec<_> = all.iter().filter(|(server, ..)| server == "a").cloned().collect();
        let shown = named(Scheme::Raw, &only);
        assert_eq!(shown.iter().collect::<HashSet<_>>().len(), only.len(), "{only:?} {shown:?}");
    }
}

#[test]
fn the_order_in_which_servers_come_does_not_matter() {
    for seed in 1..=500 {
        let mut dice = Dice(seed);
        let mut all = random_tools(&mut dice);
        for scheme in [Scheme::Prefix, Scheme::Flat] {
            let before: HashMap<_, _> = all.iter().cloned().zip(named(scheme, &all)).collect();
            for at in (1..all.len()).rev() {
                all.swap(at, dice.roll(at + 1));
            }
            let after: HashMap<_, _> = all.iter().cloned().zip(named(scheme, &all)).collect();
            assert_eq!(before, after);
        }
    }
}

#[test]
fn when_servers_come_or_go_a_name_never_means_another_tool() {
    for seed in 1..=2_000 {
        let mut dice = Dice(seed);
        let all = random_tools(&mut dice);
        let fewer: Vec<_> = all.iter().filter(|(server, ..)| server != "b").cloned().collect();
        for scheme in [Scheme::Prefix, Scheme::Flat] {
            let means = |tools: &[(String, String, String)]| -> HashMap<Arc<str>, _> {
                named(scheme, tools).into_iter().zip(tools.to_vec()).collect()
            };
            let (with, without) = (means(&all), means(&fewer));
            for (name, tool) in &without {
                assert!(with.get(name).is_none_or(|it| it == tool), "{name} of {all:?}");
            }
            if scheme == Scheme::Prefix {
                for (name, tool) in &without {
                    assert_eq!(with.get(name), Some(tool), "nobody else is concerned");
                }
            }
        }
    }
}

#[test]
fn flat_names_do_not_depend_on_servers_that_share_none() {
    let alone = [own("git", "log", "log")];
    let other = own("time", "now", "now");
    assert_eq!(assign(Scheme::Flat, &alone)[0], assign(Scheme::Flat, &[other, alone[0]])[1]);
}

#[test]
fn many_colliding_names_are_resolved_in_reasonable_time() {
    let servers: Vec<String> = (0..3_000).map(|at| format!("s{at}")).collect();
    let own: Vec<_> =
        servers.iter().map(|server| Own { server, name: "run", base: "run" }).collect();
    let shown = assign(Scheme::Flat, &own);
    assert_eq!(shown.iter().collect::<HashSet<_>>().len(), own.len());
    assert_eq!(&*shown[7], "run_s7");
}
