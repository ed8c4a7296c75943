//! `application/x-www-form-urlencoded` → fields, none of which means two things.

use crate::fault::Fault;

/// What a query or a form says.
#[derive(Clone, Debug)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Takes a text apart; what is not valid UTF-8 is refused.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(text).map_err(|_| malformed())?;
        let parts = text.split('&').filter(|part| !part.is_empty()).map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode(name).ok_or_else(malformed)?, decode(value).ok_or_else(malformed)?))
        });
        Ok(Self(parts.collect::<Result<_, Fault>>()?))
    }

    /// A field that may be there once. An empty one counts as none (RFC 6749 §3.1).
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut found = self.all(name);
        let first = found.next();
        match found.next() {
            Some(_) => Err(Fault::request(format!("`{name}` is there twice; send it once."))),
            None => Ok(first.filter(|it| !it.is_empty())),
        }
    }

    /// A field that has to be there, once.
    pub(crate) fn need(&self, name: &str) -> Result<&str, Fault> {
        self.one(name)?.ok_or_else(|| Fault::request(format!("`{name}` is missing; send it.")))
    }

    /// Every value of this name.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| &**value)
    }
}

/// `%41` and `+` → what they stand for.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut half = || char::from(rest.next()?).to_digit(16);
                u8::try_from(half()? * 16 + half()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Words between spaces, each once, in order.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if words.iter().all(|it| it != word) {
            words.push(word.to_owned());
        }
    }
    words
}

fn malformed() -> Fault {
    Fault::request("The fields are not `application/x-www-form-urlencoded`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_none_counts_twice() {
        let fields = Fields::parse(b"a=%C3%A9+x&b=&&c&d=1&d=2").unwrap();
        assert_eq!(fields.one("a").unwrap(), Some("é x"));
        assert_eq!(fields.one("b").unwrap(), None);
        assert_eq!(fields.one("c").unwrap(), None);
        assert_eq!(fields.one("e").unwrap(), None);
        assert_eq!(fields.one("d").unwrap_err().description, "`d` is there twice; send it once.");
        assert_eq!(fields.all("d").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(fields.need("e").unwrap_err().description, "`e` is missing; send it.");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bad in [&b"a=%"[..], b"a=%4", b"a=%zz", b"a=%FF", b"\xff=1"] {
            assert_eq!(Fields::parse(bad).unwrap_err().error, "invalid_request");
        }
    }

    #[test]
    fn words_are_kept_in_order_and_once() {
        assert_eq!(words(" b  a b"), ["b", "a"]);
        assert!(words("").is_empty());
    }
}
