//! A URI template (RFC 6570) → the names of its variables.

/// The distinct variables in order, or the fault of the template.
pub(crate) fn variables(template: &str) -> Result<Vec<String>, String> {
    let bad = |why: &str| Err(format!("`{template}` is no URI template: {why}."));
    if template.is_empty() || template.chars().any(char::is_control) {
        return bad("it needs to be a text without control characters");
    }
    let mut names: Vec<String> = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        let Some(inside) = rest[at..].strip_prefix('{') else { return bad("a `}` has no `{`") };
        let Some((inside, tail)) = inside.split_once('}') else { return bad("a `{` has no `}`") };
        for variable in inside.trim_start_matches(OPERATORS).split(',') {
            let Some(name) = name(variable) else {
                return bad(&format!("`{{{inside}}}` does not name a variable"));
            };
            if !names.iter().any(|it| it == name) {
                names.push(name.to_owned());
            }
        }
        rest = tail;
    }
    Ok(names)
}

/// The name in `name`, `name*` and `name:3`.
fn name(variable: &str) -> Option<&str> {
    let name = match variable.split_once(':') {
        Some((name, length)) => {
            let is_length = length.parse().is_ok_and(|it: u16| (1..10_000).contains(&it));
            is_length.then_some(name)?
        }
        None => variable.strip_suffix('*').unwrap_or(variable),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.%-".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

const OPERATORS: [char; 7] = ['+', '#', '.', '/', ';', '?', '&'];

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn every_operator_and_modifier_is_understood() {
        for (template, names) in [
            ("hotel://rooms", &[][..]),
            ("hotel://{city}/rooms/{room}", &["city", "room"]),
            ("file:///{+path*}{?page,size:3}{&page}", &["path", "page", "size"]),
            ("x:{#a}{.b}{/c}{;d}", &["a", "b", "c", "d"]),
        ] {
            assert_eq!(variables(template).as_deref(), Ok(names.map_owned().as_slice()));
        }
    }

    #[test]
    fn an_invalid_template_is_refused() {
        for template in ["", "a{", "a}", "{}", "{a b}", "{a:0}", "{=a}", "{a,}", "a\n"] {
            assert!(variables(template).is_err(), "{template}");
        }
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl MapOwned for [&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|it| (*it).to_owned()).collect()
        }
    }
}
