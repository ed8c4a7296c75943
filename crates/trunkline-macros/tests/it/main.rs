//! Programs that do not compile, with what the compiler says about them.
//!
//! `TRYBUILD=overwrite cargo test -p trunkline-macros --test it` writes the sentences anew; read
//! the difference before you keep it. They are here and not with the other tests of the macros
//! because their programs are built with the dev-dependencies of their crate: here those are few.

#[test]
fn what_is_missing_is_told_in_a_sentence() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/it/fail/*.rs");
}
