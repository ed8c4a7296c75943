//! `scopes`, on functions, on methods and on whole blocks.

use serde_json::{Value, json};
use tower::util::MapRequestLayer;
use trunkline::layer::ServerRequest;
use trunkline::server::ServerBuilder;
use trunkline::{Client, Principal, Server, prompt, resource, tool, toolbox};

/// Takes one.
#[tool(scopes = "files:write")]
async fn write() -> &'static str {
    "Done."
}

/// Takes two.
#[prompt(scopes = ["plans", "files:read"])]
async fn plan() -> String {
    "Plan my day.".to_owned()
}

/// Takes one.
#[resource("files://all", scopes = "files:read")]
async fn all() -> &'static str {
    "a.txt"
}

/// Takes one.
#[resource("files://{name}/text", scopes = ["files:read"])]
async fn one(name: String) -> String {
    name
}

struct Admin;

#[toolbox(scopes = ["admin"])]
impl Admin {
    /// Takes what the block takes.
    #[tool]
    async fn look(&self) -> &'static str {
        "Fine."
    }

    /// Takes one more.
    #[tool(scopes = "files:write")]
    async fn clear(&self) -> &'static str {
        "Gone."
    }
}

fn server(principal: Option<Principal>) -> ServerBuilder {
    let server = Server::builder("test", "1")
        .tool(write)
        .prompt(plan)
        .resource(all)
        .resource(one)
        .toolbox(Admin);
    match principal {
        Some(principal) => server.layer(MapRequestLayer::new(move |mut it: ServerRequest| {
            it.insert(principal.clone());
            it
        })),
        None => server,
    }
}

/// The scope that a caller without any is told, for each.
const TAKEN: [(&str, &str, &str); 6] = [
    ("tool", "write", "files:write"),
    ("tool", "look", "admin"),
    ("tool", "clear", "files:write admin"),
    ("prompt", "plan", "plans files:read"),
    ("resource", "files://all", "files:read"),
    ("resource", "files://x/text", "files:read"),
];

async fn ask(client: &Client, kind: &str, name: &str) -> Result<(), trunkline::client::CallError> {
    match kind {
        "tool" => client.call_tool(name, ()).await.map(drop),
        "prompt" => client.get_prompt(name, [("", ""); 0]).await.map(drop),
        _ => client.read_resource(name).await.map(drop),
    }
}

#[tokio::test]
async fn who_was_not_granted_them_is_told_all_of_them() {
    let server = server(Some(Principal::new("alice").scope("files"))).build();
    let client = Client::in_memory(&server).await.unwrap();
    for (kind, name, scope) in TAKEN {
        let error = ask(&client, kind, name).await.unwrap_err();
        let trunkline::client::CallError::Peer(error) = error else { panic!("{name}: {error}") };
        let told = format!("`{name}` takes the scope `{scope}`; ask for it and try again.");
        assert_eq!((error.code, &error.message), (-32600, &told));
        let data: Value = error.data.unwrap().to().unwrap();
        assert_eq!(data, json!({ "reason": "insufficient_scope", "scope": scope }));
    }
    assert_eq!(client.list_tools().await.unwrap().len(), 3, "they stay listed");
}

#[tokio::test]
async fn who_was_granted_all_of_them_may_call() {
    for (_, _, scopes) in TAKEN {
        let principal = scopes.split(' ').fold(Principal::new("alice"), Principal::scope);
        let server = server(Some(principal)).build();
        let client = Client::in_memory(&server).await.unwrap();
        for (kind, name, taken) in TAKEN {
            let has_all = taken.split(' ').all(|it| scopes.split(' ').any(|had| had == it));
            assert_eq!(ask(&client, kind, name).await.is_ok(), has_all, "{scopes}: {name}");
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_for_scopes_where_nobody_says_who_calls() {
    let client = Client::in_memory(&server(None).build()).await.unwrap();
    for (kind, name, _) in TAKEN {
        assert!(ask(&client, kind, name).await.is_ok(), "{name}");
    }
}

#[test]
fn what_cannot_be_a_scope_is_told_when_the_server_is_built() {
    let bad = tool("write", async || "Done.").scopes(["files write"]);
    let faults = Server::builder("test", "1").tool(bad).try_build().unwrap_err();
    let told = "`write` takes the scope `files write`, which nobody can be given: a scope is one \
                word of printable ASCII without `\"` and `\\`.";
    assert_eq!(faults.faults(), [told]);
}
