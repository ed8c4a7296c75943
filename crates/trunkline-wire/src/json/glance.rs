//! A result as text → the few top-level members that decide its handling.
//!
//! A substring search would be fooled by white space, escapes or nesting; deserialising costs more than
//! most results are worth. This reads over every value without keeping it, and a result that comes in a
//! message is looked at while the message is read.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Json, Reader, Text, Unreadable, write_string};

/// The top-level members of a result. Of duplicate names the last counts, as in most JSON parsers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Whether `isError` is `true`.
    pub is_error: bool,
    /// `resultType`.
    pub result_type: ResultType,
    /// Whether `task` is present.
    pub has_task: bool,
    /// Whether `content` is present.
    pub has_content: bool,
    /// `resultType` stands more than once.
    pub repeats_type: bool,
    /// A name may stand more than once: there are many, or one has escapes. Only a closer look can tell.
    pub is_doubtful: bool,
}

/// The kind of a result, from `resultType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultType {
    /// Absent.
    #[default]
    None,
    /// `complete`.
    Complete,
    /// `input_required`.
    InputRequired,
    /// `task`.
    Task,
    /// Another value.
    Other,
}

impl Glance {
    /// What the result shows. One that came in a message was looked at already.
    pub fn of(result: &Json) -> Self {
        match &result.0 {
            Text::Result(_, glance) | Text::Taken(_, Some(glance)) => *glance,
            _ => Self::at(result.get()),
        }
    }

    /// Scans the text of a result. A text that is no JSON object has no members.
    pub fn at(text: &str) -> Self {
        Self::read(&mut Reader::new(text)).map(|(_, glance)| glance).unwrap_or_default()
    }

    /// Reads the next value, which is a result: its text, and what it shows.
    pub(crate) fn read<'a>(reader: &mut Reader<'a>) -> Result<(&'a str, Self), Unreadable> {
        let mut glance = Self::default();
        if reader.peek() != Some(b'{') {
            return Ok((reader.value()?, glance));
        }
        let start = reader.position();
        reader.open(b'{')?;
        let mut names = Names::default();
        while let Some(name) = reader.member(names.count == 0)? {
            let value = reader.value()?;
            let name = name.decode();
            glance.is_doubtful |= !names.add(name.as_ref());
            match &*name.unwrap_or_default() {
                "isError" => glance.is_error = value == "true",
                "resultType" => {
                    glance.repeats_type |= glance.result_type != ResultType::None;
                    glance.result_type = ResultType::of(value);
                }
                "task" => glance.has_task = true,
                "content" => glance.has_content = true,
                _ => {}
            }
        }
        Ok((reader.since(start), glance))
    }
}

/// The names of an object, as long as they are few.
#[derive(Default)]
struct Names<'a> {
    few: [&'a str; 8],
    count: usize,
}

impl<'a> Names<'a> {
    /// Whether a name is certainly a new one.
    fn add(&mut self, name: Option<&Cow<'a, str>>) -> bool {
        let at = self.count;
        self.count += 1;
        match (name, self.few.get_mut(..=at)) {
            (Some(Cow::Borrowed(plain)), Some([before @ .., last])) => {
                *last = *plain;
                !before.contains(plain)
            }
            _ => false,
        }
    }
}

impl ResultType {
    /// The kind that a value of `resultType` (a JSON text) names.
    pub fn of(value: &str) -> Self {
        match value {
            r#""complete""# => Self::Complete,
            r#""input_required""# => Self::InputRequired,
            r#""task""# => Self::Task,
            // The same word with escapes.
            escaped if escaped.contains('\\') => {
                match serde_json::from_str::<String>(escaped).as_deref() {
                    Ok("complete") => Self::Complete,
                    Ok("input_required") => Self::InputRequired,
                    Ok("task") => Self::Task,
                    _ => Self::Other,
                }
            }
            _ => Self::Other,
        }
    }
}

/// The members of an object with raw values, for code that forwards most of them.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    /// The members of a JSON text. `None` if it is no object, or one that parsers could disagree about:
    /// a duplicate name, or one with a control character.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let mut reader = Reader::new(text);
        reader.open(b'{').ok()?;
        let mut members: Vec<(Cow<'a, str>, &'a str)> = Vec::with_capacity(8);
        let mut others = HashSet::new();
        while let Some(name) = reader.member(members.is_empty()).ok()? {
            let name = name.decode()?;
            let value = reader.value().ok()?;
            let few = &members[..members.len().min(FEW)];
            let is_new = few.iter().all(|(it, _)| *it != name)
                && (members.len() < FEW || others.insert(name.clone()));
            if !is_new || name.bytes().any(|byte| byte < b' ') {
                return None;
            }
            members.push((name, value));
        }
        reader.end().ok().map(|()| Self(members))
    }

    /// Removes a member.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|(it, _)| it == name)?;
        Some(self.0.remove(at).1)
    }

    /// The remaining members, and one more.
    pub(crate) fn write(&self, more: Option<(&'a str, &Json)>) -> Json {
        let own = self.0.iter().map(|(name, value)| (&**name, *value));
        let more = more.map(|(name, value)| (name, value.get()));
        let length: usize =
            own.clone().chain(more).map(|(name, it)| name.len() + it.len() + 4).sum();
        let mut out = Vec::with_capacity(length + 2);
        out.push(b'{');
        for (name, value) in own.chain(more) {
            if out.len() > 1 {
                out.push(b',');
            }
            write_string(name, &mut out);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
        Json::from_written(out)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Up to this number, a linear search is quick.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, Message, Object};

    #[test]
    fn only_the_top_level_counts_however_it_is_written() {
        for (text, expected) in [
            (r#"{"isError":true}"#, true),
            ("{ \"isError\" :\n true , \"content\" : [ ] }", true),
            (r#"{"content":[],"isError":true}"#, true),
            (r#"{"isErr\u006fr":true}"#, true),
            (r#"{"isError":false}"#, false),
            (r#"{"isError":"true"}"#, false),
            (r#"{"isError":true,"isError":false}"#, false),
            (r#"{"isError":false,"isError":true}"#, true),
            (r#"{"structuredContent":{"isError":true}}"#, false),
            (r#"{"content":[{"type":"text","text":"{\"isError\":true}"}]}"#, false),
            (r#"{"content":[{"isError":true}],"x":"\\","isError":false}"#, false),
            (r#"{"a":"\"isError\":true"}"#, false),
            (r#"{"a":-1.5e3,"b":null,"isError":true}"#, true),
            ("{}", false),
            ("[]", false),
            ("true", false),
            ("", false),
            (r#"{"isError""#, false),
            (r#"{"isError":"#, false),
            (r#"{"a":"\"#, false),
            (r#"{"a":{"b":["#, false),
            (r#"{"a":}"#, false),
        ] {
            assert_eq!(Glance::at(text).is_error, expected, "{text}");
        }
    }

    #[test]
    fn a_result_in_a_message_shows_what_its_text_shows() {
        for text in [
            r#"{"content":[{"type":"text","text":"{\"isError\":true}"}],"isError" : true}"#,
            r#"{ "resultType" : "complete" , "task":{"content":[]} }"#,
            r#"{"resultType":"task","resultType":"complete"}"#,
            r#"{"\ud800":1,"isErr\u006fr":true}"#,
            "{}",
            r#"["isError"]"#,
            "7",
        ] {
            let message = format!(r#"{{"jsonrpc":"2.0","result": {text} ,"id":1}}"#);
            let Incoming::One(Message::Response { outcome: Ok(result), .. }) =
                Incoming::parse(message.as_bytes())
            else {
                panic!("{message}");
            };
            assert!(matches!(result.0, Text::Result(..)));
            assert_eq!(result.get(), text);
            assert_eq!(Glance::of(&result), Glance::at(text), "{text}");
            assert_eq!(Glance::of(&Json::copied(text)), Glance::at(text), "{text}");
        }
        assert_eq!(size_of::<Json>(), 3 * size_of::<usize>());
    }

    #[test]
    fn a_name_that_stands_twice_leaves_a_doubt() {
        let members =
            |count| (0..count).map(|it| format!(r#""m{it}":0"#)).collect::<Vec<_>>().join(",");
        for plain in [
            "{}".to_owned(),
            r#"{"a":{"a":1},"b":[{"b":2}]}"#.into(),
            format!("{{{}}}", members(8)),
        ] {
            assert!(!Glance::at(&plain).is_doubtful, "{plain}");
        }
        for doubtful in [
            r#"{"a":1,"b":2,"a":3}"#.to_owned(),
            r#"{"\u0061":1}"#.into(),
            r#"{"\ud800":1}"#.into(),
            format!("{{{}}}", members(9)),
        ] {
            assert!(Glance::at(&doubtful).is_doubtful, "{doubtful}");
        }
    }

    #[test]
    fn hostile_nestings_decide_nothing() {
        let truth = r#""isError":true,"resultType":"task","task":{},"content":[]"#;
        let quoted = Json::string(&format!("}}],{truth}")).get().to_owned();
        let deep = format!("{}{{{truth}}}{}", r#"{"a":["#.repeat(50), "]}".repeat(50));
        for hidden in [
            format!("{{{truth}}}"),
            format!("[[{{{truth}}}],{{}}]"),
            quoted,
            deep,
            format!(r#"["\\",{{"\\\"":{{{truth}}}}}]"#),
            format!(r#"{{"}}{{":"]","b":{{{truth}}}}}"#),
        ] {
            for text in [
                format!(r#"{{"x":{hidden}}}"#),
                format!("{{ \"x\"\n:\t{hidden} ,\r\n\"y\":[{hidden}]}}"),
                format!("[{hidden}]"),
            ] {
                assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
                assert_eq!(Glance::at(&text), Glance::default(), "{text}");
            }
            let text = format!(r#"{{"x":{hidden},"isError" : true,"resultType":"complete"}}"#);
            let glance = Glance::at(&text);
            assert!(glance.is_error && glance.result_type == ResultType::Complete, "{text}");
            assert!(!glance.has_task && !glance.has_content, "{text}");
        }
    }

    #[test]
    fn the_kind_of_a_result_is_its_own() {
        for (text, expected) in [
            (r#"{"resultType":"input_required"}"#, ResultType::InputRequired),
            (r#"{"content":[],"resultType":"complete"}"#, ResultType::Complete),
            (r#"{"resultType": "task","taskId":"1"}"#, ResultType::Task),
            (r#"{"resultType":"inp\u0075t_required"}"#, ResultType::InputRequired),
            (r#"{"resultType":"else"}"#, ResultType::Other),
            (r#"{"structuredContent":{"resultType":"input_required"}}"#, ResultType::None),
        ] {
            assert_eq!(Glance::at(text).result_type, expected, "{text}");
        }
        let task = Glance::at(r#"{"task":{"taskId":"1","status":"working"}}"#);
        assert!(task.has_task && !task.has_content);
        assert!(!Glance::at(r#"{"content":[{"task":1}]}"#).has_task);
    }

    #[test]
    fn a_glance_agrees_with_serde() {
        #[derive(serde::Deserialize)]
        struct Read {
            #[serde(rename = "isError", default)]
            is_error: Option<bool>,
        }
        // Every position of a member among others, and others that try to hide it.
        let others = [r#""a":{"isError":true}"#, r#""b":"}\"{""#, r#""c":[[],{}]"#, r#""d":1"#];
        let own = [r#""isError":true"#, r#""isError" : false"#, r#""x":0"#];
        for (one, two) in others.iter().flat_map(|one| others.iter().map(move |two| (one, two))) {
            for own in own {
                for text in [
                    format!("{{{own},{one}}}"),
                    format!("{{{one},{own}}}"),
                    format!("{{{one} , {own}\t,{two}}}"),
                ] {
                    let Ok(read) = serde_json::from_str::<Read>(&text) else { continue };
                    assert_eq!(Glance::at(&text).is_error, read.is_error == Some(true), "{text}");
                }
            }
        }
    }

    #[test]
    fn members_are_those_that_an_object_has() {
        let many: String = (0..40).map(|it| format!(r#""m{it}":[{it}],"#)).collect();
        let twice = format!(r#"{{{many}"m39":0}}"#);
        let many = format!("{{{}}}", many.trim_end_matches(','));
        for text in [
            "{}",
            "{ }",
            r#"{"a":1,"b":[{"a":"}"}],"c":"\"}"#,
            "{ \"a\" :\t1 ,\n\"b\" : {} }",
            r#"{"\u0061":1,"b\"c":2,"é":"\u00e9"}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a\u0000":1}"#,
            r#"{"\ud800":1}"#,
            "[]",
            "1",
            &many,
            &twice,
        ] {
            let read = Object::parse(text).ok().map(|it| it.to_json());
            assert_eq!(Members::of(text).map(|it| it.write(None)), read, "{text}");
        }
    }

    #[test]
    fn a_member_that_is_taken_is_not_passed_on() {
        let mut members = Members::of(r#"{"a":1,"\u0062":{"c":2},"d":3}"#).expect("an object");
        assert_eq!((members.take("b"), members.take("b")), (Some(r#"{"c":2}"#), None));
        let more = Json::string("more");
        assert_eq!(members.write(Some(("e", &more))).get(), r#"{"a":1,"d":3,"e":"more"}"#);
        assert!(members.take("a").is_some() && members.take("d").is_some() && members.is_empty());
        assert_eq!(members.write(None).get(), "{}");
    }
}
