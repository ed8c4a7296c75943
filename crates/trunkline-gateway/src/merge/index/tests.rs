use std::borrow::Borrow;
use std::collections::HashSet;

use trunkline_testkit::oracle::{self, Side};

use super::super::fixture::{Given, plan, server, tools};
use super::*;
use trunkline_wire::method::Method;

fn prefix(servers: &[Given]) -> Index {
    Index::build(Naming::Prefix, servers, false)
}

fn look(revision: Revision) -> Look<'static> {
    Look { revision, after: None, visible: None, seal: &|cursor| cursor.after.to_string() }
}

fn shown(index: &Index, kind: Kind) -> Vec<&str> {
    index.iter(kind).map(|(shown, _)| &**shown).collect()
}

/// `server own-name`
fn place(target: Option<&impl Borrow<Target>>) -> Option<String> {
    target.map(Borrow::borrow).map(|it| format!("{} {}", it.server, it.name))
}

fn resources(name: &str, uris: &[&str], templates: &[&str]) -> Given {
    let items: Vec<_> = uris.iter().map(|uri| Resource::new(*uri, "r")).collect();
    let families: Vec<_> = templates.iter().map(|it| ResourceTemplate::new(*it, "t")).collect();
    let items = format!(r#"{{"resources":{}}}"#, Json::of(&items));
    let families = format!(r#"{{"resourceTemplates":{}}}"#, Json::of(&families));
    let pages = [(Kind::Resources, &*items), (Kind::Templates, &*families)];
    server(name, Revision::V2025_11_25, &pages)
}

#[test]
fn tools_come_by_server_and_then_as_the_server_has_them() {
    let servers = [tools("time", &["now"]), tools("git", &["status", "log"])];
    let index = prefix(&servers);
    assert_eq!(shown(&index, Kind::Tools), ["git.status", "git.log", "time.now"]);
    assert_eq!(place(index.tool("git.log")).as_deref(), Some("git log"));
    assert_eq!(index.tool("log"), None);
    assert_eq!(index.shown_tool("git", "log").map(|it| &**it), Some("git.log"));
    assert_eq!(index.shown_tool("time", "log"), None);
    assert_eq!(index.servers().map(|it| &**it).collect::<Vec<_>>(), ["git", "time"]);

    let index = Index::build(Naming::Flat, &servers, false);
    assert_eq!(shown(&index, Kind::Tools), ["status", "log", "now"]);
    let index = Index::build(Naming::Prefix, &servers[..1], true);
    assert_eq!(shown(&index, Kind::Tools), ["now"]);
}

#[test]
fn hidden_tools_are_neither_listed_nor_found_and_renamed_ones_are_found_by_their_new_name() {
    let (_, lists) = tools("git", &["status", "log", "push"]);
    let mut plan = plan("git");
    plan.expose = Some(vec!["l*".to_owned(), "status".to_owned()]);
    plan.rename.insert("log".to_owned(), "history".to_owned());
    let index = prefix(&[(Arc::new(plan), lists)]);
    assert_eq!(shown(&index, Kind::Tools), ["git.status", "git.history"]);
    assert_eq!(place(index.tool("git.history")).as_deref(), Some("git log"));
    for hidden in ["git.push", "git.log", "push"] {
        assert_eq!(index.tool(hidden), None, "{hidden}");
    }
}

#[test]
fn prompts_are_named_like_tools() {
    let page = r#"{"prompts":[{"name":"review"},{"name":"two words"}]}"#;
    let index = prefix(&[server("git", Revision::V2025_06_18, &[(Kind::Prompts, page)])]);
    let names = shown(&index, Kind::Prompts);
    assert_eq!(names[0], "git.review");
    assert!(names[1].starts_with("git.two_words_"), "{names:?}");
    assert_eq!(place(index.prompt(names[1])).as_deref(), Some("git two words"));
    assert_eq!(&**index.shown_prompt("git", "two words").unwrap(), names[1]);
}

#[test]
fn each_revision_gets_the_members_it_has() {
    let page = r#"{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object","x":1.0},"outputSchema":{"type":"array"},"_meta":{"k/v":1.0}}]}"#;
    let index = prefix(&[server("s", Revision::V2026_07_28, &[(Kind::Tools, page)])]);
    for (revision, expected) in [
        (
            Revision::V2024_11_05,
            r#"{"tools":[{"name":"s.a","inputSchema":{"type":"object","x":1.0}}]}"#,
        ),
        (
            Revision::V2025_11_25,
            r#"{"tools":[{"name":"s.a","title":"A","inputSchema":{"type":"object","x":1.0},"outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]},"_meta":{"k/v":1.0}}]}"#,
        ),
        (
            Revision::V2026_07_28,
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"s.a","title":"A","inputSchema":{"type":"object","x":1.0},"outputSchema":{"type":"array"},"_meta":{"k/v":1.0}}]}"#,
        ),
    ] {
        assert_eq!(index.page(Kind::Tools, &look(revision)).unwrap().get(), expected);
    }
    for kind in [Kind::Prompts, Kind::Resources, Kind::Templates] {
        let page = index.page(kind, &look(Revision::V2025_06_18)).unwrap();
        assert_eq!(page.get(), format!(r#"{{"{}":[]}}"#, kind.member()));
    }
}

#[test]
fn every_page_is_what_the_revisions_schema_says() {
    let pages = [
        (
            Kind::Tools,
            r#"{"tools":[{"name":"a b","title":"A","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"string"},"annotations":{"readOnlyHint":true},"icons":[{"src":"https://example.com/a.png"}],"execution":{"taskSupport":"optional"},"_meta":{"k/v":1}}]}"#,
        ),
        (
            Kind::Prompts,
            r#"{"prompts":[{"name":"p","title":"P","arguments":[{"name":"x","title":"X","required":true}],"_meta":{}}]}"#,
        ),
        (
            Kind::Resources,
            r#"{"resources":[{"uri":"file:///a","name":"a","title":"A","size":3,"annotations":{"audience":["user"],"lastModified":"2025-01-12T15:00:58Z"}}]}"#,
        ),
        (
            Kind::Templates,
            r#"{"resourceTemplates":[{"uriTemplate":"file:///{x}","name":"x","title":"X"}]}"#,
        ),
    ];
    let servers = [
        server("old", Revision::V2025_11_25, &pages),
        server("new", Revision::V2026_07_28, &pages),
    ];
    let page = Page { size: 1, ..Page::default() };
    for index in [prefix(&servers), Index::with(Naming::Flat, &servers, false, page)] {
        for (kind, revision) in
            Kind::ALL.into_iter().flat_map(|kind| Revision::ALL.map(|revision| (kind, revision)))
        {
            let result = index.page(kind, &look(revision)).unwrap();
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let verdict =
                oracle::validate(&message, revision, Side::Server, Some(kind.method().name()));
            assert_eq!(verdict, Ok(()));
        }
    }
}

#[test]
fn pages_carry_server_info_and_ttl() {
    let page = Page {
        cache: CacheHint::public(5_000),
        // A value that looks like the place where the items go.
        server_info: Some(
            Json::parse(r#"{"name":"\"tools\":[]","tools":[],"version":"1"}"#).unwrap(),
        ),
        ..Page::default()
    };
    let index = Index::with(Naming::Prefix, &[tools("s", &["a"])], false, page);
    let new = index.page(Kind::Tools, &look(Revision::LATEST)).unwrap();
    assert_eq!(
        new.get(),
        r#"{"resultType":"complete","ttlMs":5000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"\"tools\":[]","tools":[],"version":"1"}},"tools":[{"name":"s.a","inputSchema":{"type":"object"}}]}"#
    );
    let old = index.page(Kind::Tools, &look(Revision::V2025_11_25)).unwrap();
    assert_eq!(old.get(), r#"{"tools":[{"name":"s.a","inputSchema":{"type":"object"}}]}"#);
}

/// Follows the cursors: the names, and the size of each page.
fn walk(index: &Index, visible: Option<&dyn Fn(&Target) -> bool>) -> (Vec<String>, Vec<usize>) {
    let (mut names, mut sizes, mut after) = (Vec::new(), Vec::new(), None::<Cursor>);
    loop {
        let look = Look {
            after: after.as_ref(),
            visible,
            seal: &|cursor| format!("\"tools\":[]{}", cursor.after),
            ..look(Revision::V2025_06_18)
        };
        let page: trunkline_wire::model::ListToolsResult =
            index.page(Kind::Tools, &look).unwrap().to().unwrap();
        sizes.push(page.tools.len());
        names.extend(page.tools.into_iter().map(|tool| tool.name));
        let Some(next) = page.next_cursor else { return (names, sizes) };
        let name = next.strip_prefix("\"tools\":[]").unwrap();
        after = Some(Cursor { kind: Kind::Tools, after: name.into() });
    }
}

#[test]
fn long_lists_come_in_pages_without_gaps() {
    let names: Vec<String> = (0..25).map(|at| format!("t{at:02}")).collect();
    let own: Vec<&str> = names.iter().map(|it| &**it).collect();
    let servers = [tools("a", &own), tools("b", &own)];
    let all: Vec<String> =
        ["a", "b"].iter().flat_map(|s| own.iter().map(move |it| format!("{s}.{it}"))).collect();
    for (size, bytes, sizes) in [
        (1_000, 1 << 20, vec![50]),
        (50, 1 << 20, vec![50]),
        (20, 1 << 20, vec![20, 20, 10]),
        (49, 1 << 20, vec![49, 1]),
        (0, 1 << 20, vec![1; 50]),
        (1_000, 100, vec![3; 16].into_iter().chain([2]).collect()),
    ] {
        let page = Page { size, bytes, ..Page::default() };
        let index = Index::with(Naming::Prefix, &servers, false, page);
        assert_eq!(walk(&index, None), (all.clone(), sizes.clone()), "{size} {bytes}");
        assert_eq!(walk(&index, Some(&|_| true)), (all.clone(), sizes), "{size} {bytes}");
        let only_b = |target: &Target| *target.server == *"b" && &*target.name != "t24";
        assert_eq!(walk(&index, Some(&only_b)).0, all[25..49], "the last page has no cursor");
    }
}

#[test]
fn a_cursor_outlives_changes_around_its_item_and_no_other() {
    let page = Page { size: 1, ..Page::default() };
    let index = |own: &[&str]| Index::with(Naming::Prefix, &[tools("s", own)], false, page.clone());
    let cursor = |kind| Cursor { kind, after: "s.b".into() };
    let next = |index: &Index, cursor: &Cursor| {
        index.page(Kind::Tools, &Look { after: Some(cursor), ..look(Revision::LATEST) })
    };
    let after = next(&index(&["x", "b", "c"]), &cursor(Kind::Tools)).unwrap();
    assert!(after.get().contains("s.c") && !after.get().contains("s.x"), "{after}");
    assert_eq!(next(&index(&["a", "c"]), &cursor(Kind::Tools)), Err(BadCursor));
    assert_eq!(next(&index(&["a", "b"]), &cursor(Kind::Prompts)), Err(BadCursor));
}

#[test]
fn hidden_items_are_not_on_a_page() {
    let index = prefix(&[tools("a", &["x", "y"]), tools("b", &["z"])]);
    let whole = index.page(Kind::Tools, &look(Revision::LATEST)).unwrap();
    assert_eq!(index.page(Kind::Tools, &look(Revision::LATEST)).unwrap(), whole);
    let visible = |target: &Target| &*target.name != "y";
    let part = Look { visible: Some(&visible), ..look(Revision::LATEST) };
    let part = index.page(Kind::Tools, &part).unwrap();
    assert!(
        part.get().contains("a.x") && part.get().contains("b.z") && !part.get().contains("a.y")
    );
    let none = Look { visible: Some(&|_| false), ..look(Revision::V2025_11_25) };
    assert_eq!(index.page(Kind::Tools, &none).unwrap().get(), r#"{"tools":[]}"#);
}

/// The servers that claim a URI.
fn claimed(index: &Index, uri: &str) -> String {
    index.claims(uri).iter().map(|it| it.server.to_string()).collect()
}

#[test]
fn a_uri_of_several_servers_belongs_to_none_and_all_can_be_reached() {
    let index = prefix(&[
        resources("b", &["file:///x", "file:///b"], &[]),
        resources("a", &["file:///x", "trunkline:b/file:///b"], &[]),
    ]);
    let expected = [
        "trunkline:a/file:///x",
        // A URI that looks like our long form is wrapped again.
        "trunkline:a/trunkline:b/file:///b",
        "trunkline:b/file:///x",
        "file:///b",
    ];
    assert_eq!(shown(&index, Kind::Resources), expected);
    for (uri, expected) in [
        ("trunkline:b/file:///x", "b file:///x"),
        ("trunkline:a/file:///x", "a file:///x"),
        ("file:///b", "b file:///b"),
        ("trunkline:b/file:///b", "b file:///b"),
        ("trunkline:a/trunkline:b/file:///b", "a trunkline:b/file:///b"),
    ] {
        let target = index.resource(uri);
        assert_eq!(place(target.as_ref()).as_deref(), Some(expected), "{uri}");
        assert!(matches!(target.unwrap().item, Item::Resource(_)), "{uri}");
    }
    assert_eq!(index.resource("file:///x"), None, "it is nobody's alone");
    assert_eq!(claimed(&index, "file:///x"), "ab");
    assert_eq!(index.resource("trunkline:b/else:1").unwrap().item, Item::Unlisted);
    assert_eq!(index.resource("trunkline:nobody/file:///x"), None);
    assert_eq!(index.resource("file:///nowhere"), None);
    for (server, own, expected) in [
        ("a", "file:///x", "trunkline:a/file:///x"),
        ("b", "file:///x", "trunkline:b/file:///x"),
        ("b", "file:///b", "file:///b"),
        ("b", "file:///b/part", "trunkline:b/file:///b/part"),
        ("a", "https://example.com/", "https://example.com/"),
        ("a", "trunkline:q/1", "trunkline:a/trunkline:q/1"),
    ] {
        let shown = index.shown_uri(server, own);
        assert_eq!(shown, expected);
        if let Some(target) = index.resource(&shown) {
            assert_eq!((&*target.server, &*target.name), (server, own), "and it leads back");
        }
    }
    let page = index.page(Kind::Resources, &look(Revision::V2025_11_25)).unwrap();
    assert!(page.get().contains(r#"{"uri":"trunkline:b/file:///x","name":"r"}"#), "{page}");
}

#[test]
fn a_server_that_sorts_first_gets_nothing_that_is_meant_for_another() {
    // `aaa` lists URIs of others, matches of their templates, and templates that match everything.
    let index = prefix(&[
        resources("aaa", &["db://users", "file:///x"], &["note://{+all}", "{+everything}"]),
        resources("db", &["db://list"], &["db://{table}"]),
        resources("files", &["file:///x", "file:///y"], &[]),
        resources("notes", &["note://1"], &["note://{name}"]),
    ]);
    for (uri, claims) in [
        ("db://users", "aaadb"),
        ("db://other", "db"),
        ("file:///x", "aaafiles"),
        ("file:///y", "files"),
        ("note://1", "aaanotes"),
        ("note://2", "aaanotes"),
        ("else://1", ""),
    ] {
        assert_eq!(claimed(&index, uri), claims, "{uri}");
    }
    let bare: Vec<_> = shown(&index, Kind::Resources)
        .into_iter()
        .filter(|it| !it.starts_with("trunkline:"))
        .collect();
    assert_eq!(bare, ["db://list", "file:///y"]);
    let bare = shown(&index, Kind::Templates);
    assert_eq!(
        bare,
        [
            "trunkline:aaa/note://{+all}",
            "trunkline:aaa/{+everything}",
            "db://{table}",
            "trunkline:notes/note://{name}"
        ]
    );
    let target = index.resource("trunkline:aaa/else://1").unwrap();
    assert!(matches!(target.item, Item::Template(_)), "by its own template, where it is named");
}

#[test]
fn a_selected_server_keeps_its_uris() {
    let servers = [resources("a", &["trunkline:b/x:1", "x:2"], &["x:{y}"])];
    let index = Index::build(Naming::Prefix, &servers, true);
    assert_eq!(shown(&index, Kind::Resources), ["trunkline:b/x:1", "x:2"]);
    assert_eq!(place(index.resource("trunkline:b/x:1").as_ref()).unwrap(), "a trunkline:b/x:1");
    assert_eq!(index.shown_uri("a", "trunkline:z/1"), "trunkline:z/1");
}

#[test]
fn templates_find_unlisted_uris() {
    let index = prefix(&[
        resources("a", &["db://listed"], &["db://{table}"]),
        resources("b", &[], &["db://{table}", "log://{+path}"]),
    ]);
    assert_eq!(
        shown(&index, Kind::Templates),
        ["trunkline:a/db://{table}", "trunkline:b/db://{table}", "log://{+path}"]
    );
    for (uri, expected) in [
        ("trunkline:a/db://users", "a db://users"),
        ("trunkline:b/db://users", "b db://users"),
        ("log://x/y", "b log://x/y"),
    ] {
        let target = index.resource(uri).unwrap();
        assert_eq!(place(Some(&target)).unwrap(), expected);
        assert!(matches!(target.item, Item::Template(_)), "{uri}");
    }
    assert_eq!(claimed(&index, "db://users"), "ab");
    let listed = index.resource("trunkline:a/db://listed").unwrap();
    assert!(matches!(listed.item, Item::Resource(_)));
    assert_eq!(index.shown_uri("a", "db://users"), "trunkline:a/db://users");
    assert_eq!(index.shown_uri("b", "log://users"), "log://users");
    let template = index.template("trunkline:b/db://{table}");
    assert_eq!(place(template).as_deref(), Some("b db://{table}"));
}

#[test]
fn an_unclaimed_uri_belongs_to_the_only_server_with_resources() {
    let several = prefix(&[resources("a", &["x:1"], &[]), resources("b", &[], &["y://{z}"])]);
    assert_eq!((several.only_server(), several.resource("x:2")), (None, None));
    let alone = prefix(&[resources("a", &[], &[])]);
    assert_eq!(alone.only_server().map(|it| &**it), Some("a"));
    assert_eq!(alone.shown_uri("a", "x:9"), "x:9");
}

const ANNOTATED: &str = r#"{"tools":[{"name":"q","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#;

#[test]
fn headers_are_for_servers_that_check_them() {
    let index = prefix(&[
        server("new", Revision::V2026_07_28, &[(Kind::Tools, ANNOTATED)]),
        server("old", Revision::V2025_11_25, &[(Kind::Tools, ANNOTATED)]),
    ]);
    let names = index.param_headers("new.q").unwrap().names().map(str::to_owned);
    assert_eq!(names.collect::<Vec<_>>(), ["mcp-param-region"]);
    assert_eq!(index.param_headers("old.q"), None);
    assert_eq!(index.param_headers("nobody.q"), None);
    let page: trunkline_wire::model::ListToolsResult =
        index.page(Kind::Tools, &look(Revision::LATEST)).unwrap().to().unwrap();
    let annotated: Vec<bool> =
        page.tools.iter().map(|it| it.input_schema.get().contains("x-mcp-header")).collect();
    assert_eq!(annotated, [true, false]);
    assert_eq!(
        page.tools[1].input_schema.get(),
        r#"{"type":"object","properties":{"region":{"type":"string"}}}"#
    );
}

#[test]
fn interfaces_of_tools_follow_their_resources() {
    let tool = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://w"}}}]}"#;
    let resource = r#"{"resources":[{"uri":"ui://w","name":"w"}]}"#;
    let pages = [(Kind::Tools, tool), (Kind::Resources, resource)];
    let servers = ["a", "b"].map(|name| server(name, Revision::V2025_11_25, &pages));
    let index = prefix(&servers);
    let page = index.page(Kind::Tools, &look(Revision::V2025_11_25)).unwrap();
    let target = index.resource("ui://trunkline/b/w").unwrap();
    assert_eq!((&*target.server, &*target.name), ("b", "ui://w"));
    for uri in ["ui://trunkline/a/w", "ui://trunkline/b/w"] {
        let member = format!(r#""resourceUri":"{uri}""#);
        assert_eq!(page.get().matches(&member).count(), 1, "{page}");
    }
}

#[test]
fn the_etag_changes_with_the_shown_list() {
    let servers = [tools("a", &["x"]), tools("b", &["y"])];
    let etag = |index: &Index| index.etag(Kind::Tools).to_owned();
    let first = etag(&prefix(&servers));
    assert_eq!(etag(&prefix(&[servers[1].clone(), servers[0].clone()])), first);
    let mut hidden = plan("a");
    hidden.expose = Some(Vec::new());
    let mut others = HashSet::from([first]);
    for index in [
        prefix(&servers[..1]),
        prefix(&[tools("a", &["x"]), tools("b", &["z"])]),
        prefix(&[(Arc::new(hidden), servers[0].1.clone()), servers[1].clone()]),
        Index::build(Naming::Flat, &servers, false),
    ] {
        assert!(others.insert(etag(&index)));
    }
    let prompts = |servers: &[Given]| prefix(servers).etag(Kind::Prompts).to_owned();
    assert_eq!(prompts(&servers), prompts(&[tools("a", &["q"]), servers[1].clone()]));
}

#[test]
fn kinds_know_their_methods() {
    for kind in Kind::ALL {
        assert_eq!(Kind::of_method(kind.method()), Some(kind));
        assert!(kind.changed().name().ends_with("list_changed"));
    }
    assert_eq!(Kind::of_method(Method::ToolsCall), None);
}
