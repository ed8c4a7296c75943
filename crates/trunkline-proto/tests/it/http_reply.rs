//! The HTTP status of an answer.

use trunkline_proto::Outgoing;
use trunkline_proto::http::Refusal;
use trunkline_proto::http::reply::status;
use trunkline_wire::json::Json;
use trunkline_wire::jsonrpc::{ErrorObject, Id, Message, Outcome};
use trunkline_wire::revision::Era;

fn response(outcome: Outcome) -> Outgoing {
    Outgoing::One(Message::Response { id: Some(Id::Number(1)), outcome })
}

#[test]
fn a_refusal_has_the_status_of_its_era() {
    // Code, then the status: refused in a session, refused without one, sent by a handler.
    for (code, stateful, stateless, handler) in [
        (-32700, 400, 400, (200, 200)),
        (-32600, 400, 400, (200, 200)),
        (-32601, 200, 404, (200, 200)),
        (-32602, 200, 400, (200, 200)),
        (-32603, 200, 200, (200, 200)),
        (-32020, 400, 400, (200, 400)),
        (-32021, 400, 400, (200, 400)),
        (-32022, 400, 400, (200, 400)),
        (-32002, 200, 200, (200, 200)),
        (1, 200, 200, (200, 200)),
    ] {
        let of = |era, dispatched| {
            status(&response(Err(ErrorObject::new(code, "x"))), era, dispatched).as_u16()
        };
        assert_eq!(of(Era::Stateful, false), stateful, "{code}");
        assert_eq!(of(Era::Stateless, false), stateless, "{code}");
        assert_eq!((of(Era::Stateful, true), of(Era::Stateless, true)), handler, "{code}");
    }
}

#[test]
fn too_much_is_said_so_if_nothing_was_done() {
    for era in [Era::Stateful, Era::Stateless] {
        let overloaded = || response(Err(ErrorObject::internal("overloaded", "x")));
        assert_eq!(status(&overloaded(), era, false), 429);
        assert_eq!(status(&overloaded(), era, true), 200);
        let timeout = response(Err(ErrorObject::internal("timeout", "x")));
        assert_eq!(status(&timeout, era, false), 200);
    }
}

#[test]
fn no_text_is_taken_for_too_much() {
    for data in [
        serde_json::json!({ "reason": "broken", "said": "overloaded" }),
        serde_json::json!({ "stderr": "\"overloaded\"", "causes": ["overloaded"] }),
        serde_json::json!("overloaded"),
    ] {
        let error = ErrorObject::new(-32603, "overloaded").with_data(Json::of(&data));
        for era in [Era::Stateful, Era::Stateless] {
            for dispatched in [false, true] {
                let answer = response(Err(error.clone()));
                assert_eq!(status(&answer, era, dispatched), 200, "{data} in {era:?}");
            }
        }
    }
}

#[test]
fn a_success_is_200() {
    let result = response(Ok(Json::of(&serde_json::json!({}))));
    let batch = Outgoing::Batch(vec![Message::Response {
        id: Some(Id::Number(1)),
        outcome: Err(ErrorObject::new(-32600, "x")),
    }]);
    for era in [Era::Stateful, Era::Stateless] {
        for dispatched in [false, true] {
            assert_eq!(status(&result, era, dispatched), 200);
            assert_eq!(status(&batch, era, dispatched), 200, "each of a batch speaks for itself");
        }
    }
}

#[test]
fn a_refusal_is_an_error_that_names_its_request_if_it_can() {
    let text = |refusal: Refusal| {
        let mut text = Vec::new();
        refusal.message().write(&mut text);
        String::from_utf8(text).unwrap()
    };
    let plain = Refusal::new(http::StatusCode::FORBIDDEN, "No.");
    assert_eq!(plain.status, 403);
    assert_eq!(text(plain), r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"No."}}"#);
    let named = Refusal::bad_request(ErrorObject::new(-32020, "No."), Some(Id::Number(7)));
    assert_eq!(named.status, 400);
    assert_eq!(text(named), r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"No."}}"#);
}
