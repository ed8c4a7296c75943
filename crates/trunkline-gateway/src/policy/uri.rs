//! Computes every reading of a URI: everything that a server may take it for.
//!
//! A server may percent-decode a URI before or after splitting it, once or repeatedly, resolve dot segments,
//! take `\` for `/`, drop a file's query or surrounding white space, or ignore the host before its path, and do
//! so again with the result. Rules check all of these readings: a rule that denies or asks matches if any
//! reading matches, a rule that allows only if each [`near`](Forms::near) one does. The URI itself is passed on
//! unchanged, since servers compare it with what they have listed.

use std::borrow::Cow;

/// The readings of one URI.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    /// The normal form, before and after decoding. Never empty unless the URI is ambiguous.
    pub(crate) near: Vec<String>,
    /// What careless servers read besides, and the URI as written if that differs.
    pub(crate) far: Vec<String>,
    /// Whether no rule can foresee its readings: control characters, NUL in the middle, overlong UTF-8, deeply
    /// nested escapes, a file whose host is `..`, or more text or readings than the bounds.
    pub(crate) is_ambiguous: bool,
    /// Texts that were split, and how often their parts were decoded: once is enough.
    read: Vec<(String, usize)>,
}

impl Forms {
    pub(crate) fn of(uri: &str) -> Self {
        let ambiguous = || Self { is_ambiguous: true, ..Self::default() };
        Self::closed(uri).unwrap_or_else(ambiguous)
    }

    /// The closure: the readings of the URI, their readings, and so on until nothing new appears. `None` if any
    /// of them is ambiguous, or if there are more than [`MOST`].
    // Invariant: what a near form is read as is a reading of the URI itself.
    fn closed(uri: &str) -> Option<Self> {
        let mut forms = Self::default();
        forms.read_text(uri)?;
        let mut at = 0;
        while let Some(form) = forms.near.get(at).cloned() {
            if form != uri {
                forms.read_text(&form)?;
            }
            at += 1;
        }
        // Not a URI, but a path for a server that accepts paths.
        for path in forms.near.clone().iter().filter(|it| it.starts_with('/')) {
            let file = Self::closed(&format!("file:{path}"))?;
            file.near.into_iter().chain(file.far).for_each(|it| add(&mut forms.far, it));
        }
        if forms.near.len() + forms.far.len() > MOST {
            return None;
        }
        if !forms.near.iter().any(|it| it == uri) {
            add(&mut forms.far, uri.to_owned());
        }
        Some(forms)
    }

    /// Reads a text in every way: decoded or not, with `\` as `/` or not, trimmed or not. `None` if it is
    /// ambiguous.
    fn read_text(&mut self, text: &str) -> Option<()> {
        let stages = stages(text).filter(|_| text.len() <= LONGEST)?;
        // Also control characters that appear only after decoding.
        if stages.iter().any(|it| it.contains(char::is_control)) {
            return None;
        }
        for (at, text) in stages.iter().enumerate() {
            let rounds = stages.len() - at;
            slashes(text).for_each(|it| self.read(&it, rounds));
            for it in [text.trim_start_matches(is_space), text.trim_end_matches(is_space)] {
                if it != text {
                    self.read(it, rounds);
                }
            }
        }
        (!self.is_ambiguous && self.near.len() + self.far.len() <= MOST).then_some(())
    }

    /// Splits a text, and then decodes its parts up to `rounds - 1` times.
    fn read(&mut self, text: &str, rounds: usize) {
        match self.read.iter_mut().find(|(it, _)| it == text) {
            Some((_, done)) if *done >= rounds => return,
            Some((_, done)) => *done = rounds,
            None => self.read.push((text.to_owned(), rounds)),
        }
        let Some((scheme, rest)) = split_scheme(text) else {
            add(&mut self.near, text.to_owned());
            return;
        };
        let scheme = scheme.to_ascii_lowercase();
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let (body, tail) = rest.split_at(end);
        let (authority, path) = match body.strip_prefix("//") {
            Some(body) => {
                let (authority, path) = body.split_at(body.find('/').unwrap_or(body.len()));
                (Some(authority), path)
            }
            None => (None, body),
        };
        let mut parts =
            [authority.unwrap_or_default().to_lowercase(), path.to_owned(), tail.to_owned()];
        for round in 0..rounds {
            if round > 0 {
                parts = parts.map(|it| decoded(&it).unwrap_or(it));
                parts[0] = parts[0].to_lowercase();
            }
            let [authority_now, path, tail] = &parts;
            let authority = authority.is_some().then(|| kept_apart(authority_now));
            if let Some(it) = authority.as_deref().filter(|it| it.contains('/')) {
                // An escaped `/` in the host ends it.
                self.read(&format!("{scheme}://{it}{path}{tail}"), 1);
                continue;
            }
            for path in slashes(&kept_apart(path)) {
                self.put(&scheme, authority.as_deref(), &path, tail);
            }
        }
    }

    fn put(&mut self, scheme: &str, authority: Option<&str>, path: &str, tail: &str) {
        let Some(authority) = authority.or((scheme == "file").then_some("")) else {
            let (normal, written) = (shortened(path), format!("{scheme}:{path}"));
            // Only a text that begins with `/` is certainly a path.
            let is_path = path.starts_with('/');
            let (near, far) = if is_path { (&normal, path) } else { (&path.to_owned(), &*normal) };
            self.add(&format!("{scheme}:{near}"), tail, false);
            if *near != far {
                add(&mut self.far, if is_path { written } else { format!("{scheme}:{far}") });
            }
            return;
        };
        let path = shortened(path);
        if scheme != "file" {
            let authority = without_port(scheme, authority);
            self.add(&format!("{scheme}://{authority}{path}"), tail, false);
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let bare = host.trim_end_matches('.');
            if bare != authority {
                add(&mut self.far, format!("{scheme}://{bare}{path}{tail}"));
            }
            return;
        }
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        // A server may take such a host for a folder, and nobody knows where (RFC 8089 §2 has no such host).
        self.is_ambiguous |= [".", ".."].contains(&authority);
        let is_here = authority.is_empty() || authority == "localhost";
        let host = if is_here { "" } else { authority };
        self.add(&format!("file://{host}{path}"), tail, true);
        if !is_here {
            // A server that ignores the host opens the path; one that cuts off `file://` opens both as one.
            for path in [path.clone(), shortened(&format!("/{authority}{path}"))] {
                add(&mut self.far, format!("file://{path}{tail}"));
                add(&mut self.far, format!("file://{path}"));
            }
        }
    }

    /// Adds a reading, and what is left of it after a server's possible cuts.
    fn add(&mut self, body: &str, tail: &str, is_file: bool) {
        add(&mut self.near, format!("{body}{tail}"));
        let (query, fragment) = tail.split_at(tail.find('#').unwrap_or(tail.len()));
        if !fragment.is_empty() {
            add(&mut self.far, format!("{body}{query}"));
        }
        if is_file && !tail.is_empty() {
            add(&mut self.far, body.to_owned());
        }
        if let Some(body) = body.strip_suffix('/').filter(|it| !it.ends_with('/')) {
            add(&mut self.far, format!("{body}{tail}"));
        }
    }
}

fn add(to: &mut Vec<String>, form: String) {
    if !to.contains(&form) {
        to.push(form);
    }
}

/// The text with upper-case escapes, and after each round of decoding. `None` if that does not end soon, or
/// does not yield text.
fn stages(uri: &str) -> Option<Vec<String>> {
    let mut stages = vec![capitals(uri)];
    while let Some(last) = stages.last().filter(|it| it.contains('%')) {
        let next = decoded(last)?;
        if next == *last {
            break;
        }
        if stages.len() > ROUNDS {
            return None;
        }
        stages.push(next);
    }
    Some(stages)
}

/// Percent-decodes. Bytes that are no UTF-8 stay escaped; `None` for the start of an overlong character, or for
/// NUL.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escaped = escape(rest);
        if let Some(0 | 0xc0 | 0xc1) = escaped {
            return None;
        }
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
    }
    // A doubly escaped character is an escape now.
    Some(capitals(&out))
}

/// Upper-cases the escapes.
fn capitals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('%');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push('%');
        match part.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            Some(digits) => {
                out.push_str(&digits.to_ascii_uppercase());
                out.push_str(&part[2..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

/// The byte of an escape at the start of a text.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|it| char::from(*it).to_digit(16));
    match text {
        [b'%', ..] => Some((digit(1)? * 16 + digit(2)?) as u8),
        _ => None,
    }
}

/// Escapes `?` and `#` again that were decoded before a query and are no delimiters.
fn kept_apart(part: &str) -> Cow<'_, str> {
    match part.contains(['?', '#']) {
        true => part.replace('?', "%3F").replace('#', "%23").into(),
        false => part.into(),
    }
}

/// The text, and the same with every `\` as `/`.
fn slashes(text: &str) -> impl Iterator<Item = String> {
    let other = text.contains('\\').then(|| text.replace('\\', "/"));
    [Some(text.to_owned()), other].into_iter().flatten()
}

/// White space that some servers trim around a URI.
fn is_space(it: char) -> bool {
    it.is_whitespace() || it == '\u{feff}'
}

/// The scheme and what follows its colon (RFC 3986 §3.1).
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_good = |it: u8| it.is_ascii_alphanumeric() || b"+-.".contains(&it);
    let is_scheme =
        scheme.starts_with(|it: char| it.is_ascii_alphabetic()) && scheme.bytes().all(is_good);
    is_scheme.then_some((scheme, rest))
}

/// Removes dot segments (RFC 3986 §5.2.4) and empty ones.
fn shortened(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|it| !it.is_empty() && *it != ".") {
        match part {
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    let is_folder = ["", ".", ".."].contains(&path.rsplit('/').next().unwrap_or_default());
    let begin = if path.starts_with('/') { "/" } else { "" };
    let end = if is_folder && !kept.is_empty() { "/" } else { "" };
    format!("{begin}{}{end}", kept.join("/"))
}

fn without_port<'a>(scheme: &str, authority: &'a str) -> &'a str {
    let port = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => return authority,
    };
    authority.strip_suffix(port).unwrap_or(authority)
}

/// The bound on readings of one URI: each costs a match with every rule.
const MOST: usize = 64;
/// The bound on nested escapes.
const ROUNDS: usize = 4;
/// The longest URI that rules check, in bytes.
const LONGEST: usize = 16 << 10;

#[cfg(test)]
mod tests;
