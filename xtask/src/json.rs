//! JSON text into a tree: as much as reading cargo's messages needs.

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, kept as it was written.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order it was written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one JSON text.
    pub fn parse(text: &str) -> Result<Json, String> {
        let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
        let value = reader.value()?;
        reader.space();
        if reader.at == reader.bytes.len() { Ok(value) } else { Err(reader.wrong("the end")) }
    }

    /// The member of an object; null when there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(members) => {
                members.iter().find(|(name, _)| name == key).map_or(&Json::Null, |(_, v)| v)
            }
            _ => &Json::Null,
        }
    }

    /// The text of a string; empty for anything else.
    pub fn str(&self) -> &str {
        if let Json::String(text) = self { text } else { "" }
    }

    /// The items of an array; none for anything else.
    pub fn items(&self) -> &[Json] {
        if let Json::Array(items) = self { items } else { &[] }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Json, String> {
        self.space();
        match self.bytes.get(self.at) {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                while matches!(
                    self.bytes.get(self.at),
                    Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')
                ) {
                    self.at += 1;
                }
                Ok(Json::Number(String::from_utf8_lossy(&self.bytes[start..self.at]).into()))
            }
            _ => Err(self.wrong("a value")),
        }
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut members = Vec::new();
        self.at += 1;
        while !self.take(b'}') {
            if !members.is_empty() && !self.take(b',') {
                return Err(self.wrong("`,` or `}`"));
            }
            self.space();
            let key = self.string()?;
            if !self.take(b':') {
                return Err(self.wrong("`:`"));
            }
            members.push((key, self.value()?));
        }
        Ok(Json::Object(members))
    }

    fn array(&mut self) -> Result<Json, String> {
        let mut items = Vec::new();
        self.at += 1;
        while !self.take(b']') {
            if !items.is_empty() && !self.take(b',') {
                return Err(self.wrong("`,` or `]`"));
            }
            items.push(self.value()?);
        }
        Ok(Json::Array(items))
    }

    fn string(&mut self) -> Result<String, String> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.wrong("a string"));
        }
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.wrong("the end of a string")),
                Some(b'"') => {
                    self.at += 1;
                    return String::from_utf8(text).map_err(|_| self.wrong("UTF-8"));
                }
                Some(b'\\') => {
                    let letter = self.escape()?;
                    text.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(byte) => {
                    text.push(*byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let letter = self.bytes.get(self.at + 1).copied();
        self.at += 2;
        Ok(match letter {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => {
                let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
                let number = std::str::from_utf8(digits).ok();
                let number = number.and_then(|text| u32::from_str_radix(text, 16).ok());
                self.at += 4;
                // Half of a surrogate pair never occurs in what cargo writes.
                number
                    .map(|n| char::from_u32(n).unwrap_or('\u{fffd}'))
                    .ok_or_else(|| self.wrong("hex"))?
            }
            Some(other @ (b'"' | b'\\' | b'/')) => other as char,
            _ => return Err(self.wrong("an escape")),
        })
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, String> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong(word));
        }
        self.at += word.len();
        Ok(value)
    }

    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let here = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(here);
        here
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn wrong(&self, wanted: &str) -> String {
        format!("The JSON text has something else than {wanted} at byte {}.", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn a_text_reads_as_the_tree_it_says() {
        let json = Json::parse(r#" {"a":[1,-2.5e3,true,null],"b":{"c":"x\"\\\u00e9\n"},"d":[]} "#);
        let json = json.expect("the text is JSON");
        assert_eq!(json.get("a").items().len(), 4);
        assert_eq!(json.get("a").items()[1], Json::Number("-2.5e3".into()));
        assert_eq!(json.get("b").get("c").str(), "x\"\\é\n");
        assert_eq!(json.get("d"), &Json::Array(vec![]));
        assert_eq!(json.get("nothing"), &Json::Null);
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in ["", "{", "[1 2]", "{\"a\" 1}", "nul", "\"open", "1 2"] {
            assert!(Json::parse(text).is_err(), "`{text}` was read");
        }
    }
}
