//! Serde helpers that several types share: a flag as `{}`, a number without `.0`, a `null` that is not
//! absence, a map that keeps its order.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::Json;

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// A flag that is `{}` when set and absent otherwise.
pub(crate) mod presence {
    use super::*;

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub(crate) fn serialize<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_map(Some(0))?.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<bool, D::Error> {
        let raw = Json::deserialize(de)?;
        Ok(!matches!(raw.get(), "null" | "false"))
    }
}

/// A number written as an integer if it is one: `50`, not `50.0`.
pub(crate) mod number {
    use super::*;

    pub(crate) fn to_json(value: f64) -> Json {
        if let Some(whole) = whole(value) {
            return Json::integer(whole);
        }
        struct Number(f64);
        impl Serialize for Number {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize(&self.0, serializer)
            }
        }
        Json::of(&Number(value))
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        match whole(*value) {
            Some(whole) => serializer.serialize_i64(whole),
            None => serializer.serialize_f64(*value),
        }
    }

    /// The value as an integer, if it is one.
    fn whole(value: f64) -> Option<i64> {
        // Beyond 2^53 a float no longer holds every integer, so it stays a float.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        (value.abs() < EXACT && value as i64 as f64 == value).then_some(value as i64)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<f64, D::Error> {
        f64::deserialize(de)
    }

    pub(crate) mod option {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            value: &Option<f64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            de: D,
        ) -> Result<Option<f64>, D::Error> {
            Option::deserialize(de)
        }
    }
}

/// Reads `null` as a value, where absence means something else.
pub(crate) fn some_json<'de, D: Deserializer<'de>>(de: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(de).map(Some)
}

/// Reads a missing or `null` member as the default.
pub(crate) fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    de: D,
) -> Result<T, D::Error> {
    Option::deserialize(de).map(Option::unwrap_or_default)
}

/// An object whose values have one type, in the order written.
pub(crate) mod ordered {
    use super::*;

    pub(crate) fn serialize<S: Serializer, T: Serialize>(
        entries: &[(String, T)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: DeserializeOwned>(
        de: D,
    ) -> Result<Vec<(String, T)>, D::Error> {
        struct Entries<T>(PhantomData<T>);
        impl<'de, T: DeserializeOwned> Visitor<'de> for Entries<T> {
            type Value = Vec<(String, T)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Vec::new())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                let mut seen = std::collections::HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, T>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom("a member name stands twice"));
                    }
                    entries.push((key, value));
                }
                Ok(entries)
            }
        }
        de.deserialize_any(Entries(PhantomData))
    }
}
