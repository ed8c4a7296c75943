//! A key with its state ⇄ the bytes of its file, with a checksum at the end.
//!
//! ```text
//! "tls1"  number u64  expires u64  key length u32  value length u64  key  value  checksum u64
//! ```
//!
//! Numbers are little-endian. `expires` is nanoseconds by the store's clock; the maximum means never.

use std::time::Duration;

use crate::decide::Held;

/// The bytes of the file.
pub(super) fn encode(key: &str, held: &Held) -> Vec<u8> {
    let expires = held.expires.map_or(NEVER, nanos);
    let mut bytes = Vec::with_capacity(len(key, &held.value));
    bytes.extend(MAGIC);
    bytes.extend(held.number.to_le_bytes());
    bytes.extend(expires.to_le_bytes());
    bytes.extend((key.len() as u32).to_le_bytes());
    bytes.extend((held.value.len() as u64).to_le_bytes());
    bytes.extend(key.as_bytes());
    bytes.extend(&*held.value);
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes
}

/// The length of the file.
pub(super) fn len(key: &str, value: &[u8]) -> usize {
    HEADER + key.len() + value.len() + 8
}

/// The key and its state, or what is wrong with the file.
pub(super) fn decode(bytes: &[u8]) -> Result<(String, Held), &'static str> {
    let mut rest = bytes;
    if take(&mut rest)? != MAGIC {
        return Err("It does not begin like a record of this store.");
    }
    let number = u64::from_le_bytes(take(&mut rest)?);
    let expires = u64::from_le_bytes(take(&mut rest)?);
    let key_len = u32::from_le_bytes(take(&mut rest)?) as usize;
    let value_len = u64::from_le_bytes(take(&mut rest)?);
    let whole = (HEADER + key_len + 8) as u64;
    if value_len.checked_add(whole) != Some(bytes.len() as u64) {
        return Err("It is not as long as it says; a write was cut off.");
    }
    let (body, sum) = bytes.split_at(bytes.len() - 8);
    if checksum(body).to_le_bytes() != sum {
        return Err("Its checksum is wrong; bytes have changed.");
    }
    let (key, value) = body[HEADER..].split_at(key_len);
    let key = str::from_utf8(key).map_err(|_| "Its key is not UTF-8.")?.to_owned();
    let expires = (expires != NEVER).then(|| Duration::from_nanos(expires));
    Ok((key, Held { value: value.into(), number, expires }))
}

/// FNV-1a. It always detects one changed byte, and misses more with a probability of 2⁻⁶⁴. It protects
/// against accidents, not against a writer with access to the file.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Times beyond 584 years after 1970 mean never.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(NEVER)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (first, rest) = bytes.split_first_chunk().ok_or("It is too short to be a record.")?;
    *bytes = rest;
    Ok(*first)
}

const MAGIC: [u8; 4] = *b"tls1";
const HEADER: usize = 4 + 8 + 8 + 4 + 8;
const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (String, Held) {
        let value = b"bytes".as_slice().into();
        ("task/1".to_owned(), Held { value, number: 7, expires: Some(Duration::from_millis(9)) })
    }

    #[test]
    fn a_record_comes_back() {
        let (key, held) = example();
        let bytes = encode(&key, &held);
        assert_eq!(bytes.len(), len(&key, &held.value));
        assert_eq!(decode(&bytes), Ok((key.clone(), held.clone())));

        let forever = Held { expires: None, ..held };
        assert_eq!(decode(&encode(&key, &forever)), Ok((key, forever)));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let (key, held) = example();
        let bytes = encode(&key, &held);
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert!(decode(&changed).is_err(), "changed at {at}");
            }
        }
        assert!(decode(&[bytes, vec![0]].concat()).is_err(), "a byte too many");
    }
}
