//! Compares numbers and values as JSON Schema does: by value, not by spelling.

use std::cmp::Ordering;
use std::fmt::Write;

use serde_json::{Number, Value};

/// A lower or upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

impl Bound {
    pub(super) fn allows(self, number: &Number, bound: &Number) -> bool {
        let order = compare(number, bound);
        match self {
            Self::Minimum => order != Ordering::Less,
            Self::Maximum => order != Ordering::Greater,
            Self::ExclusiveMinimum => order == Ordering::Greater,
            Self::ExclusiveMaximum => order == Ordering::Less,
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Minimum => "at least",
            Self::Maximum => "at most",
            Self::ExclusiveMinimum => "more than",
            Self::ExclusiveMaximum => "less than",
        }
    }
}

pub(super) fn is_whole(number: &Number) -> bool {
    whole(number).is_some() || number.as_f64().is_some_and(|it| it.fract() == 0.0)
}

/// Whether a number is a multiple of another. Decimals are compared as written: 0.3 is three times
/// 0.1.
pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    if let (Some(number), Some(of)) = (whole(number), whole(of)) {
        return of != 0 && number % of == 0;
    }
    if let (Some((a, a_exp)), Some((b, b_exp))) = (decimal(number), decimal(of)) {
        let exp = a_exp.min(b_exp);
        if let (Some(a), Some(b)) = (scaled(a, a_exp - exp), scaled(b, b_exp - exp)) {
            return b != 0 && a % b == 0;
        }
    }
    let quotient = number.as_f64().unwrap_or(f64::NAN) / of.as_f64().unwrap_or(f64::NAN);
    quotient.is_finite() && quotient.fract() == 0.0
}

/// Whether two values are equal: `1` and `1.0` are, and the order of members does not matter.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let is_in_b = |(name, value)| b.get(name).is_some_and(|it| same(value, it));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}

/// A text that is equal for equal values.
pub(super) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 1e30);
            let written = match (whole(number), float) {
                (Some(whole), _) => write!(out, "{whole}"),
                (None, Some(float)) => write!(out, "{}", float as i128),
                _ => write!(out, "{number}"),
            };
            written.expect("a `String` takes all that is written to it");
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|it| it.0);
            out.push('{');
            for (name, value) in members {
                write!(out, "{name:?}:").expect("a `String` takes all that is written to it");
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// The value with `2.0` written as `2`, if it has any such number.
pub(super) fn with_whole_numbers(mut value: Value) -> Option<Value> {
    rewrite(&mut value).then_some(value)
}

fn rewrite(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if whole(number).is_none() => {
            // Below this, a float represents every integer exactly.
            let float = number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 2_f64.powi(53));
            let Some(float) = float else { return false };
            *value = (float as i64).into();
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, it| rewrite(it) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, it| rewrite(it) | any),
        _ => false,
    }
}

fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(whole), None) => order_of(whole, b),
        (None, Some(whole)) => order_of(whole, a).reverse(),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

/// Compares an integer with a float, without rounding the integer.
fn order_of(whole: i128, float: &Number) -> Ordering {
    let float = float.as_f64().unwrap_or_default();
    // The cast saturates, and the bounds of `i128` are far beyond every integer here.
    match whole.cmp(&(float.trunc() as i128)) {
        Ordering::Equal => 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal),
        order => order,
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Mantissa and decimal exponent of the shortest spelling.
fn decimal(number: &Number) -> Option<(i128, i32)> {
    if let Some(whole) = whole(number) {
        return Some((whole, 0));
    }
    let text = format!("{:e}", number.as_f64()?);
    let (digits, exponent) = text.split_once('e')?;
    let fraction = digits.split_once('.').map_or(0, |(_, it)| it.len());
    let digits = digits.replace('.', "").parse().ok()?;
    Some((digits, exponent.parse::<i32>().ok()? - i32::try_from(fraction).ok()?))
}

fn scaled(digits: i128, by: i32) -> Option<i128> {
    digits.checked_mul(10_i128.checked_pow(by.try_into().ok()?)?)
}
