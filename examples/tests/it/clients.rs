//! The examples that are clients, with the examples that are servers.

use crate::common::{Served, example, printed};

#[test]
fn a_host_asks_before_it_acts() {
    let seen = printed(example!("host"), &[example!("hello"), example!("travel-server")]);
    let expected = [
        "greeter.hello",
        "travel.book",
        "Hello, Ada!",
        "May I call `travel.book`? Yes.",
        "May I let `travel` ask you? Yes.",
        "travel: 1 nights in Oslo for 99 euros? Yes.",
        "\"Oslo-1\"",
        "The call was not allowed: Nothing is ever deleted.",
    ];
    let seen: Vec<_> = seen.lines().collect();
    assert_eq!(seen, expected);
}

#[test]
fn what_a_server_offers_is_listed() {
    let expected = "toolbox speaks 2026-07-28\n\
        tool add: Puts a book on a shelf.\n\
        prompt recommend: Asks for something to read.\n\
        template library://{shelf}\n";
    assert_eq!(printed(example!("look"), &[example!("toolbox")]), expected);
    let served = Served::start(example!("hello"), &["--http", "127.0.0.1:0"]);
    let expected = "hello speaks 2026-07-28\ntool hello: Says hello.\n";
    assert_eq!(printed(example!("look"), &[&served.url]), expected);
}
