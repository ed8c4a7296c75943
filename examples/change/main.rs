//! How do tools come and go while the server runs? Whoever listens is told.

use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use trunkline::{Server, State, ToolError, tool};

/// What is to change.
enum Wish {
    Learn(String),
    Forget(String),
}

/// Learns a word, which becomes a tool.
#[tool]
async fn learn(State(wishes): State<Sender<Wish>>, word: String) -> Result<(), ToolError> {
    Ok(wishes.send(Wish::Learn(word))?)
}

/// Forgets a word.
#[tool]
async fn forget(State(wishes): State<Sender<Wish>>, word: String) -> Result<(), ToolError> {
    Ok(wishes.send(Wish::Forget(word))?)
}

fn main() -> ExitCode {
    let (sender, wishes) = channel();
    let server = Server::builder("change", "1.0.0").state(sender).tool(learn).tool(forget).build();
    let changing = server.clone();
    std::thread::spawn(move || {
        for wish in wishes {
            match wish {
                Wish::Learn(word) => {
                    let said = format!("{word}!");
                    let tool = tool(word, move || std::future::ready(said.clone()));
                    if let Err(error) = changing.put_tool(tool) {
                        eprintln!("{error}");
                    }
                }
                Wish::Forget(word) => drop(changing.remove_tool(&word)),
            }
        }
    });
    server.run()
}
