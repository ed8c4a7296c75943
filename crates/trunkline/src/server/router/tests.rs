//! A caller that may not read a resource is not told of its changes either.

use trunkline_auth::Principal;
use trunkline_proto::{Attached, Call};

use crate::caller::call_by;
use crate::schemars::JsonSchema;
use crate::serde::Deserialize;
use crate::{Args, Server, resource, template};

#[derive(Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Path {
    path: String,
}

fn who(scopes: &[&str]) -> Call {
    let scopes = scopes.iter();
    let who = scopes.fold(Principal::new("alice"), |who, scope| who.scope(*scope));
    call_by(&Attached::new(who), None)
}

fn any(uri: &str) -> crate::server::TemplateEntry {
    template(uri, "any", async |_: Args<Path>| "Anything.")
}

#[test]
fn a_resource_decides_alone_who_hears_of_it() {
    let server = Server::builder("files", "1.0.0")
        .resource(resource("file:///pay", "pay", async || "Much.").scopes(["pay"]))
        .resource(resource("file:///open", "open", async || "Open."))
        .resource(resource("file:///hidden", "hidden", async || "?").visible(|_| false))
        .resource(any("file:///{path}"))
        .resource(any("plan:///{path}").scopes(["plan"]))
        .resource(any("secret:///{path}").visible(|_| false))
        .build();
    for (uri, scopes, expected) in [
        ("file:///pay", &[][..], false),
        ("file:///pay", &["plan"], false),
        ("file:///pay", &["pay"], true),
        ("file:///open", &[], true),
        // Reads of this URI go to the template.
        ("file:///hidden", &[], true),
        ("file:///other", &[], true),
        ("plan:///a", &[], false),
        ("plan:///a", &["plan"], true),
        ("secret:///a", &["plan"], false),
        ("nobody:///knows", &[], true),
    ] {
        let heard = server.inner().may_hear_of(uri, &who(scopes));
        assert_eq!(heard, expected, "{uri} with {scopes:?}");
    }
}

#[test]
fn the_first_template_that_is_seen_decides_where_there_is_no_resource() {
    let server = Server::builder("files", "1.0.0")
        .resource(any("file:///pay/{path}").scopes(["pay"]))
        .resource(any("file:///{+path}"))
        .build();
    assert!(!server.inner().may_hear_of("file:///pay/a", &who(&[])));
    assert!(server.inner().may_hear_of("file:///pay/a", &who(&["pay"])));
    assert!(server.inner().may_hear_of("file:///free/a", &who(&[])));
}
