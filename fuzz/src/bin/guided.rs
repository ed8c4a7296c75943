//! One target under libFuzzer: `FUZZ_TARGET` names it, `FUZZ_DICTIONARY` says where its words go, and
//! the arguments are libFuzzer's own.
#![forbid(unsafe_code)]
#![no_main]

use std::sync::LazyLock;

use trunkline_fuzz::{Target, target};

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("`cargo xtask fuzz` names a target");
    target(&name).unwrap_or_else(|| panic!("There is no target `{name}`."))
});

libfuzzer_sys::fuzz_target!(
    init: {
        // libFuzzer reads its dictionary after this.
        if let Some(path) = std::env::var_os("FUZZ_DICTIONARY") {
            std::fs::write(path, TARGET.dictionary()).expect("the dictionary can be written");
        }
    },
    |data: &[u8]| (TARGET.check)(data)
);
