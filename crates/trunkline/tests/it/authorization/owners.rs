//! Tasks, cursors and sealed states belong to the principal that got them. Another valid token gets
//! the same answer as for something that never existed.

use std::future::pending;

use serde_json::{Value, json};
use trunkline::model::TaskSupport;
use trunkline::schemars::JsonSchema;
use trunkline::serde::Deserialize;
use trunkline::{
    Answer, Args, Context, Revision, Server, ToolError, prompt, resource, skill, template, tool,
};

use super::issuer::{Issuer, Person, send};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct One {
    n: String,
}

fn server() -> Server {
    let ask = async |cx: Context| -> Result<String, ToolError> {
        match cx.ask::<bool>("Sure?").await? {
            Answer::Accept(true) => Ok("Done.".to_owned()),
            _ => Ok("Nothing happened.".to_owned()),
        }
    };
    let endless = async || pending::<String>().await;
    let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse `a` or `b`.";
    let pdf = skill("pdf", text).unwrap();
    let pdf = pdf.file("a.sh", "text/x-sh", "a").unwrap().file("b.sh", "text/x-sh", "b").unwrap();
    let doc = skill("doc", "---\nname: doc\ndescription: Reads.\n---\nRead.").unwrap();
    Server::builder("files", "1")
        .page_size(1)
        .tool(tool("render", endless).task(TaskSupport::Optional))
        .tool(tool("ask", ask))
        .prompt(prompt("a", async || "A.".to_owned()))
        .prompt(prompt("b", async || "B.".to_owned()))
        .resource(resource("test://a", "a", async || "A."))
        .resource(resource("test://b", "b", async || "B."))
        .resource(template("test://a/{n}", "a", async |_: Args<One>| "A."))
        .resource(template("test://b/{n}", "b", async |_: Args<One>| "B."))
        .skill(pdf)
        .skill(doc)
        .build()
}

const TASKS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// Starts a task and returns its id.
async fn start(person: &mut Person) -> Value {
    let params = match person.guest.revision {
        Revision::V2026_07_28 => {
            person.guest.capabilities["extensions"] =
                json!({ "io.modelcontextprotocol/tasks": {} });
            json!({ "name": "render" })
        }
        _ => json!({ "name": "render", "task": {} }),
    };
    let created = person.expect("tools/call", params).await;
    let task = created.get("task").unwrap_or(&created);
    assert_eq!(task["status"], "working", "{created}");
    task["taskId"].clone()
}

#[tokio::test]
async fn a_task_is_not_there_for_another_good_token() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in TASKS {
        let (mut alice, mut bob) = issuer.two(address, revision).await;
        let (id, _) = (start(&mut alice).await, start(&mut bob).await);
        let (own, methods) = match revision {
            Revision::V2026_07_28 => {
                ("tasks/update", ["tasks/get", "tasks/cancel", "tasks/update"])
            }
            _ => ("tasks/result", ["tasks/get", "tasks/cancel", "tasks/result"]),
        };
        assert!(methods.contains(&own));
        for method in methods {
            for task in [&id, &json!("never-was")] {
                let mut params = json!({ "taskId": task });
                if method == "tasks/update" {
                    params["inputResponses"] = json!({});
                }
                let (head, answer) = bob.ask(method, params).await;
                let error = json!({ "code": -32602, "message": "There is no such task." });
                let expected = json!({ "jsonrpc": "2.0", "id": bob.guest.last_id, "error": error });
                assert_eq!(answer, expected, "{method} in {revision}");
                assert_eq!(head.get("www-authenticate"), None);
            }
        }
        let task = alice.expect("tasks/get", json!({ "taskId": id })).await;
        assert_eq!(task["status"], "working", "bob changed nothing");
    }
}

#[tokio::test]
async fn everybody_lists_their_own_tasks() {
    let (issuer, address) = Issuer::of(&server()).await;
    let revision = Revision::V2025_11_25;
    let (mut alice, mut bob) = issuer.two(address, revision).await;
    let (first, second) = (start(&mut alice).await, start(&mut alice).await);
    let page = alice.expect("tasks/list", json!({})).await;
    assert_eq!(page["tasks"][0]["taskId"], first);
    let cursor = json!({ "cursor": page["nextCursor"] });
    let page = alice.expect("tasks/list", cursor.clone()).await;
    assert_eq!((&page["tasks"][0]["taskId"], page.get("nextCursor")), (&second, None));
    assert_eq!(bob.expect("tasks/list", json!({})).await["tasks"], json!([]));
    let (_, answer) = bob.ask("tasks/list", cursor).await;
    assert_eq!(answer["error"], foreign());
}

fn foreign() -> Value {
    json!({ "code": -32602, "message": "The cursor is not one of this list." })
}

#[tokio::test]
async fn a_cursor_is_of_no_use_to_another_good_token_or_in_another_list() {
    let (issuer, address) = Issuer::of(&server()).await;
    for revision in Revision::ALL {
        let (mut alice, mut bob) = issuer.two(address, revision).await;
        let mut lists = vec![
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
        ];
        if revision == Revision::V2026_07_28 {
            let skills = json!({ "io.modelcontextprotocol/skills": {} });
            alice.guest.capabilities["extensions"] = skills.clone();
            bob.guest.capabilities["extensions"] = skills;
            lists.push(("skills/list", json!({})));
            lists.push(("resources/directory/read", json!({ "uri": "skill://pdf" })));
        }
        let mut before = None;
        for (method, params) in lists {
            let at = format!("{method} in {revision}");
            let page = alice.expect(method, params.clone()).await;
            let cursor = page["nextCursor"].as_str().expect("there is more").to_owned();
            assert!(!cursor.contains("after"), "nobody can make one: {cursor}");
            if revision == Revision::V2026_07_28 {
                assert_eq!(page["cacheScope"], "private", "{at}: the cursor is hers");
            }
            let with = |cursor: &str| {
                let mut params = params.clone();
                params["cursor"] = json!(cursor);
                params
            };
            let (_, stolen) = bob.ask(method, with(&cursor)).await;
            assert_eq!(stolen["error"], foreign(), "{at}");
            // The plain form, which anonymous callers get.
            let (_, made_up) = bob.ask(method, with("after-1")).await;
            assert_eq!(made_up["error"], foreign(), "{at}");
            let elsewhere = before.replace(cursor.clone());
            if let Some(elsewhere) = elsewhere {
                let (_, answer) = alice.ask(method, with(&elsewhere)).await;
                assert_eq!(answer["error"], foreign(), "{at}");
            }
            alice.expect(method, with(&cursor)).await;
        }
    }
}

#[tokio::test]
async fn a_sealed_state_opens_for_its_owner_alone() {
    let (issuer, address) = Issuer::of(&server()).await;
    let revision = Revision::V2026_07_28;
    let (mut alice, mut bob) = issuer.two(address, revision).await;
    let asked = alice.expect("tools/call", json!({ "name": "ask" })).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let reply = json!({ "action": "accept", "content": { "value": true } });
    let params = json!({
        "name": "ask",
        "requestState": asked["requestState"],
        "inputResponses": { key: reply },
    });
    let (_, stolen) = bob.ask("tools/call", params.clone()).await;
    let error = json!({ "code": -32602, "message": "`requestState` is not valid here." });
    let expected = json!({ "jsonrpc": "2.0", "id": bob.guest.last_id, "error": error });
    assert_eq!(stolen, expected);
    let done = alice.expect("tools/call", params).await;
    assert_eq!(done["content"][0]["text"], "Done.", "{done}");
}

#[tokio::test]
async fn a_request_that_takes_several_calls_is_its_senders_to_the_end() {
    let (issuer, address) = Issuer::of(&server()).await;
    let mut alice =
        Person::open(address, Revision::V2025_03_26, issuer.token("alice", "mcp")).await;
    let ping = alice.guest.prepare("ping", json!({}));
    let list = json!({ "jsonrpc": "2.0", "id": 77, "method": "mcp/listResources" });
    let headers = alice.signed(alice.guest.headers(&ping));
    for (id, body) in [(2, json!([ping, list])), (77, list.clone())] {
        let (mut line, head) = send(address, "POST /mcp", &headers, &body.to_string()).await;
        assert_eq!(head.status, 200);
        let answers = line.json().await;
        let list = answers.get(1).unwrap_or(&answers);
        let found = list["result"].as_array().unwrap_or_else(|| panic!("{id}: {answers}"));
        assert_eq!(found.len(), 6, "four pages of resources, two of templates: {answers}");
    }
}
