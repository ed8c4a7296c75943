//! The process groups of the servers that run → a shell that ends them should this process be killed.
//!
//! The kernel ends a server with us, but not what the server has started: behind `npx` or `sh -c`
//! that is the server itself. So while servers run there is one shell more, which reads which groups
//! there are. When its input ends without them having been taken back, nobody else is left to do it.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Sees to it that the shell is there. Before a start, so that it is no matter of luck who is first.
pub(crate) fn ready() -> Kept {
    let mut keeper = keeper();
    keeper.users += 1;
    keeper.tell("");
    Kept(None)
}

/// Waits until no shell is left that was let go.
pub(crate) fn rested() {
    let resting = std::mem::take(&mut keeper().resting);
    resting.into_iter().for_each(wait);
}

fn wait(resting: JoinHandle<()>) {
    // One that panicked has nobody to wait for.
    let _ = resting.join();
}

/// A group that is kept until this is dropped, or a start that is under way.
#[derive(Debug)]
pub(crate) struct Kept(Option<u32>);

impl Kept {
    /// Has a group end with this process, however that ends.
    pub(crate) fn keep(&mut self, group: u32) {
        let mut keeper = keeper();
        self.0 = Some(group);
        keeper.groups.insert(group);
        keeper.tell(&format!("+ {group}\n"));
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut keeper = keeper();
        keeper.users -= 1;
        if let Some(group) = self.0 {
            keeper.groups.remove(&group);
            keeper.tell(&format!("- {group}\n"));
        }
        if keeper.users == 0 {
            keeper.rest();
        }
    }
}

struct Keeper {
    groups: BTreeSet<u32>,
    users: usize,
    shell: Option<(Child, ChildStdin)>,
    /// Those who wait for shells that were let go.
    resting: Vec<JoinHandle<()>>,
}

fn keeper() -> MutexGuard<'static, Keeper> {
    // There is one for each process, as there is one death of it.
    static KEEPER: Mutex<Keeper> =
        Mutex::new(Keeper { groups: BTreeSet::new(), users: 0, shell: None, resting: Vec::new() });
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Tells the shell. One that is missing is started and told everything.
    fn tell(&mut self, line: &str) {
        if let Some((_, stdin)) = &mut self.shell
            && stdin.write_all(line.as_bytes()).is_ok()
        {
            return;
        }
        self.rest();
        let all: String = self.groups.iter().map(|group| format!("+ {group}\n")).collect();
        // Where there is no shell, servers go with us all the same; only what they start may stay.
        self.shell = start(&all).ok();
    }

    /// Lets the shell go; there is nobody to look after any more.
    fn rest(&mut self) {
        if let Some((mut shell, stdin)) = self.shell.take() {
            // With this it ends nobody, even if it has missed something.
            let _ = (&stdin).write_all(b"0\n");
            drop(stdin);
            // It ends at once, but not this very moment.
            self.resting.retain(|it| !it.is_finished());
            self.resting.push(thread::spawn(move || drop(shell.wait())));
        }
    }
}

fn start(groups: &str) -> io::Result<(Child, ChildStdin)> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "trunkline-keeper"]).env_clear().current_dir("/");
    // A group of its own: what a terminal sends to ours must not end it before us.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = command.spawn()?;
    let mut stdin = shell.stdin.take().expect("it was asked to be piped");
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

    /// Whether it ends by itself in a time that is long for a shell.
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
    fn what_is_left_when_the_input_ends_is_ended_and_nothing_else() {
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
        let mut keeper = Keeper { groups, users: 0, shell: None, resting: Vec::new() };
        keeper.tell("");
        let id = keeper.shell.as_ref().expect("there is a shell").0.id();
        let proc = format!("/proc/{id}");
        assert!(std::fs::exists(&proc).expect("one may look"), "it runs");
        keeper.rest();
        keeper.resting.drain(..).for_each(wait);
        assert!(!std::fs::exists(&proc).expect("one may look"), "nothing is left of it");
    }

    #[test]
    fn a_shell_that_rests_ends_nobody() {
        let mut child = sleeper();
        let (shell, stdin) = start(&format!("+ {}\n", child.id())).expect("there is a shell");
        let id = shell.id();
        let mut keeper = Keeper {
            groups: BTreeSet::new(),
            users: 0,
            shell: Some((shell, stdin)),
            resting: Vec::new(),
        };
        keeper.rest();
        let gone = Instant::now() + Duration::from_secs(20);
        while std::path::Path::new(&format!("/proc/{id}")).exists() && Instant::now() < gone {
            thread::sleep(Duration::from_millis(5)); // the sleep is the subject
        }
        assert_eq!(child.try_wait().expect("it is our child"), None);
        child.kill().expect("it runs");
        child.wait().expect("it is our child");
    }
}
