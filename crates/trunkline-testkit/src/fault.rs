//! The child that misbehaves, built on demand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program of `src/bin/fault-child.rs`; its first argument says how to misbehave. Cargo builds
/// no binaries of another package for a test, so this asks the compiler itself, once per process.
pub fn child() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/fault-child.rs");
    let test = std::env::current_exe().expect("a test knows where it is");
    let folder = test.parent().expect("a test lies in a folder");
    let finished = folder.join("trunkline-fault-child");
    let built = |path: &Path| path.metadata().and_then(|it| it.modified());
    if built(&finished).is_ok_and(|done| built(&source).is_ok_and(|wrote| wrote < done)) {
        return finished;
    }
    // Several tests may build at once: each builds its own and moves it into place.
    let draft = folder.join(format!("trunkline-fault-child-{}", std::process::id()));
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "--crate-name", "fault_child", "-o"])
        .arg(&draft)
        .arg(&source)
        .output()
        .expect("`rustc` is on PATH, or the variable RUSTC names it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&draft, &finished).expect("the program can be moved within its folder");
    finished
}
