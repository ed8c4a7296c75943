//! URI templates: what is filled in is found again, and what matches fits when it is filled in.

use std::collections::BTreeMap;

use trunkline_wire::text::{UriTemplate, Value, percent_decode, percent_encode};

use crate::input::Input;

/// A template, a URI, then values for a template of our own shape.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (template, uri) = (input.text(), input.text());
    coding(&uri);
    if let Ok(parsed) = UriTemplate::parse(&template) {
        assert_eq!(parsed.as_str(), template);
        if let Some(found) = parsed.matches(&uri) {
            matched(&parsed, &uri, &found);
        }
        let values = parsed.variables().map(|it| (it.name.to_string(), Value::from(uri.as_str())));
        let expanded = parsed.expand(&values.collect());
        assert!(expanded.is_ascii(), "{expanded}");
        let _ = parsed.matches(&expanded);
    }
    shaped(&mut input);
}

fn coding(text: &str) {
    let mut coded = String::new();
    percent_encode(text, &mut coded);
    assert_eq!(percent_decode(&coded).as_deref(), Some(text));
}

/// Every value comes from the template's own variables and out of the URI.
fn matched(template: &UriTemplate, uri: &str, found: &BTreeMap<String, Value>) {
    let most = percent_decode(uri).map_or(uri.len(), |it| it.len().max(uri.len()));
    for (name, value) in found {
        assert!(template.variables().any(|it| *it.name == **name), "{name} is no variable");
        assert!(value.to_text().len() <= most, "{name} is longer than the URI");
    }
    assert_eq!(template.matches(uri).as_ref(), Some(found), "the second time it is another");
    let is_whole = template.variables().all(|it| it.prefix.is_none());
    let is_named = ["{?", "{&", "{;"].iter().any(|it| template.as_str().contains(it));
    let is_reserved = ["{+", "{#"].iter().any(|it| template.as_str().contains(it));
    // Names come in any order, with or without `=`, and `{+a}` writes a `%41` in a value as it is
    // (RFC 6570 §3.2.3), so what was `%2541` cannot be written. Else the text is the same but for escapes.
    let is_same = is_whole && !is_named && !(is_reserved && uri.contains("%25"));
    if let Some(decoded) = percent_decode(uri).filter(|_| is_same) {
        let again = template.expand(found);
        assert_eq!(percent_decode(&again), Some(decoded), "{uri} became {again}");
    }
    // A prefix cuts values, `{+a}` writes `/` where `%2F` was read, and `%2D` is written as `-`, which the
    // text after it may be: these alone may differ.
    let is_faithful = !uri.contains('%') && is_whole && !is_reserved;
    if is_faithful {
        let again = template.expand(found);
        assert_eq!(template.matches(&again).as_ref(), Some(found), "{uri} became {again}");
    }
}

/// `lit/{a}/lit{/b*}{?c,d*}`: what is filled in is found again.
fn shaped(input: &mut Input<'_>) {
    let (before, a, between, c) = (input.text(), input.text(), input.text(), input.text());
    let mut list = Vec::new();
    while !input.is_empty() && list.len() < 20 {
        list.push(input.text());
    }
    let clean = |text: &str| text.replace(|it: char| "{}%/?#".contains(it) || it.is_control(), "");
    let template = format!("x://{}/{{a}}/{}{{/b*}}{{?c,d*}}", clean(&before), clean(&between));
    let parsed = UriTemplate::parse(&template);
    let Ok(template) = parsed else {
        assert!(template.len() > 8 << 10, "{template}: {parsed:?}");
        return;
    };
    if a.is_empty() {
        return;
    }
    let mut values =
        BTreeMap::from([("a".to_owned(), Value::Text(a)), ("c".to_owned(), Value::Text(c))]);
    if !list.is_empty() {
        values.insert("b".to_owned(), Value::List(list.clone()));
        values.insert("d".to_owned(), Value::List(list));
    }
    let uri = template.expand(&values);
    if uri.len() <= 64 << 10 {
        assert_eq!(template.matches(&uri), Some(values), "{template} {uri}");
    }
}

pub(crate) const WORDS: &[&str] = &[
    "\0", "{", "}", "{a}", "{+a}", "{#a}", "{.a}", "{/a}", "{;a}", "{?a}", "{&a}", "{a,b}", "{a*}",
    "{/a*}", "{?a*,b}", "{a:3}", "x://", "%2F", "%C3%A9", "%zz", "?a=1&b=2", ";a=1", "/", ".", ",",
];
