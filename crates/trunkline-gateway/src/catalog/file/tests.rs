use super::*;

/// The tree as JSON-like text, with a position before every value.
fn shown(node: &Node) -> String {
    let at = format!("{}:{}", node.at.line, node.at.column);
    match &node.data {
        Data::Scalar { text, is_plain: true } => format!("{at} {text}"),
        Data::Scalar { text, is_plain: false } => format!("{at} {text:?}"),
        Data::List(list) => {
            format!("{at} [{}]", list.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Data::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, it)| format!("{}={}", name.text, shown(it)));
            format!("{at} {{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn every_value_knows_its_place() {
    for (text, expected) in [
        ("a: 1\nb: [x, \"y\"]\n", "1:1 {a=1:4 1, b=2:4 [2:5 x, 2:8 \"y\"]}"),
        ("é: ä\n", "1:1 {é=1:4 ä}"),
        ("\u{feff}a: b", "1:1 {a=1:4 b}"),
        ("a: !!str 5", "1:1 {a=1:4 \"5\"}"),
        (
            "{\n\t\"a\": 1, // one\n\t\"b\": 2, /* two\n */ \"c\": \"http://x\",\n}\n",
            "1:1 {a=2:7 1, b=3:7 2, c=4:10 \"http://x\"}",
        ),
        ("// mine\n{\"a\": \"\\\"// no\"}", "2:1 {a=2:7 \"\\\"// no\"}"),
        ("{a: http://b, c: d}", "1:1 {a=1:5 http://b, c=1:18 d}"),
        (
            "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n",
            "1:1 {a=1:4 {k=1:11 1, l=1:17 2}, b=2:4 {l=2:16 3, k=1:11 1}}",
        ),
    ] {
        let found = read(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        assert_eq!(shown(&found.root), expected, "{text}");
    }
}

#[test]
fn unparsable_text_is_reported_with_its_position() {
    let deep = "[".repeat(70);
    let bomb: String = (1..12).fold("a0: &a0 [x]\n".to_owned(), |text, it| {
        let aliases = format!("*a{},", it - 1).repeat(9);
        format!("{text}a{it}: &a{it} [{aliases}]\n")
    });
    for (text, place, message) in [
        ("", (1, 1), "The file is empty."),
        ("# nothing\n", (1, 1), "The file is empty."),
        ("null", (1, 1), "The file is empty."),
        ("a: 1\n---\nb: 2\n", (2, 1), "The file has a second document."),
        ("a: \"b", (1, 4), "While scanning a quoted scalar, found unexpected end of stream."),
        ("a: !x b", (1, 4), "There is a tag (`!…`) here."),
        ("? [a]\n: b", (1, 3), "A key must be a text."),
        ("a: &x [*x]", (1, 8), "This alias stands in what it stands for."),
        (&deep, (1, 65), "This is nested too deeply."),
        (&bomb, (6, 26), "The file has more than 100000 values, those of aliases included."),
    ] {
        let found = read(text).unwrap_err();
        let found = ((found.at.line, found.at.column), found.message);
        assert_eq!(found, (place, message.to_owned()), "{text}");
    }
    let large = format!("a: {}", "x".repeat(LARGEST));
    assert_eq!(read(&large).unwrap_err().message, "The file is larger than 1024 KiB.");
}

#[test]
fn a_line_that_cannot_be_read_shows_no_value() {
    let fault = read("env: { KEY: ${HUNTER2} }\n").unwrap_err();
    assert_eq!(fault.excerpt, Some(("env: { ···: ${·······} }".to_owned(), 13)));
    let advice = "Put quotes around `\"${…}\"` in `[…]` and `{…}`.";
    assert_eq!(fault.suggestion.as_deref(), Some(advice));
}

#[test]
fn excerpts_show_one_value_at_most() {
    let document = read("a: {t: secret, strategy: statless} # secret\nb: |\n  secret\n").unwrap();
    let at = |line, column| Mark { line, column };
    let found = document.excerpt(at(1, 26), true);
    assert_eq!(found, Some(("a: {t: …, strategy: statless}".to_owned(), 20)));
    let found = document.excerpt(at(1, 26), false);
    assert_eq!(found, Some(("a: {t: …, strategy: …}".to_owned(), 20)));
    let found = document.excerpt(at(1, 5), false);
    assert_eq!(found, Some(("a: {t: …, strategy: …}".to_owned(), 4)));
    assert_eq!(document.excerpt(at(3, 3), false), Some(("  …".to_owned(), 2)));
}
