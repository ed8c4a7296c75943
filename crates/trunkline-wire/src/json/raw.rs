//! The text of a value, out of any deserializer.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The text of a value, borrowed where it can be.
pub(crate) fn raw_text<'de, D: Deserializer<'de>>(de: D) -> Result<Cow<'de, str>, D::Error> {
    de.deserialize_newtype_struct(RAW_VALUE, RawVisitor)
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    /// `serde_json` passes a raw text as a map with one member.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match map.next_key::<RawKey>()? {
            Some(RawKey(true)) => map.next_value_seed(RawText),
            _ => Err(A::Error::custom("raw JSON is read from JSON alone")),
        }
    }

    /// Reached if `serde_json` ever renames its raw texts: slower, and just as correct.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, de: D) -> Result<Self::Value, D::Error> {
        Ok(Box::<RawValue>::deserialize(de)?.get().to_owned().into())
    }
}

/// Whether the name of a member is that of raw texts.
struct RawKey(bool);

impl<'de> Deserialize<'de> for RawKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(RawKeyVisitor)
    }
}

struct RawKeyVisitor;

impl Visitor<'_> for RawKeyVisitor {
    type Value = RawKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<RawKey, E> {
        Ok(RawKey(name == RAW_VALUE))
    }
}

/// A raw text, which `serde_json` has validated.
struct RawText;

impl<'de> DeserializeSeed<'de> for RawText {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for RawText {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
}

/// The name that `serde_json` gives a raw text internally.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;

    #[test]
    fn a_text_is_read_with_one_copy_and_from_values_and_streams_too() {
        let text = r#"{"a":[1.50,{"b":"\u00e9"}]}"#;
        let mut reading = serde_json::Deserializer::from_str(text);
        let is_raw = reading.deserialize_newtype_struct(RAW_VALUE, IsMap).unwrap();
        assert!(is_raw, "serde_json calls its raw texts otherwise now: see `visit_newtype_struct`");
        assert_eq!(serde_json::from_str::<Json>(text).unwrap().get(), text);
        assert_eq!(serde_json::from_reader::<_, Json>(text.as_bytes()).unwrap().get(), text);
        let members: Vec<Json> = serde_json::from_str(" [ 1 , [ 2 ] ]").unwrap();
        assert_eq!(members, [Json::of(&1), Json::parse("[ 2 ]").unwrap()]);
        let value = serde_json::json!({ "a": 1 });
        assert_eq!(serde_json::from_value::<Json>(value).unwrap().get(), r#"{"a":1}"#);
        assert_eq!(Json::of(&Json::null()), Json::null());
        assert!(serde_json::from_str::<Json>("[1").is_err());
        // A member of the peer with that name is a member like any other.
        let odd = format!(r#"{{"{RAW_VALUE}":"[1"}}"#);
        assert_eq!(serde_json::from_str::<Json>(&odd).unwrap().get(), odd);
    }

    #[test]
    fn another_name_of_raw_texts_would_cost_a_copy_and_nothing_else() {
        let mut reading = serde_json::Deserializer::from_str(r#"{"a":1}"#);
        let read = reading.deserialize_newtype_struct("another", RawVisitor).unwrap();
        assert_eq!(read, r#"{"a":1}"#);
    }

    struct IsMap;

    impl<'de> Visitor<'de> for IsMap {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map or a newtype")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let is_raw = matches!(map.next_key::<RawKey>()?, Some(RawKey(true)));
            map.next_value::<serde::de::IgnoredAny>()?;
            Ok(is_raw)
        }

        fn visit_newtype_struct<D: Deserializer<'de>>(self, it: D) -> Result<bool, D::Error> {
            serde::de::IgnoredAny::deserialize(it)?;
            Ok(false)
        }
    }
}
