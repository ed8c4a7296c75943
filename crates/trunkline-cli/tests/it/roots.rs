//! The folders of `--root`, while a call runs.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use trunkline_testkit::fake::{self, Log};

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_folder_that_goes_and_comes_back_during_a_call_is_told() {
    let place = std::env::temp_dir().join(format!("trunkline-roots-{}", std::process::id()));
    let folder = place.join("project");
    std::fs::create_dir_all(&folder).unwrap();
    let log = Log::at(place.join("log"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(["call", "hang", "--root"]).arg(&folder).arg("--");
    command.arg(fake::server()).arg("--log").arg(log.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _running = Running(command.spawn().unwrap());

    let told = |all: &[Value]| {
        let is_it = |it: &&Value| it["method"] == "notifications/roots/list_changed";
        all.iter().filter(is_it).count()
    };
    assert!(log.wait(PATIENCE, |all| all.iter().any(|it| it["event"] == "call")), "{log:?}");
    assert_eq!(told(&log.all()), 0);
    std::fs::remove_dir(&folder).unwrap();
    assert!(log.wait(PATIENCE, |all| told(all) == 1), "{:?}", log.all());
    std::fs::create_dir(&folder).unwrap();
    assert!(log.wait(PATIENCE, |all| told(all) == 2), "{:?}", log.all());
    let hello = &log.of("initialize")[0];
    assert_eq!(hello["capabilities"]["roots"]["listChanged"], true, "{hello}");
    let _ = std::fs::remove_dir_all(&place);
}

const PATIENCE: Duration = Duration::from_secs(20);
