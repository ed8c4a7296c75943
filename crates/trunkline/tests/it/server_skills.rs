//! Skills, as a client of any revision sees them.

use serde_json::{Value, json};
use trunkline::server::BadSkill;
use trunkline::{Client, Revision, Server, resource, skill};

use crate::server::{builder, open};

const MARKDOWN: &str = "---\nname: pdf\ndescription: Reads PDF files.\n---\n\nRead it.\n";

fn server() -> Server {
    let pdf = skill("acme/pdf", MARKDOWN)
        .and_then(|it| it.file("references/FORMS.md", "text/markdown", "Forms."))
        .and_then(|it| it.file("references/more notes.md", "text/markdown", "More."))
        .and_then(|it| it.file("data.bin", "application/octet-stream", [0xff, 0x00]));
    let xml =
        skill("acme/xml", "---\nname: xml\ndescription: Reads XML files.\nmetadata: {v: 1}\n---\n");
    builder().page_size(2).skill(pdf.unwrap()).skill(xml.unwrap()).build()
}

#[tokio::test]
async fn skills_are_declared_listed_and_found() {
    let server = server();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        let offered = &peer.opened["capabilities"];
        let settings = &offered["extensions"]["io.modelcontextprotocol/skills"];
        assert_eq!(*settings, json!({ "directoryRead": true }), "{revision}");
        assert!(offered["resources"].is_object());

        let list = peer.expect("skills/list", json!({})).await;
        assert_eq!(list["skills"][1]["frontmatter"]["metadata"], json!({ "v": 1 }));
        let first = &list["skills"][0];
        assert_eq!(first["uri"], "skill://acme/pdf/SKILL.md");
        assert_eq!(
            first["frontmatter"],
            json!({ "name": "pdf", "description": "Reads PDF files." })
        );
        assert_eq!(
            first["resources"][1],
            json!({
                "uri": "skill://acme/pdf/references/FORMS.md",
                "digest": "sha256:cf898f12074ed28146db029e6fcdafd2ac34251c12e36b68fa69033e23d7d9e7",
                "size": 6,
            })
        );
        let files: Vec<_> =
            first["resources"].as_array().unwrap().iter().map(|it| it["uri"].clone()).collect();
        assert_eq!(files[0], "skill://acme/pdf/SKILL.md", "the file itself is one of them");
        assert_eq!(files[2], "skill://acme/pdf/references/more%20notes.md");
        assert_eq!(list.get("ttlMs").is_some(), peer.is_stateless());

        let found = peer.expect("skills/get", json!({ "uri": first["uri"] })).await;
        assert_eq!(found["skill"], *first);
        assert_eq!(found.get("cacheScope").is_some(), peer.is_stateless());
        for params in [json!({ "uri": "skill://acme/pdf" }), json!({ "uri": 1 }), json!({})] {
            assert_eq!(peer.refused("skills/get", params).await, -32602);
        }
    }
}

#[tokio::test]
async fn a_skills_files_are_read_but_only_its_first_is_listed() {
    let server = server();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        let list = peer.expect("resources/list", json!({})).await;
        let [first, _] = &list["resources"].as_array().unwrap()[..] else { panic!("{list}") };
        assert_eq!(first["uri"], "skill://acme/pdf/SKILL.md");
        assert_eq!(
            (&first["name"], &first["description"]),
            (&json!("pdf"), &json!("Reads PDF files."))
        );
        for (uri, member, data) in [
            ("skill://acme/pdf/SKILL.md", "text", MARKDOWN),
            ("skill://acme/pdf/references/FORMS.md", "text", "Forms."),
            ("skill://acme/pdf/data.bin", "blob", "/wA="),
        ] {
            let read = peer.expect("resources/read", json!({ "uri": uri })).await;
            let [part] = &read["contents"].as_array().unwrap()[..] else { panic!("{read}") };
            assert_eq!((&part["uri"], &part[member]), (&json!(uri), &json!(data)), "{revision}");
        }
    }
}

#[tokio::test]
async fn directories_have_children_and_pages() {
    let server = server();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = open(&server, revision).await;
        for (uri, children) in [
            ("skill://acme", json!(["skill://acme/pdf", "skill://acme/xml"])),
            (
                "skill://acme/pdf",
                json!([
                    "skill://acme/pdf/SKILL.md",
                    "skill://acme/pdf/references",
                    "skill://acme/pdf/data.bin"
                ]),
            ),
            (
                "skill://acme/pdf/references/",
                json!([
                    "skill://acme/pdf/references/FORMS.md",
                    "skill://acme/pdf/references/more%20notes.md"
                ]),
            ),
        ] {
            let (mut found, mut params) = (Vec::new(), json!({ "uri": uri }));
            loop {
                let page = peer.expect("resources/directory/read", params.clone()).await;
                found.extend(page["resources"].as_array().unwrap().clone());
                match page.get("nextCursor") {
                    Some(cursor) => params["cursor"] = cursor.clone(),
                    None => break,
                }
            }
            let uris: Value = found.iter().map(|it| it["uri"].clone()).collect();
            assert_eq!(uris, children, "{uri}");
            for child in found {
                let is_directory = child["mimeType"] == "inode/directory";
                let uri = json!({ "uri": child["uri"] });
                let read = peer.call("resources/directory/read", uri).await;
                assert_eq!(read.is_ok(), is_directory, "{child}");
            }
        }
        for params in [
            json!({ "uri": "skill://acme/pdf/SKILL.md" }),
            json!({ "uri": "skill://" }),
            json!({ "uri": "skill://acme", "cursor": "x" }),
            json!({}),
        ] {
            assert_eq!(peer.refused("resources/directory/read", params).await, -32602);
        }
    }
}

#[tokio::test]
async fn a_server_without_skills_has_none_of_their_methods() {
    let server = builder().build();
    for revision in Revision::ALL {
        let mut peer = open(&server, revision).await;
        for method in ["skills/list", "skills/get", "resources/directory/read"] {
            assert_eq!(
                peer.refused(method, json!({ "uri": "skill://a" })).await,
                -32601,
                "{method}"
            );
        }
    }
}

#[test]
fn what_is_no_skill_says_why() {
    let text = |name: &str| format!("---\nname: {name}\ndescription: Something.\n---\n");
    for path in ["", "PDF", "a--b", "acme//pdf", "../pdf", "pdf/"] {
        assert!(matches!(skill(path, text(path)), Err(BadSkill::Name(_))), "{path}");
    }
    assert!(matches!(skill("pdf", text("xml")), Err(BadSkill::OtherName(_))));
    assert!(matches!(skill("pdf", "Just text."), Err(BadSkill::Frontmatter(_))));
    assert!(matches!(skill("pdf", "---\nname: pdf\n---\n"), Err(BadSkill::NoDescription)));
    let pdf = skill("pdf", text("pdf")).unwrap();
    for path in ["SKILL.md", "../other.md", "", "a/./b", "/etc/passwd"] {
        let added = pdf.clone().file(path, "text/plain", "");
        assert!(matches!(added, Err(BadSkill::Path(_))), "{path}");
    }
    let large = pdf.file("large", "text/plain", vec![0; 17 << 20]);
    let Err(why) = large else { panic!("it is too large") };
    assert_eq!(why.to_string(), "A skill has at most 512 files and 16 MiB; split it.");
}

#[test]
fn a_resource_does_not_have_the_uri_of_a_skills_file() {
    let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse `a.sh`.";
    let pdf = || skill("pdf", text).unwrap().file("a.sh", "text/x-sh", "a").unwrap();
    let own = |uri: &str| resource(uri, "own", async || "Own.").scopes(["own"]);
    let inner = Server::builder("inner", "1").skill(pdf()).build();
    let other = Server::builder("other", "1").resource(own("skill://pdf/a.sh")).build();
    for (builder, uri) in [
        (Server::builder("a", "1").skill(pdf()).resource(own("skill://pdf/SKILL.md")), "SKILL.md"),
        (Server::builder("a", "1").resource(own("skill://pdf/a.sh")).skill(pdf()), "a.sh"),
        (Server::builder("a", "1").resource(own("skill://pdf/a.sh")).mount("in", &inner), "a.sh"),
        (Server::builder("a", "1").skill(pdf()).mount("in", &other), "a.sh"),
    ] {
        let error = builder.try_build().expect_err("one would shadow the other");
        let expected = format!(
            "There are a resource and a file of a skill that are both `skill://pdf/{uri}`; rename one."
        );
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

#[tokio::test]
async fn a_resource_that_is_put_in_the_place_of_a_skills_file_is_what_is_read() {
    let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse `a.sh`.";
    let pdf = skill("pdf", text).unwrap().file("a.sh", "text/x-sh", "a").unwrap();
    let server = Server::builder("skills", "1").skill(pdf).build();
    let client = Client::in_memory(&server).await.unwrap();
    let read = async || client.read_resource("skill://pdf/a.sh").await;
    assert!(format!("{:?}", read().await.unwrap()).contains(r#""a""#));
    let hidden = resource("skill://pdf/a.sh", "own", async || "Own.").visible(|_| false);
    server.put_resource(hidden).unwrap();
    assert!(read().await.is_err(), "it is hidden");
    server.put_resource(resource("skill://pdf/a.sh", "own", async || "Own.")).unwrap();
    assert!(format!("{:?}", read().await.unwrap()).contains(r#""Own.""#));
}
