//! The rules for dependencies. Every row is a reviewed decision.
// tidy: table

/// The licences that crates of others may be under.
pub const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-3-Clause",
    // `xxhash-rust`, of `redis`; the Boost licence is a permissive one.
    "BSL-1.0",
    // The certificates of `webpki-roots`.
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    // libFuzzer, which is linked into nothing that is shipped.
    "NCSA",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that are there in more than one version, and why.
pub const DUPLICATES: &[(&str, &str)] = &[
    ("bit-vec", "`fancy-regex` and `yasna` want different ones; tests alone use them"),
    ("getrandom", "`ring`, `ahash` and `libfuzzer-sys` want different ones"),
    ("r-efi", "two of `getrandom`; used on no platform that we build for"),
    ("syn", "`clap` and `serde` have not moved to 3; it runs while building, nothing ships"),
    ("windows-sys", "two of them on Windows alone, which we do not build for"),
];

/// Crates that run a program while they are built: build scripts and macros.
pub const AT_BUILD: &[&str] = &[
    "ahash",
    "anyhow",
    "asn1-rs-derive",
    "asn1-rs-impl",
    "clap_derive",
    // It writes its tables. `redis` finds a key's slot in a cluster by them.
    "crc16",
    "displaydoc",
    "getrandom",
    "httparse",
    "jsonschema-value",
    "libc",
    // It compiles libFuzzer, for `cargo xtask fuzz` alone.
    "libfuzzer-sys",
    "num-traits",
    "oid-registry",
    "parking_lot_core",
    "proc-macro2",
    "quote",
    "ref-cast",
    "ref-cast-impl",
    "ring",
    "rustix",
    "rustls",
    "rustversion",
    "schemars_derive",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "strum_macros",
    "target-tuple",
    "thiserror",
    "thiserror-impl",
    "time-macros",
    "tokio-macros",
    "unicode-general-category",
    // Of tracing-core, under a flag that is never set: it asks which atomics the target has.
    "valuable",
    "wasm-bindgen",
    "wasm-bindgen-macro",
    "wasm-bindgen-shared",
    "windows_aarch64_gnullvm",
    "windows_aarch64_msvc",
    "windows_i686_gnu",
    "windows_i686_gnullvm",
    "windows_i686_msvc",
    "windows_x86_64_gnu",
    "windows_x86_64_gnullvm",
    "windows_x86_64_msvc",
    "wit-bindgen",
    "zerocopy",
    "zerocopy-derive",
    "zmij",
];

/// The most crates that a dependent of one of ours gets, with its default features.
pub const WEIGHTS: &[(&str, usize)] = &[
    ("trunkline", 44),
    ("trunkline-auth", 8),
    ("trunkline-authority", 20),
    // Of these, 29 come with `redis`, for `gateway.store`. `Cargo.lock` has the `idna_adapter` that knows ASCII alone (1.0):
    // a newer one brings 21 crates that read host names in other scripts, which only the address of a Redis could have.
    // Two unpack the console's page.
    ("trunkline-cli", 141),
    ("trunkline-macros", 5),
    ("trunkline-proto", 13),
    ("trunkline-recording", 13),
    ("trunkline-replicas", 55),
    ("trunkline-store", 9),
    ("trunkline-transport", 21),
    ("trunkline-wire", 12),
];
