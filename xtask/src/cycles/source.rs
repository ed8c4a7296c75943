//! Rust text into its modules and the paths that lead to other top-level modules.

/// What a file says about modules.
#[derive(Debug, PartialEq)]
pub enum Item {
    /// `mod name { … }`.
    Module {
        /// Its path from the crate root.
        path: Vec<String>,
    },
    /// `mod name;`.
    File {
        /// Its path from the crate root.
        path: Vec<String>,
        /// Its path from this file.
        below: Vec<String>,
    },
    /// A path that begins with `crate`, `super` or `self` and leaves its top-level module.
    Import {
        /// The top-level module it stands in.
        from: String,
        /// The first name after the crate root.
        to: String,
        /// Where it stands.
        line: usize,
    },
}

/// Reads the file of the module `path`; the crate root has the empty path.
pub fn items(text: &str, path: &[String]) -> Vec<Item> {
    let tokens = tokens(text);
    Reader { tokens: &tokens, path: path.to_vec(), outer: path.len(), found: Vec::new() }.read()
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    /// The module that is being read.
    path: Vec<String>,
    /// How much of `path` is the file's own.
    outer: usize,
    found: Vec<Item>,
}

impl Reader<'_> {
    fn read(mut self) -> Vec<Item> {
        let mut at = 0;
        let mut depth = 0_usize;
        // The depths at which the inline modules that are open were opened.
        let mut open = Vec::new();
        while at < self.tokens.len() {
            match self.text(at) {
                "#" if self.is_for_tests(at) => {
                    at = self.after_item(at);
                    continue;
                }
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if open.last() == Some(&depth) {
                        open.pop();
                        self.path.pop();
                    }
                }
                "mod" if is_name(self.text(at + 1)) => {
                    let mut path = self.path.clone();
                    path.push(self.text(at + 1).to_owned());
                    match self.text(at + 2) {
                        ";" => {
                            let below = path[self.outer..].to_vec();
                            self.found.push(Item::File { path, below });
                        }
                        "{" => {
                            self.found.push(Item::Module { path: path.clone() });
                            self.path = path;
                            open.push(depth);
                        }
                        _ => {}
                    }
                    at += 2;
                    continue;
                }
                "crate" | "super" | "self"
                    if self.text(at + 1) == "::" && (at == 0 || self.text(at - 1) != "::") =>
                {
                    at = self.path_from(at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        self.found
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// Resolves the path that begins here and returns what stands behind its beginning.
    fn path_from(&mut self, mut at: usize) -> usize {
        let mut base = self.path.clone();
        while self.text(at + 1) == "::" {
            match self.text(at) {
                "crate" => base.clear(),
                "super" => {
                    base.pop();
                }
                "self" => {}
                _ => break,
            }
            at += 2;
        }
        if base.is_empty() {
            self.names_from(at);
        } else {
            let top = base[0].clone();
            self.import(top, at);
        }
        at
    }

    /// The names that follow the crate root: one, or the first of each entry of a group.
    fn names_from(&mut self, at: usize) {
        if self.text(at) != "{" {
            let name = self.text(at).to_owned();
            self.import(name, at);
            return;
        }
        let mut depth = 0_usize;
        for inner in at..self.tokens.len() {
            match self.text(inner) {
                "{" => depth += 1,
                "}" => depth -= 1,
                name if depth == 1 && matches!(self.text(inner - 1), "{" | ",") => {
                    let name = name.to_owned();
                    self.import(name, inner);
                }
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn import(&mut self, to: String, at: usize) {
        let Some(from) = self.path.first().filter(|from| **from != to) else { return };
        if is_name(&to) {
            let line = self.tokens.get(at).map_or(0, |token| token.line);
            self.found.push(Item::Import { from: from.clone(), to, line });
        }
    }

    fn is_for_tests(&self, at: usize) -> bool {
        let has = |words: &[&str]| (at..).zip(words).all(|(at, word)| self.text(at) == *word);
        has(&["#", "[", "cfg", "(", "test", ")", "]"])
            || has(&["#", "[", "cfg", "(", "all", "(", "test"])
    }

    /// What stands behind the item whose first attribute is here.
    fn after_item(&self, mut at: usize) -> usize {
        while self.text(at) == "#" {
            at = self.after_brackets(at + 1);
        }
        let head = self.tokens[at..].iter().map(|token| token.text);
        let is_use = head.take_while(|text| !matches!(*text, ";" | "{")).any(|text| text == "use");
        while at < self.tokens.len() {
            match self.text(at) {
                ";" => return at + 1,
                "{" if !is_use => return self.after_brackets(at),
                "(" | "[" | "{" => at = self.after_brackets(at),
                _ => at += 1,
            }
        }
        at
    }

    /// What stands behind the bracket that opens here.
    fn after_brackets(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        while at < self.tokens.len() {
            match self.text(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        at
    }
}

struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Names, `::` and single signs; comments, strings, characters and lifetimes are left out.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, is_code) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (comment(rest), false)
        } else if let Some(length) = string(rest) {
            (length, false)
        } else if first == '\'' {
            (character(rest), false)
        } else if is_inside(first) {
            (rest.find(|c| !is_inside(c)).unwrap_or(rest.len()), true)
        } else if rest.starts_with("::") {
            (2, true)
        } else {
            (first.len_utf8(), !first.is_whitespace())
        };
        let (text, after) = rest.split_at(length);
        if is_code {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

/// How long the block comment is that begins here; such comments nest.
fn comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// How long the string is that begins here, raw or not, with its prefix.
fn string(text: &str) -> Option<usize> {
    let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|length| *length <= 2)?;
    let rest = &text[prefix..];
    if text[..prefix].contains('r') {
        let signs = rest.find(|c| c != '#')?;
        let body = rest[signs..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(signs));
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix + signs + 1 + length);
    }
    let body = rest.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(prefix + 1 + end.map_or(body.len(), |at| at + 1))
}

/// How long the character, or the lifetime, is that begins here.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => {
            chars.find(|(_, c)| *c == '\'').map_or(text.len(), |(at, _)| at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        (Some((at, first)), _) => text[at..].find(|c| !is_inside(c)).map_or(text.len(), |end| {
            // A quote alone, as in the rules of a macro, is one sign.
            if is_inside(first) { at + end } else { at }
        }),
        _ => text.len(),
    }
}

fn is_inside(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
