//! A fake user at a browser: approves a login page.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Opens a page, approves what it asks, and follows where it leads.
pub fn approve(url: &str) -> Result<(), String> {
    let mut answer = fetch(url, None)?;
    if let Some((action, form)) = form(&answer) {
        let cookie = header(&answer, "set-cookie").and_then(|it| it.split(';').next());
        answer = fetch(&absolute(url, &action), Some((&form, cookie.unwrap_or_default())))?;
    }
    let there = header(&answer, "location").ok_or(format!("The page leads nowhere: {answer}"))?;
    fetch(&absolute(url, there), None).map(drop)
}

/// The first form of a page: its action, and its initial values.
fn form(page: &str) -> Option<(String, String)> {
    let (_, form) = page.split_once("<form ")?;
    let (form, _) = form.split_once("</form>")?;
    let action = attribute(form, "action")?;
    let mut fields = Vec::new();
    for field in form.split('<').filter(|it| it.starts_with("input") || it.starts_with("button")) {
        let is_choice = field.contains("\"radio\"") || field.contains("\"checkbox\"");
        let is_no = attribute(field, "value").is_some_and(|it| it == "deny");
        if is_no || (is_choice && !field.contains(" checked")) {
            continue;
        }
        if let (Some(name), Some(value)) = (attribute(field, "name"), attribute(field, "value")) {
            fields.push(format!("{name}={}", encoded(&value)));
        }
    }
    Some((action, fields.join("&")))
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, value) = tag.split_once(&format!("{name}=\""))?;
    let (value, _) = value.split_once('"')?;
    Some(value.replace("&amp;", "&").replace("&quot;", "\"").replace("&#39;", "'"))
}

fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn absolute(base: &str, to: &str) -> String {
    if to.starts_with("http://") {
        return to.to_owned();
    }
    let rest = base.strip_prefix("http://").unwrap_or(base);
    let host = rest.split('/').next().unwrap_or(rest);
    format!("http://{host}{to}")
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|it| it.split_once(':'))
        .find(|(it, _)| it.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// Gets a page, or sends a form with the cookie of the page that it was on.
fn fetch(url: &str, form: Option<(&str, &str)>) -> Result<String, String> {
    let fail = |error: std::io::Error| format!("`{url}` cannot be fetched: {error}.");
    let rest = url.strip_prefix("http://").ok_or(format!("`{url}` is not on this machine."))?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host).map_err(fail)?;
    let common = format!("Host: {host}\r\nConnection: close\r\n");
    let request = match form {
        None => format!("GET /{path} HTTP/1.1\r\n{common}\r\n"),
        Some((fields, cookie)) => format!(
            "POST /{path} HTTP/1.1\r\n{common}Origin: http://{host}\r\nCookie: {cookie}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{fields}",
            fields.len()
        ),
    };
    stream.write_all(request.as_bytes()).map_err(fail)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(fail)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_already_is_approved() {
        let page = "<p></p><form method=\"post\" action=\"/go?a=1&amp;b\">\
            <input type=\"hidden\" name=\"ticket\" value=\"a b\">\
            <input type=\"radio\" name=\"user\" value=\"ada\" checked>\
            <input type=\"radio\" name=\"user\" value=\"bob\">\
            <button name=\"decision\" value=\"approve\">Yes</button>\
            <button name=\"decision\" value=\"deny\">No</button></form>";
        let (action, fields) = form(page).unwrap();
        assert_eq!(action, "/go?a=1&b");
        assert_eq!(fields, "ticket=a%20b&user=ada&decision=approve");
        assert_eq!(absolute("http://h:1/x?y", "/z"), "http://h:1/z");
    }
}
