//! Programs that do not compile, with what the compiler says about them.
//!
//! `TRYBUILD=overwrite cargo test -p trunkline-macros --test it` rewrites the expected messages; review
//! the diff. These tests are here and not with the other tests of the macros, because the programs are
//! built with the dev-dependencies of their crate, and here those are few.

#[test]
fn every_mistake_is_explained_in_a_sentence() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/it/fail/*.rs");
}
