//! A principal ⇄ bytes, for another process that trusts ours.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::Principal;

impl Principal {
    /// All that is known of it, for [`Self::from_bytes`]. Seal the bytes: they are its identity.
    ///
    /// ```
    /// # use trunkline_auth::Principal;
    /// let alice = Principal::new("alice").issued_by("https://login.example").scope("read");
    /// assert_eq!(Principal::from_bytes(&alice.to_bytes()), Some(alice));
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_all(&self.issuer, &mut out);
        put(self.subject.as_bytes(), &mut out);
        put_all(&self.scopes, &mut out);
        put_all(&self.client_id, &mut out);
        let expires = self.expires.map(|it| it.duration_since(UNIX_EPOCH).unwrap_or_default());
        put_all(&expires.map(|it| it.as_secs().to_be_bytes()), &mut out);
        put_all(&self.key, &mut out);
        put_length(self.claims.len(), &mut out);
        for (name, values) in &*self.claims {
            put(name.as_bytes(), &mut out);
            put_all(values, &mut out);
        }
        out
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Bytes(bytes);
        let issuer = rest.optional_text()?;
        let mut principal = Self { issuer, ..Self::new(rest.text()?) };
        principal.scopes = rest.texts()?;
        principal.client_id = rest.optional_text()?;
        if rest.length()? == 1 {
            let seconds = u64::from_be_bytes(rest.piece()?.try_into().ok()?);
            principal.expires = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        }
        principal.key = rest.optional_text()?;
        let mut claims = BTreeMap::new();
        for _ in 0..rest.length()? {
            claims.insert(rest.text()?, rest.texts()?);
        }
        principal.claims = Arc::new(claims);
        rest.0.is_empty().then_some(principal)
    }
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    let length = u32::try_from(length).expect("a head of a request is far shorter");
    out.extend_from_slice(&length.to_be_bytes());
}

fn put(piece: &[u8], out: &mut Vec<u8>) {
    put_length(piece.len(), out);
    out.extend_from_slice(piece);
}

fn put_all<'a, T: AsRef<[u8]> + 'a>(
    pieces: impl IntoIterator<Item = &'a T, IntoIter: ExactSizeIterator>,
    out: &mut Vec<u8>,
) {
    let pieces = pieces.into_iter();
    put_length(pieces.len(), out);
    pieces.for_each(|it| put(it.as_ref(), out));
}

/// The bytes that are left to read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (piece, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(piece)
    }

    fn length(&mut self) -> Option<usize> {
        let length = u32::from_be_bytes(self.take(4)?.try_into().ok()?);
        usize::try_from(length).ok()
    }

    fn piece(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.piece()?.to_vec()).ok()
    }

    fn texts(&mut self) -> Option<Vec<String>> {
        (0..self.length()?).map(|_| self.text()).collect()
    }

    fn optional_text(&mut self) -> Option<Option<String>> {
        match self.length()? {
            0 => Some(None),
            1 => self.text().map(Some),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_principal_is_lost_and_nothing_else_is_one() {
        let mut alice = Principal::new("alice").issued_by("https://login.example").scope("read");
        alice = alice.scope("write").acting_by("editor");
        alice = alice.until(UNIX_EPOCH + Duration::from_secs(1_800_000_000));
        alice.key = Some("thumbprint".to_owned());
        let groups = vec!["staff".to_owned(), "ops".to_owned()];
        alice.claims =
            Arc::new([("groups".to_owned(), groups), ("team".to_owned(), vec![])].into());
        let bytes = alice.to_bytes();
        assert_eq!(Principal::from_bytes(&bytes), Some(alice));
        for end in 0..bytes.len() {
            assert_eq!(Principal::from_bytes(&bytes[..end]), None, "{end}");
        }
        assert_eq!(Principal::from_bytes(&[&bytes[..], &[0]].concat()), None);
        let nobody = Principal::new("");
        assert_eq!(Principal::from_bytes(&nobody.to_bytes()), Some(nobody));
    }
}
