//! Skills of several servers, listed and read through one gateway.

use serde_json::json;
use tokio::net::TcpListener;
use trunkline::server::skill;
use trunkline::{Client, Revision, Server};

use super::place::Place;

/// A server with a skill of this name, and where it is.
async fn library(name: &str, skills: &[&str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let mut server = Server::builder(name, "1.0.0");
    for it in skills {
        let text = format!("---\nname: {it}\ndescription: As {name} does it.\n---\n# {name}\n");
        let entry = skill(it, text)
            .unwrap()
            .file("notes.md", "text/markdown", format!("notes of {name}"))
            .unwrap();
        server = server.skill(entry);
    }
    let server = server.build();
    tokio::spawn(async move { server.http().serve(listener, std::future::pending()).await });
    url
}

#[tokio::test]
async fn skills_of_all_servers_are_listed_and_read() {
    let place = Place::new("skills");
    let (one, other) = (library("one", &["pdf", "secret"]).await, library("other", &["pdf"]).await);
    place.write(&json!({
        "mcpServers": { "one": { "url": one }, "other": { "url": other } },
        "gateway": { "rules": [{ "tools": ["one.read:skill://secret*"], "effect": "deny" }] },
    }));
    let gateway = place.open("127.0.0.1:0").await;
    for revision in Revision::ALL {
        let client = Client::builder("host", "1").protocol(revision);
        let client = client.connect_http(format!("http://{}/mcp", gateway.address)).await.unwrap();
        let skills = client.list_skills().await.unwrap();
        let uris: Vec<_> = skills.iter().map(|it| it.uri.as_str()).collect();
        let [first, second] =
            ["one", "other"].map(|it| format!("skill://trunkline/{it}/pdf/SKILL.md"));
        assert_eq!(uris, [&*first, &*second], "{revision}");
        let text = client.read_resource(first.as_str()).await.unwrap();
        assert!(text.contents[0].as_text().unwrap().ends_with("# one\n"), "{revision}");
        let notes = "skill://trunkline/other/pdf/notes.md";
        let text = client.read_resource(notes).await.unwrap();
        assert_eq!(text.contents[0].as_text(), Some("notes of other"), "{revision}");
        let got = client.get_skill(second.as_str()).await.unwrap();
        assert_eq!(got.uri, second, "{revision}");
        let folder = client.read_directory("skill://trunkline/one/pdf").await.unwrap();
        assert!(folder.iter().any(|it| it.uri == first), "{revision}: {folder:?}");
        assert!(client.get_skill("skill://trunkline/one/secret/SKILL.md").await.is_err());
    }
}
