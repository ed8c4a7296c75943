//! A size as people write it → bytes.

/// `64KiB`, `64 MiB` and `1GiB` by powers of two, also as `64k`, `64M` and `1G`; `5kB`, `5MB` and `5GB` by powers of ten; or a
/// number of bytes. `None` if it is none of these, or too large.
pub fn size(text: &str) -> Option<u64> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("123", Some(123)),
            ("4096", Some(4096)),
            ("64KiB", Some(64 << 10)),
            ("64k", Some(64 << 10)),
            ("2MiB", Some(2 << 20)),
            ("64MiB", Some(64 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("1GiB", Some(1 << 30)),
            ("5MB", Some(5_000_000)),
            ("1GB", Some(1_000_000_000)),
            ("", None),
            ("MiB", None),
            ("1.5MiB", None),
            ("64 cats", None),
            ("12 parsecs", None),
            ("99999999999999GiB", None),
            ("99999999999999999999GiB", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
