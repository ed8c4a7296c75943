use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline::Revision;
use trunkline::client::{Client, ToolCall};
use trunkline::serde_json::json;

use crate::common::{ERAS, builder, example, text};

/// A temporary folder of one test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, revision: Revision) -> Self {
        let name = format!("trunkline-{name}-{revision}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    async fn with_client(name: &str, revision: Revision) -> (Self, Client) {
        let place = Self::new(name, revision);
        let client = place.client(revision).await;
        (place, client)
    }

    async fn client(&self, revision: Revision) -> Client {
        let words = [example!("long-work"), self.0.to_str().unwrap()];
        builder(revision).connect_args(words).await.unwrap()
    }

    fn frames(&self) -> Vec<String> {
        let film = std::fs::read_to_string(Path::new(&self.0).join("film.txt"));
        film.unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test]
async fn who_only_wants_the_result_waits_for_it() {
    for revision in ERAS {
        let (place, client) = Place::with_client("waits", revision).await;
        let result = client.call_tool("render", json!({ "frames": 3 })).await.unwrap();
        assert_eq!(text(&result), "A film of 3 frames.");
        assert_eq!(place.frames(), ["frame 1", "frame 2", "frame 3"]);
        client.close().await;
    }
}

#[tokio::test]
async fn a_task_goes_on_where_its_process_left_it() {
    for revision in ERAS {
        let (place, client) = Place::with_client("goes-on", revision).await;
        let begun = client.call_tool_task("render", json!({ "frames": 40 })).await.unwrap();
        let ToolCall::Task(task) = begun else { panic!("it is no task: {begun:?}") };
        while place.frames().len() < 3 {
            // Each poll is a round trip to the server, which works meanwhile.
            client.get_task(&task.task_id).await.unwrap();
        }
        // The process is killed in the middle of its work.
        drop(client);
        let left = place.frames().len();
        assert!((3..40).contains(&left), "{left} frames were drawn");

        let client = place.client(revision).await;
        let result = client.task_result(&task.task_id).deadline(Duration::from_secs(60));
        let result = result.await.unwrap();
        assert_eq!(text(&result), "A film of 40 frames.");
        let frames = place.frames();
        let distinct: BTreeSet<_> = frames.iter().collect();
        assert_eq!(distinct.len(), 40);
        assert!(frames.len() <= 41, "only the frame that was being drawn is drawn again");
        client.close().await;
    }
}
