//! The head of a request that stays with its connection, which lends it what it has read before.

use std::mem;
use std::ops::Deref;

use http::{Extensions, HeaderMap, Request, request};

/// The head of a request. Where it is the one before once more, its header fields belong to the connection: whoever
/// changes them gets fields of their own.
#[derive(Debug)]
pub struct LentHead {
    parts: request::Parts,
    /// Whether the header fields are the connection's.
    is_lent: bool,
    /// The connection's header fields, while the request has its own.
    aside: Option<HeaderMap>,
}

impl LentHead {
    /// The header fields, to be changed.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        if mem::take(&mut self.is_lent) {
            let own = self.parts.headers.clone();
            self.aside = Some(mem::replace(&mut self.parts.headers, own));
        }
        &mut self.parts.headers
    }

    /// What is attached to the request.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.parts.extensions
    }

    /// The whole head, out of the connection that it stayed with.
    pub fn take(&mut self) -> request::Parts {
        self.headers_mut();
        mem::replace(&mut self.parts, no_head())
    }

    /// The room of the header fields, if they are the request's own.
    pub(super) fn room(&mut self) -> Option<&mut HeaderMap> {
        (!self.is_lent).then_some(&mut self.parts.headers)
    }

    /// From now on it is this request, whose header fields the connection gets back.
    pub(super) fn lend(&mut self, headers: HeaderMap) -> &mut request::Parts {
        (self.parts.headers, self.is_lent) = (headers, true);
        self.parts.extensions.clear();
        &mut self.parts
    }

    /// The same of a request that has its own.
    pub(super) fn own(&mut self) -> &mut request::Parts {
        self.is_lent = false;
        self.parts.extensions.clear();
        &mut self.parts
    }

    /// Gives back what is the connection's, if anything is, and drops what is the request's own but for its first line.
    pub(super) fn give_back(&mut self) -> Option<HeaderMap> {
        let headers = mem::take(&mut self.parts.headers);
        self.parts.extensions.clear();
        let lent = mem::take(&mut self.is_lent).then_some(headers);
        lent.or_else(|| self.aside.take())
    }
}

impl Default for LentHead {
    fn default() -> Self {
        Self::from(no_head())
    }
}

impl From<request::Parts> for LentHead {
    fn from(parts: request::Parts) -> Self {
        Self { parts, is_lent: false, aside: None }
    }
}

impl Deref for LentHead {
    type Target = request::Parts;

    fn deref(&self) -> &request::Parts {
        &self.parts
    }
}

/// The head of no request.
fn no_head() -> request::Parts {
    Request::new(()).into_parts().0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn fields() -> HeaderMap {
        HeaderMap::from_iter([(http::header::COOKIE, HeaderValue::from_static("a=b"))])
    }

    fn lent() -> LentHead {
        let mut head = LentHead::default();
        head.lend(fields());
        head
    }

    #[test]
    fn what_is_lent_comes_back_as_it_was_whatever_is_done_to_the_head() {
        let changes: [fn(&mut LentHead); 4] = [
            |_| (),
            |head| drop(head.headers_mut().remove("cookie")),
            |head| head.headers_mut().clear(),
            |head| assert_eq!(head.take().headers, fields()),
        ];
        for change in changes {
            let mut head = lent();
            head.extensions_mut().insert(1);
            assert!(head.room().is_none(), "it is not the request's to fill");
            change(&mut head);
            assert_eq!(head.give_back(), Some(fields()));
            assert!(head.headers.is_empty() && head.extensions.is_empty());
            assert_eq!(head.give_back(), None, "once");
        }
    }

    #[test]
    fn what_a_request_owns_stays_with_it() {
        let mut head = lent();
        head.headers_mut().remove("cookie");
        assert!(head.headers.is_empty());
        assert!(head.room().is_some());
        let mut head = LentHead::from(Request::new(()).into_parts().0);
        head.headers_mut().extend(fields());
        assert_eq!(head.give_back(), None);
    }
}
