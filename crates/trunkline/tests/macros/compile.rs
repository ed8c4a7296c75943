//! Programs that compile, and programs that do not, with what the compiler says about them.
//!
//! `TRYBUILD=overwrite cargo test -p trunkline --test macros compile` writes the sentences anew;
//! read the difference before you keep it.

#[test]
fn what_is_missing_is_told_in_a_sentence() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/macros/fail/*.rs");
}
