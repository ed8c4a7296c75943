//! A process that is killed while it writes loses nothing that it acknowledged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use trunkline_store::{Folder, Store};
use trunkline_testkit::Dice;

use crate::backend::Scratch;
use crate::child;

const ROUNDS: u64 = 20;
const TASKS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_writers_lose_nothing_that_was_acknowledged() {
    if let Some((folder, first)) = child::role() {
        return write_until_killed(Folder::open(folder).await.expect("it opens"), first).await;
    }
    let (scratch, mut random) = (Scratch::new(), Dice(2026));
    let mut said = Said::default();
    for round in 0..ROUNDS {
        // Numbers continue after all that an earlier child may have written without acknowledging it.
        let first = round * 100_000;
        let name = "kill::killed_writers_lose_nothing_that_was_acknowledged";
        let mut child = child::start(name, scratch.path(), first);
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let kill_after = 1 + random.below(80);
        let mut heard = 0;
        // After the kill the pipe still holds the last acknowledgements.
        while let Some(Ok(line)) = lines.next() {
            let Some(told) = child::told(&line) else { continue };
            said.note(told);
            heard += 1;
            if heard == kill_after {
                child.kill().expect("the child is ours");
            }
        }
        assert!(heard >= kill_after, "round {round}: the child ended by itself after {heard}");
        child.wait().expect("the child is ours");

        let store = Folder::open(scratch.path()).await.expect("it opens");
        assert_eq!(store.damaged(), [], "round {round}");
        said.check(&store, round).await;
    }
    assert!(said.puts.len() as u64 > ROUNDS, "{} writes were acknowledged", said.puts.len());
}

/// Tasks that write, replace, count and delete, and acknowledge each operation.
async fn write_until_killed(store: Folder, first: u64) {
    let store = Arc::new(store);
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            for number in first..first + 90_000 {
                let key = format!("{task}/{number}");
                store.put(&key, value(&key).as_bytes(), None).await.expect("put");
                child::tell(&format!("put {key}"));
                let hot = format!("{number:020}");
                store.put(&format!("hot/{task}"), hot.as_bytes(), None).await.expect("put");
                child::tell(&format!("hot {task}/{number}"));
                store.count(&format!("sum/{task}"), 1, None).await.expect("count");
                child::tell(&format!("sum {task}/{number}"));
                if number % 2 == 0 {
                    child::tell(&format!("deleting {key}"));
                    store.delete(&key).await.expect("delete");
                    child::tell(&format!("deleted {key}"));
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task ends well or is killed");
    }
}

fn value(key: &str) -> String {
    // Long enough to span several disk blocks.
    key.repeat(2_000)
}

/// What the children acknowledged.
#[derive(Default)]
struct Said {
    puts: BTreeSet<String>,
    deleting: BTreeSet<String>,
    deleted: BTreeSet<String>,
    hot: [u64; TASKS as usize],
    sums: [i64; TASKS as usize],
}

impl Said {
    fn note(&mut self, line: &str) {
        // A pipe writes so short a line atomically, so the kill truncates none.
        let (what, key) = line.split_once(' ').expect("a word and a key");
        let (task, number) = key.split_once('/').expect("a task and a number");
        let task: usize = task.parse().expect("a task");
        match what {
            "put" => drop(self.puts.insert(key.to_owned())),
            "deleting" => drop(self.deleting.insert(key.to_owned())),
            "deleted" => drop(self.deleted.insert(key.to_owned())),
            "hot" => self.hot[task] = number.parse().expect("a number"),
            "sum" => self.sums[task] += 1,
            other => panic!("a child said `{other}`"),
        }
    }

    async fn check(&self, store: &dyn Store, round: u64) {
        for key in &self.puts {
            let found = store.get(key).await.expect("get");
            if self.deleted.contains(key) {
                assert_eq!(found, None, "round {round}: `{key}` was deleted");
                continue;
            }
            match found {
                Some(entry) => assert_eq!(&*entry.value, value(key).as_bytes(), "`{key}`"),
                None => {
                    assert!(self.deleting.contains(key), "round {round}: `{key}` was lost");
                }
            }
        }
        for task in 0..TASKS as usize {
            let hot = store.get(&format!("hot/{task}")).await.expect("get");
            let hot = hot.map_or(0, |entry| String::from_utf8_lossy(&entry.value).parse().unwrap());
            assert!(hot >= self.hot[task], "round {round}: {hot} is older than {}", self.hot[task]);
            let sum = store.count(&format!("sum/{task}"), 0, None).await.expect("count");
            let most = self.sums[task] + round as i64 + 1;
            assert!((self.sums[task]..=most).contains(&sum), "round {round}: the sum is {sum}");
        }
    }
}
