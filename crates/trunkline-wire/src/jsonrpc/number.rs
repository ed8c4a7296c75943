//! Whole numbers → their digits.

/// Appends a number. Every answer has one, and formatting costs several times as much.
pub(super) fn write_number(number: i64, out: &mut Vec<u8>) {
    let mut digits = [b'-'; LONGEST_NUMBER];
    let (mut at, mut rest) = (digits.len(), number.unsigned_abs());
    while rest >= 100 {
        let pair = 2 * (rest % 100) as usize;
        rest /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if rest >= 10 {
        let pair = 2 * rest as usize;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + rest as u8;
    }
    // What comes before the digits is a sign already.
    at -= usize::from(number < 0);
    out.extend_from_slice(&digits[at..]);
}

/// The digits of the lowest number, and its sign.
const LONGEST_NUMBER: usize = 20;

/// The numbers below a hundred, with two digits each.
const PAIRS: [u8; 200] = {
    let (mut pairs, mut at) = ([b'0'; 200], 0);
    while at < 100 {
        pairs[2 * at] += at as u8 / 10;
        pairs[2 * at + 1] += at as u8 % 10;
        at += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let powers = (0..19).map(|power| 10_i64.pow(power));
        let near = powers.flat_map(|it| [it - 1, it, it + 1, 2 * (it / 3), it / 7 * 5]);
        for number in near.flat_map(|it| [it, -it]).chain([i64::MIN, i64::MAX]) {
            let mut out = b"[".to_vec();
            write_number(number, &mut out);
            assert_eq!(out, format!("[{number}").into_bytes());
        }
    }
}
