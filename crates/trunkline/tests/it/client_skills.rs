//! The client against a server whose skills do not match their entries.

use serde_json::{Value, json};
use trunkline::Revision;
use trunkline::client::{Client, SkillError};
use trunkline::model::Skill;
use trunkline_auth::digest::sha256;

use crate::client_peer::{Peer, builder, pair};

const FILE: &str = "skill://pdf/SKILL.md";
const MARKDOWN: &str = "---\nname: pdf\ndescription: Reads PDF files.\nmetadata:\n  v: 1.0\n---\n";

/// The entry of the server's only skill.
fn entry() -> Value {
    json!({
        "uri": FILE,
        "frontmatter": { "name": "pdf", "description": "Reads PDF files.", "metadata": { "v": 1 } },
        "resources": [
            { "uri": FILE, "digest": sha256(MARKDOWN.as_bytes()), "size": MARKDOWN.len() },
            { "uri": "skill://pdf/data.bin", "digest": sha256(&[0xff]), "size": 1 },
            { "uri": "skill://other/SKILL.md", "digest": sha256(b""), "size": 0 },
        ],
    })
}

/// A client of a server that declares skills.
async fn meet() -> (Client, Peer) {
    let ((reader, writer), mut peer) = pair();
    let handshake = async {
        let request = peer.expect("initialize").await;
        let skills = json!({ "io.modelcontextprotocol/skills": {} });
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "resources": {}, "extensions": skills },
            "serverInfo": { "name": "scripted", "version": "1" },
        });
        peer.reply(&request, result).await;
        peer.expect("notifications/initialized").await;
    };
    let connecting = builder().protocol(Revision::V2025_11_25).connect_io(reader, writer);
    let (client, ()) = tokio::join!(connecting, handshake);
    (client.expect("the scripted server shakes hands"), peer)
}

async fn listed(client: &Client, peer: &mut Peer, entry: Value) -> Skill {
    let serve = async {
        let request = peer.expect("skills/list").await;
        peer.reply(&request, json!({ "skills": [entry] })).await;
    };
    let (skills, ()) = tokio::join!(client.list_skills().into_future(), serve);
    skills.expect("the list can be read").remove(0)
}

/// Loads the skill of `entry` from a server that has `contents` for it.
async fn load(entry: Value, contents: Value) -> Result<String, SkillError> {
    let (client, mut peer) = meet().await;
    let skill = listed(&client, &mut peer, entry).await;
    let serve = async {
        let request = peer.expect("resources/read").await;
        assert_eq!(request["params"], json!({ "uri": FILE }));
        peer.reply(&request, json!({ "contents": contents })).await;
    };
    let (text, ()) = tokio::join!(client.load_skill(&skill), serve);
    text
}

fn contents(text: &str) -> Value {
    json!([{ "uri": FILE, "mimeType": "text/markdown", "text": text }])
}

#[tokio::test]
async fn a_skill_that_is_what_was_promised_is_loaded() {
    assert_eq!(load(entry(), contents(MARKDOWN)).await.as_deref(), Ok(MARKDOWN));
    let mut dynamic = entry();
    dynamic["resources"] = json!("dynamic");
    assert_eq!(load(dynamic, contents(MARKDOWN)).await.as_deref(), Ok(MARKDOWN));
}

#[tokio::test]
async fn a_skill_that_is_not_is_refused() {
    let longer = format!("{MARKDOWN}And more.");
    let found = longer.len() as u64;
    let promised = MARKDOWN.len() as u64;
    assert_eq!(load(entry(), contents(&longer)).await, Err(SkillError::Size { promised, found }));
    let other = MARKDOWN.replace("PDF", "XML");
    assert_eq!(load(entry(), contents(&other)).await, Err(SkillError::Digest));
    // The digest is right, but the entry's frontmatter differs from the file's.
    for (name, value) in [
        ("description", json!("Sends PDF files away.")),
        ("metadata", json!({ "v": 2 })),
        ("license", json!("MIT")),
    ] {
        let mut entry = entry();
        entry["frontmatter"][name] = value;
        let refused = Err(SkillError::Frontmatter(name.to_owned()));
        assert_eq!(load(entry, contents(MARKDOWN)).await, refused);
    }
    for parts in [json!([]), json!([{ "uri": "skill://x/SKILL.md", "text": MARKDOWN }])] {
        assert!(matches!(load(entry(), parts).await, Err(SkillError::Contents(_))));
    }
    let mut dynamic = entry();
    dynamic["resources"] = json!("dynamic");
    let refused = load(dynamic, contents("---\nname: &x pdf\n---\n")).await;
    assert!(matches!(refused, Err(SkillError::Unreadable(_))), "{refused:?}");
}

#[tokio::test]
async fn only_files_that_the_skill_promises_are_read() {
    let (client, mut peer) = meet().await;
    let mut twice = entry();
    let again = twice["resources"][1].clone();
    twice["resources"].as_array_mut().unwrap().push(again);
    let twice = listed(&client, &mut peer, twice).await;
    let skill = listed(&client, &mut peer, entry()).await;
    for (skill, uri) in [
        (&skill, "skill://pdf/unknown.md"),
        (&skill, "skill://other/SKILL.md"),
        (&skill, "skill://pdf/../other/SKILL.md"),
        (&skill, "file:///etc/passwd"),
        (&twice, "skill://pdf/data.bin"),
    ] {
        // The server answers nothing: no request is sent.
        let refused = client.read_skill_file(skill, uri).await;
        assert_eq!(refused, Err(SkillError::NotListed(uri.to_owned())));
    }
    let serve = async {
        let request = peer.expect("resources/read").await;
        let part = json!({ "uri": "skill://pdf/data.bin", "blob": "/w==" });
        peer.reply(&request, json!({ "contents": [part] })).await;
    };
    let (bytes, ()) = tokio::join!(client.read_skill_file(&skill, "skill://pdf/data.bin"), serve);
    assert_eq!(bytes, Ok(vec![0xff]));
}

#[tokio::test]
async fn what_the_server_does_not_declare_is_not_asked() {
    let (client, _peer) = meet().await;
    let refused = client.read_directory("skill://pdf").await.unwrap_err();
    assert!(refused.to_string().contains("does not offer `resources/directory/read`"), "{refused}");
}
