//! How do I do long work? As a task, which outlives its call and, stored in a folder, its process.
//! Start it with the folder.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use trunkline::server::{IntoTool, Task};
use trunkline::store::Folder;
use trunkline::{Server, State, ToolError, tool};

/// Where the frames go.
struct Film(PathBuf);

/// Renders a film.
#[tool]
async fn render(film: State<Film>, frames: u32) -> Result<Task<String>, ToolError> {
    Ok(Task::new(async move |cx| {
        for frame in 1..=frames {
            // A frame that was drawn before the process died is not drawn again.
            cx.once(&format!("frame {frame}"), async || draw(&film, frame).await).await?;
            cx.progress(frame, frames).await;
        }
        Ok(format!("A film of {frames} frames."))
    }))
}

async fn draw(film: &Film, frame: u32) -> std::io::Result<()> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&film.0)?;
    writeln!(file, "frame {frame}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("Say which folder to work in.")?);
    let tasks = Folder::open(folder.join("tasks")).await?;
    let server = Server::builder("long-work", "1.0.0")
        .state(Film(folder.join("film.txt")))
        .task_store(Arc::new(tasks))
        .take_over_after(Duration::from_secs(1))
        .tool(render.into_tool().resume())
        .build();
    Ok(server.serve_stdio().await?)
}
