//! Rust names → names in the case of `rename_all`.

use syn::{Error, LitStr, Result};

use crate::options::Options;

/// One case style.
#[derive(Clone, Copy)]
pub(super) struct Case {
    separator: &'static str,
    first: Letters,
    others: Letters,
}

#[derive(Clone, Copy)]
enum Letters {
    Lower,
    Upper,
    Capital,
}

impl Case {
    /// The style that `rename_all` names.
    pub(super) fn read(options: &Options) -> Result<Option<Self>> {
        let Some(wanted) = options.text("rename_all")? else { return Ok(None) };
        let case = CASES.iter().find(|it| it.0 == wanted.value()).map(|it| it.1);
        case.map(Some).ok_or_else(|| unknown(&wanted))
    }

    /// The name in this style.
    pub(super) fn spell(self, name: &str) -> String {
        let words = words(name);
        let spelled = words.iter().enumerate().map(|(at, word)| {
            match if at == 0 { self.first } else { self.others } {
                Letters::Lower => word.to_lowercase(),
                Letters::Upper => word.to_uppercase(),
                Letters::Capital => {
                    let (first, rest) =
                        word.split_at(word.chars().next().map_or(0, char::len_utf8));
                    first.to_uppercase() + &rest.to_lowercase()
                }
            }
        });
        spelled.collect::<Vec<_>>().join(self.separator)
    }
}

fn unknown(wanted: &LitStr) -> Error {
    let known: Vec<_> = CASES.iter().map(|it| format!("`{}`", it.0)).collect();
    let sentence = format!("`{}` is no spelling: there are {}.", wanted.value(), known.join(", "));
    Error::new(wanted.span(), sentence)
}

/// Splits a name: `BusinessClass` and `business_class` are both two words.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_new = true;
    for letter in name.chars() {
        if letter == '_' {
            is_new = true;
            continue;
        }
        match words.last_mut() {
            Some(word) if !is_new && !letter.is_uppercase() => word.push(letter),
            _ => words.push(letter.to_string()),
        }
        is_new = false;
    }
    words
}

const CASES: [(&str, Case); 8] = [
    ("lowercase", case("", Letters::Lower, Letters::Lower)),
    ("UPPERCASE", case("", Letters::Upper, Letters::Upper)),
    ("PascalCase", case("", Letters::Capital, Letters::Capital)),
    ("camelCase", case("", Letters::Lower, Letters::Capital)),
    ("snake_case", case("_", Letters::Lower, Letters::Lower)),
    ("SCREAMING_SNAKE_CASE", case("_", Letters::Upper, Letters::Upper)),
    ("kebab-case", case("-", Letters::Lower, Letters::Lower)),
    ("SCREAMING-KEBAB-CASE", case("-", Letters::Upper, Letters::Upper)),
];

const fn case(separator: &'static str, first: Letters, others: Letters) -> Case {
    Case { separator, first, others }
}

#[cfg(test)]
mod tests {
    use super::CASES;

    #[test]
    fn names_are_spelled_as_serde_spells_them() {
        let spelled: Vec<_> = CASES.iter().map(|it| it.1.spell("FirstClass")).collect();
        let expected = [
            "firstclass",
            "FIRSTCLASS",
            "FirstClass",
            "firstClass",
            "first_class",
            "FIRST_CLASS",
            "first-class",
            "FIRST-CLASS",
        ];
        assert_eq!(spelled, expected);
        let spelled: Vec<_> = CASES.iter().map(|it| it.1.spell("first_class")).collect();
        assert_eq!(spelled, expected);
    }
}
