//! The process groups of children → a shell that kills them if this process is killed.
//!
//! The kernel kills a child with us (`PR_SET_PDEATHSIG`, Linux only), but not what the child has
//! started: behind `npx` or `sh -c` that is the server itself. So while children run there is one more
//! shell, the orphan reaper, which reads their process groups from us. If its input ends while groups
//! are left, this process is gone, and the reaper kills them.
//!
//! [`Command::without_orphan_reaper`](super::Command::without_orphan_reaper) starts a child without it.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Blocks until every reaper that no child needs any more has ended. A program that must leave no
/// process behind calls this after its last child has ended.
pub fn wait_until_gone() {
    let ending = std::mem::take(&mut reaper().ending);
    ending.into_iter().for_each(wait);
}

/// Starts the reaper if it does not run: before the child, to avoid a race.
pub(super) fn prepare() -> WatchedGroup {
    let mut reaper = reaper();
    reaper.users += 1;
    reaper.tell("");
    WatchedGroup(None)
}

/// A watched process group, or a start in progress; dropping it ends the watch.
#[derive(Debug)]
pub(super) struct WatchedGroup(Option<u32>);

impl WatchedGroup {
    /// Lets the reaper kill the group if this process dies.
    pub(super) fn watch(&mut self, group: u32) {
        let mut reaper = reaper();
        self.0 = Some(group);
        reaper.groups.insert(group);
        reaper.tell(&format!("+ {group}\n"));
    }
}

impl Drop for WatchedGroup {
    fn drop(&mut self) {
        let mut reaper = reaper();
        reaper.users -= 1;
        if let Some(group) = self.0 {
            reaper.groups.remove(&group);
            reaper.tell(&format!("- {group}\n"));
        }
        if reaper.users == 0 {
            reaper.dismiss();
        }
    }
}

struct OrphanReaper {
    groups: BTreeSet<u32>,
    users: usize,
    shell: Option<(Child, ChildStdin)>,
    /// Threads that wait for dismissed shells.
    ending: Vec<JoinHandle<()>>,
}

fn reaper() -> MutexGuard<'static, OrphanReaper> {
    // One per process.
    static REAPER: Mutex<OrphanReaper> = Mutex::new(OrphanReaper {
        groups: BTreeSet::new(),
        users: 0,
        shell: None,
        ending: Vec::new(),
    });
    REAPER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OrphanReaper {
    /// Sends a line to the shell. If there is none, starts one and sends it every group.
    fn tell(&mut self, line: &str) {
        if let Some((_, stdin)) = &mut self.shell
            && stdin.write_all(line.as_bytes()).is_ok()
        {
            return;
        }
        self.dismiss();
        let all: String = self.groups.iter().map(|group| format!("+ {group}\n")).collect();
        // Without a shell, children still die with us; only what they started may survive.
        self.shell = start(&all).ok();
    }

    /// Dismisses the shell: no group is left to watch.
    fn dismiss(&mut self) {
        if let Some((mut shell, stdin)) = self.shell.take() {
            // After this line the shell kills nothing, even if it missed a group.
            let _ = (&stdin).write_all(b"0\n");
            drop(stdin);
            // The shell ends soon, but not immediately.
            self.ending.retain(|it| !it.is_finished());
            let waiting = thread::Builder::new().name("trunkline-reaper".into());
            let waiting = waiting.stack_size(64 << 10).spawn(move || drop(shell.wait()));
            // Without a thread the shell still ends; its zombie goes with us.
            self.ending.extend(waiting);
        }
    }
}

fn wait(ending: JoinHandle<()>) {
    // A panicked thread has nothing to wait for.
    let _ = ending.join();
}

fn start(groups: &str) -> io::Result<(Child, ChildStdin)> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "trunkline-orphan-reaper"]).env_clear().current_dir("/");
    // Its own process group: a signal from the terminal to ours must not end it before us.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = command.spawn()?;
    let Some(mut stdin) = shell.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    stdin.write_all(groups.as_bytes())?;
    Ok((shell, stdin))
}

const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=' '
while read -r sign group; do
    case $sign in
        +) groups="$groups$group " ;;
        -) groups="${groups%% $group *} ${groups#* $group }" ;;
        0) exit ;;
    esac
done
for group in $groups; do
    kill -s KILL -- "-$group"
done
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").process_group(0).spawn().expect("there is `sleep`")
    }

    /// Whether it ends by itself within a time that is long for a shell.
    fn ends(child: &mut Child, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            if child.try_wait().expect("it is our child").is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(5)); // the sleep is the subject
        }
        false
    }

    #[test]
    fn only_watched_groups_are_killed_when_the_input_ends() {
        let mut groups = [sleeper(), sleeper(), sleeper()];
        let ids = groups.each_ref().map(Child::id);
        let text = ids.map(|id| format!("+ {id}\n")).concat();
        let (mut shell, mut stdin) = start(&text).expect("there is a shell");
        stdin.write_all(format!("- {}\n", ids[1]).as_bytes()).expect("it reads");
        drop(stdin);
        shell.wait().expect("it is our child");
        assert!(ends(&mut groups[0], Duration::from_secs(20)));
        assert!(ends(&mut groups[2], Duration::from_secs(20)));
        assert_eq!(groups[1].try_wait().expect("it is our child"), None, "it was taken back");
        groups[1].kill().expect("it runs");
        groups[1].wait().expect("it is our child");
    }

    #[test]
    fn a_shell_that_was_waited_for_is_gone() {
        let groups = BTreeSet::new();
        let mut reaper = OrphanReaper { groups, users: 0, shell: None, ending: Vec::new() };
        reaper.tell("");
        let id = reaper.shell.as_ref().expect("there is a shell").0.id();
        let proc = format!("/proc/{id}");
        assert!(std::fs::exists(&proc).expect("one may look"), "it runs");
        reaper.dismiss();
        reaper.ending.drain(..).for_each(wait);
        assert!(!std::fs::exists(&proc).expect("one may look"), "nothing is left of it");
    }

    #[test]
    fn a_dismissed_shell_kills_no_process() {
        let mut child = sleeper();
        let (shell, stdin) = start(&format!("+ {}\n", child.id())).expect("there is a shell");
        let id = shell.id();
        let mut reaper = OrphanReaper {
            groups: BTreeSet::new(),
            users: 0,
            shell: Some((shell, stdin)),
            ending: Vec::new(),
        };
        reaper.dismiss();
        let gone = Instant::now() + Duration::from_secs(20);
        while std::path::Path::new(&format!("/proc/{id}")).exists() && Instant::now() < gone {
            thread::sleep(Duration::from_millis(5)); // the sleep is the subject
        }
        assert_eq!(child.try_wait().expect("it is our child"), None);
        child.kill().expect("it runs");
        child.wait().expect("it is our child");
    }
}
