//! The `format` of strings: dates, addresses, names.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A format of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Date,
    DateTime,
    Time,
    Email,
    Uri,
    Uuid,
    Ipv4,
    Ipv6,
}

impl Format {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "time" => Self::Time,
            "email" => Self::Email,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            _ => return None,
        })
    }

    pub(super) fn allows(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Time => is_time(text),
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Uuid => is_uuid(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Date => "a date like `2026-07-28`",
            Self::DateTime => "a point in time like `2026-07-28T15:04:05Z`",
            Self::Time => "a time with its zone, like `15:04:05Z`",
            Self::Email => "an e-mail address",
            Self::Uri => "a URI with its scheme, like `https://example.com/`",
            Self::Uuid => "a UUID",
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
        }
    }
}

/// `2026-07-28`
fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339: `2026-07-28T15:04:05.25+02:00`
fn is_date_time(text: &str) -> bool {
    let parts = text.split_once(['T', 't']);
    parts.is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// `15:04:05.25+02:00`
fn is_time(text: &str) -> bool {
    let Some(zone_at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let (time, zone) = text.split_at(zone_at);
    let offset = match zone {
        "Z" | "z" => 0,
        zone => {
            let Some(minutes) = minutes(&zone[1..]) else { return false };
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let (time, fraction) = time.split_once('.').map_or((time, None), |(a, b)| (a, Some(b)));
    let is_fraction = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    if !fraction.is_none_or(is_fraction) {
        return false;
    }
    let Some((minute, second)) = time.rsplit_once(':') else { return false };
    match (minutes(minute), digits(second, 2)) {
        (Some(_), Some(0..=59)) => true,
        // A leap second is the last second of a UTC day.
        (Some(minute), Some(60)) => (minute - offset).rem_euclid(24 * 60) == 24 * 60 - 1,
        _ => false,
    }
}

/// `15:04`, in minutes.
fn minutes(text: &str) -> Option<i32> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute) = (digits(hour, 2)?, digits(minute, 2)?);
    (hour < 24 && minute < 60).then(|| (hour * 60 + minute).cast_signed())
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let is_plain = text.len() == count && text.bytes().all(|it| it.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// What mail programs accept: no quotes, no comments.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atom = |it: &str| {
        let is_plain =
            |it: char| it.is_alphanumeric() || !it.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(it);
        !it.is_empty() && it.chars().all(is_plain)
    };
    local.len() <= 64 && local.split('.').all(is_atom) && is_host(domain)
}

fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return match address.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => address.parse::<Ipv4Addr>().is_ok(),
        };
    }
    let is_label = |it: &str| {
        let is_plain = |it: char| it.is_alphanumeric() || it == '-';
        (1..64).contains(&it.len())
            && it.chars().all(is_plain)
            && !it.starts_with('-')
            && !it.ends_with('-')
    };
    text.len() < 256 && text.split('.').all(is_label)
}

/// RFC 3986, with its scheme.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it));
    if !is_scheme || !has_uri_characters(rest) {
        return false;
    }
    let (rest, fragment) = rest.split_once('#').map_or((rest, ""), |it| it);
    if fragment.contains(['#', '[', ']']) {
        return false;
    }
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            is_authority(&rest[..end]) && !rest[end..].contains(['[', ']'])
        }
        None => !rest.contains(['[', ']']),
    }
}

fn is_authority(text: &str) -> bool {
    let host = text
        .rsplit_once('@')
        .map_or(text, |(user, host)| if user.contains(['@', '[', ']']) { "[" } else { host });
    let (host, port) = match host.strip_prefix('[').and_then(|it| it.split_once(']')) {
        Some((address, port)) => {
            let is_address = address.parse::<Ipv6Addr>().is_ok() || is_future_address(address);
            if !is_address || !(port.is_empty() || port.starts_with(':')) {
                return false;
            }
            ("", port.strip_prefix(':').unwrap_or_default())
        }
        None => host.split_once(':').unwrap_or((host, "")),
    };
    !host.contains(['[', ']', ':']) && port.bytes().all(|it| it.is_ascii_digit())
}

/// `v1.x`, the future-proof IP literal of RFC 3986, which nobody has needed so far.
fn is_future_address(text: &str) -> bool {
    let rest = text.strip_prefix(['v', 'V']).and_then(|it| it.split_once('.'));
    rest.is_some_and(|(version, address)| {
        !version.is_empty()
            && version.bytes().all(|it| it.is_ascii_hexdigit())
            && !address.is_empty()
            && !address.contains(['[', ']', '/', '?', '@', '%'])
    })
}

fn has_uri_characters(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => bytes.get(at + 1..at + 3).is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit)),
        _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(byte),
    })
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|it| it.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))
}
