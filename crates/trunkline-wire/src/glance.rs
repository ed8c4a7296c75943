//! A result as text → the few members of its top level that decide what becomes of it.
//!
//! Searching the text for them would be fooled by a space, an escape or what is nested; reading it into
//! types costs more than most results are worth. This passes over every value without keeping it.

/// What the top level of a result says of itself. Where a name is repeated, the last one counts, as it
/// does for most who read JSON.
///
/// ```
/// # use trunkline_wire::glance::*;
/// let glance = Glance::at(r#"{"content":[{"text":"\"isError\":true"}], "isError" : true}"#);
/// assert!(glance.is_error);
/// assert!(!Glance::at(r#"{"structuredContent":{"isError":true}}"#).is_error, "that is nested");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// `isError` is `true`.
    pub is_error: bool,
    /// `resultType`.
    pub result_type: ResultType,
    /// `task` is there.
    pub has_task: bool,
    /// `content` is there.
    pub has_content: bool,
}

/// What kind of result `resultType` says it is.
///
/// ```
/// # use trunkline_wire::glance::*;
/// let glance = Glance::at(r#"{"resultType":"input_required"}"#);
/// assert_eq!(glance.result_type, ResultType::InputRequired);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultType {
    /// It is not there.
    #[default]
    None,
    /// `complete`.
    Complete,
    /// `input_required`.
    InputRequired,
    /// `task`.
    Task,
    /// Something else.
    Other,
}

impl Glance {
    /// Looks at the text of a result. What is no JSON object says nothing.
    ///
    /// ```
    /// # use trunkline_wire::glance::*;
    /// assert_eq!(Glance::at("[]"), Glance::default());
    /// assert!(Glance::at(r#"{"task":{"taskId":"1"}}"#).has_task);
    /// ```
    pub fn at(text: &str) -> Self {
        let mut scan = Scan { text, at: 0 };
        let mut glance = Self::default();
        if !scan.takes(b'{') {
            return glance;
        }
        while let Some((name, value)) = scan.member() {
            // Few names have an escape in them, and those are read as they are meant.
            let plain;
            let name = match name.contains('\\') {
                false => &name[1..name.len() - 1],
                true => {
                    plain = serde_json::from_str::<String>(name).unwrap_or_default();
                    &plain
                }
            };
            match name {
                "isError" => glance.is_error = value == "true",
                "resultType" => glance.result_type = ResultType::of(value),
                "task" => glance.has_task = true,
                "content" => glance.has_content = true,
                _ => {}
            }
        }
        glance
    }
}

impl ResultType {
    fn of(value: &str) -> Self {
        match value {
            r#""complete""# => Self::Complete,
            r#""input_required""# => Self::InputRequired,
            r#""task""# => Self::Task,
            // The same word, written another way.
            escaped if escaped.contains('\\') => {
                match serde_json::from_str::<String>(escaped).as_deref() {
                    Ok("complete") => Self::Complete,
                    Ok("input_required") => Self::InputRequired,
                    Ok("task") => Self::Task,
                    _ => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next member: its name as a JSON string, and its value.
    fn member(&mut self) -> Option<(&'a str, &'a str)> {
        self.takes(b',');
        let name = self.value().filter(|it| it.len() >= 2 && it.starts_with('"'))?;
        if !self.takes(b':') {
            return None;
        }
        Some((name, self.value()?))
    }

    /// Whether the next byte that counts is this one; then it is behind us.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn value(&mut self) -> Option<&'a str> {
        self.skip_space();
        let from = self.at;
        match self.peek()? {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_nested()?,
            b'}' | b']' | b',' | b':' => return None,
            _ => {
                let rest = &self.text.as_bytes()[from..];
                let ends =
                    |it: &u8| matches!(it, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        self.text.get(from..self.at)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// From one quote to behind the other.
    fn skip_string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            at += bytes.get(at..)?.iter().position(|it| matches!(it, b'"' | b'\\'))?;
            if bytes[at] == b'"' {
                self.at = at + 1;
                return Some(());
            }
            at += 2;
        }
    }

    /// From one bracket to behind the one that closes it.
    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_top_level_counts_however_it_is_written() {
        for (text, expected) in [
            (r#"{"isError":true}"#, true),
            ("{ \"isError\" :\n true , \"content\" : [ ] }", true),
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"isErr\u006fr":true}"#, true),
            (r#"{"isError":false}"#, false),
            (r#"{"isError":"true"}"#, false),
            (r#"{"isError":true,"isError":false}"#, false),
            (r#"{"isError":false,"isError":true}"#, true),
            (r#"{"structuredContent":{"isError":true}}"#, false),
            (r#"{"content":[{"type":"text","text":"{\"isError\":true}"}]}"#, false),
            (r#"{"content":[{"isError":true}],"x":"\\","isError":false}"#, false),
            (r#"{"a":"\"isError\":true"}"#, false),
            (r#"{"a":-1.5e3,"b":null,"isError":true}"#, true),
            ("{}", false),
            ("[]", false),
            ("true", false),
            ("", false),
            (r#"{"isError""#, false),
            (r#"{"isError":"#, false),
            (r#"{"a":"\"#, false),
            (r#"{"a":{"b":["#, false),
            (r#"{"a":}"#, false),
        ] {
            assert_eq!(Glance::at(text).is_error, expected, "{text}");
        }
    }

    #[test]
    fn the_kind_of_a_result_is_its_own() {
        for (text, expected) in [
            (r#"{"resultType":"input_required"}"#, ResultType::InputRequired),
            (r#"{"content":[],"resultType":"complete"}"#, ResultType::Complete),
            (r#"{"resultType": "task","taskId":"1"}"#, ResultType::Task),
            (r#"{"resultType":"inp\u0075t_required"}"#, ResultType::InputRequired),
            (r#"{"resultType":"else"}"#, ResultType::Other),
            (r#"{"structuredContent":{"resultType":"input_required"}}"#, ResultType::None),
        ] {
            assert_eq!(Glance::at(text).result_type, expected, "{text}");
        }
        let task = Glance::at(r#"{"task":{"taskId":"1","status":"working"}}"#);
        assert!(task.has_task && !task.has_content);
        assert!(!Glance::at(r#"{"content":[{"task":1}]}"#).has_task);
    }

    #[test]
    fn what_serde_reads_is_what_is_seen() {
        #[derive(serde::Deserialize)]
        struct Read {
            #[serde(rename = "isError", default)]
            is_error: Option<bool>,
        }
        // Every way to put a member among others, and others that try to hide it.
        let others = [r#""a":{"isError":true}"#, r#""b":"}\"{""#, r#""c":[[],{}]"#, r#""d":1"#];
        let own = [r#""isError":true"#, r#""isError" : false"#, r#""x":0"#];
        for (one, two) in others.iter().flat_map(|one| others.iter().map(move |two| (one, two))) {
            for own in own {
                for text in [
                    format!("{{{own},{one}}}"),
                    format!("{{{one},{own}}}"),
                    format!("{{{one} , {own}\t,{two}}}"),
                ] {
                    let Ok(read) = serde_json::from_str::<Read>(&text) else { continue };
                    assert_eq!(Glance::at(&text).is_error, read.is_error == Some(true), "{text}");
                }
            }
        }
    }
}
