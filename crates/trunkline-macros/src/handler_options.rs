//! `asks`, `timeout`, `visible` and `scopes` → setter calls on an entry of any kind.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{LitStr, Path};

use crate::fault::{Faults, place};
use crate::options::Options;

/// The setter calls, to follow the constructor of the entry.
pub(crate) fn read(options: &Options, private: &Path, faults: &mut Faults) -> TokenStream {
    let mut said = asks(options, private, faults);
    if let Some(timeout) = faults.keep(options.text("timeout")).flatten() {
        match milliseconds(&timeout.value()) {
            Some(length) => {
                said.extend(quote!(.timeout(::core::time::Duration::from_millis(#length))));
            }
            None => faults.add(timeout.span(), no_length(&timeout)),
        }
    }
    if let Some(visible) = faults.keep(options.path("visible")).flatten() {
        said.extend(quote_spanned!(place(visible.span())=> .visible(#visible)));
    }
    said.extend(scopes(options, faults));
    said
}

/// The setter call for `scopes` alone, of an entry or of all entries of a block.
pub(crate) fn scopes(options: &Options, faults: &mut Faults) -> TokenStream {
    let given = faults.keep(options.any_texts("scopes")).unwrap_or_default();
    for (at, scope) in given.iter().enumerate() {
        let text = scope.value();
        if !is_scope(&text) {
            let sentence = format!(
                "`{text}` is no scope: a scope is one word of printable ASCII without `\"` and \
                 `\\`; several stand in a list, as in `scopes = [\"read\", \"write\"]`."
            );
            faults.add(scope.span(), sentence);
        }
        if given[..at].iter().any(|it| it.value() == text) {
            faults.add(scope.span(), format!("`{text}` is there twice: keep one of them."));
        }
    }
    match given.is_empty() {
        true => TokenStream::new(),
        false => quote!(.scopes([#(#given),*])),
    }
}

/// Whether a text is a valid scope (RFC 6749 §3.3).
fn is_scope(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_graphic() && it != b'"' && it != b'\\';
    !text.is_empty() && text.bytes().all(fits)
}

fn asks(options: &Options, private: &Path, faults: &mut Faults) -> TokenStream {
    let words = QUESTIONS.map(|it| it.0);
    let given = faults.keep(options.texts("asks", &words)).unwrap_or_default();
    let mut said = TokenStream::new();
    for (at, word) in given.iter().enumerate() {
        let text = word.value();
        if given[..at].iter().any(|it| it.value() == text) {
            faults.add(word.span(), format!("`{text}` is asked twice: keep one of them."));
        }
        let Some((_, kind)) = QUESTIONS.iter().find(|it| it.0 == text) else {
            let words = words.map(|it| format!("`{it}`")).join(", ");
            faults.add(word.span(), format!("`{text}` is no kind of question: there are {words}."));
            continue;
        };
        let kind = format_ident!("{kind}");
        said.extend(quote!(.asks(#private::server::QuestionKind::#kind)));
    }
    said
}

/// The duration in a text such as `30s`, if it is one.
fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.find(|it: char| !it.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|it| it.0 == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|it| *it > 0)
}

fn no_length(timeout: &LitStr) -> String {
    let units = UNITS.map(|it| format!("`{}`", it.0)).join(", ");
    format!(
        "`{}` is no length of time: write a whole number above 0 and one of {units}, as in \
         `timeout = \"30s\"`.",
        timeout.value()
    )
}

/// The kinds of question, and the variants of `QuestionKind`.
const QUESTIONS: [(&str, &str); 5] = [
    ("form", "Form"),
    ("url", "Url"),
    ("sampling", "Sampling"),
    ("sampling_tools", "SamplingWithTools"),
    ("roots", "Roots"),
];

/// Units of time, in milliseconds.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn a_length_is_a_number_and_a_unit() {
        for (text, length) in
            [("30s", 30_000), ("1500ms", 1_500), ("2 min", 120_000), ("1h", 3_600_000)]
        {
            assert_eq!(milliseconds(text), Some(length), "{text}");
        }
        let long = format!("{}h", u64::MAX);
        for text in ["", "30", "s", "0s", "1.5s", "-1s", "30 sec", "1m", "1s ", " 1s", &*long] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
