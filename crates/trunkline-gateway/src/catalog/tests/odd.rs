use super::*;

/// A deterministic generator of numbers.
fn dice() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |sides| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % sides as u64) as usize
    }
}

#[test]
fn no_text_makes_it_panic() {
    let mut dice = dice();
    let words = [
        "{", "}", "[", "]", ": ", "- ", "\"", "'", "\n", "\r", "\t", "&a ", "*a", "<<: ", "${",
        "é", "|\n", "# ",
    ];
    let (mut good, mut bad) = (0, 0);
    for _ in 0..3000 {
        let mut text: Vec<char> = [EVERYTHING, REMOTE][dice(2)].chars().collect();
        for _ in 0..=dice(3) {
            let (from, length) = (dice(text.len()), dice(20));
            let to = (from + length).min(text.len());
            match dice(3) {
                0 => drop(text.drain(from..to)),
                1 => drop(text.splice(from..from, words[dice(words.len())].chars())),
                _ => {
                    let piece = text[from..to].to_vec();
                    let place = dice(text.len());
                    drop(text.splice(place..place, piece));
                }
            }
        }
        let text: String = text.into_iter().collect();
        match loaded(&text) {
            Ok(_) => good += 1,
            Err(faults) => {
                assert!(!faults.to_string().is_empty());
                bad += 1;
            }
        }
    }
    assert!(good > 100 && bad > 100, "{good} good, {bad} bad");
}
