use super::*;

/// A crate of these files at `src/`, whose root is `lib.rs`.
fn checked(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &str| {
        let found = files.iter().find(|(name, _)| path.strip_prefix("src/") == Some(*name));
        found.map(|(_, text)| (*text).to_owned())
    };
    check(&["src/lib.rs".to_owned()], &read)
}

/// `a` and `b`, of which `b` imports `a`; what `a` says decides.
fn circle(a: &str) -> Vec<String> {
    let b = "use crate::a::A;\npub struct B;";
    checked(&[("lib.rs", "mod a;\nmod b;\npub use b::B;"), ("a.rs", a), ("b.rs", b)])
}

#[test]
fn a_circle_is_named_with_an_import_for_each_arrow() {
    let said = circle("//! A.\n\nuse crate::b::B;\nuse crate::b::C;");
    assert_eq!(
        said,
        ["src/lib.rs: the modules `a`, `b` import in a circle:\n  \
          `a` imports `b` at src/a.rs:3\n  `b` imports `a` at src/b.rs:1"]
    );
}

#[test]
fn every_spelling_of_a_path_is_an_arrow() {
    for a in [
        "use super::b;",
        "use super::{c, b::B};",
        "use crate::{\n    c::{self, D},\n    b,\n};",
        "fn f() { crate::b::g() }",
        "fn f(it: super::b::B) {}",
        "mod inner { use super::super::b::B; }",
        "use self::super::b::B;",
        "macro_rules! m { () => { $crate::b::g() } }",
        "const Q: char = '\"';\nuse crate::b::B;",
        "fn f<'a>(it: &'a str) { let _ = r#\"\"\"#; crate::b::g() }",
        "#[cfg(test)]\nuse crate::c::{C, D};\nuse crate::b::B;",
        "#[cfg(test)]\n#[allow(unused)]\nmod tests {}\nuse crate::b::B;",
    ] {
        assert_eq!(circle(a).len(), 1, "{a}");
    }
}

#[test]
fn what_is_no_path_to_another_module_is_no_arrow() {
    for a in [
        "use crate::B;",
        "use super::*;",
        "use super::{B, c};",
        "// use crate::b::B;",
        "/* crate::b /* crate::b */ crate::b */",
        "const S: &str = \"crate::b \\\" crate::b\";",
        "const S: &str = r#\"crate::b \" crate::b\"#;",
        "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
        "#[cfg(test)]\nuse crate::b::{B, C};",
        "#[cfg(all(test, unix))]\nfn f() { crate::b::g() }",
        "mod b { pub struct X; }\nuse self::b::X;",
        "mod inner { use super::b; }",
        "use crate::a::b;",
    ] {
        assert_eq!(circle(a), Vec::<String>::new(), "{a}");
    }
}

#[test]
fn files_below_a_module_count_as_it() {
    let said = checked(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "mod inner;\n#[cfg(test)]\nmod tests;"),
        ("a/inner.rs", "use super::super::b::B;"),
        ("a/tests.rs", "use crate::c::C;"),
        ("b/mod.rs", "mod deep { mod file; }"),
        ("b/deep/file.rs", "use crate::c;"),
        ("c.rs", "use crate::a::inner::I;"),
    ]);
    assert_eq!(said.len(), 1, "{said:?}");
    for arrow in ["`a` imports `b` at src/a/inner.rs:1", "src/b/deep/file.rs:1", "src/c.rs:1"] {
        assert!(said[0].contains(arrow), "{arrow}: {said:?}");
    }
}
