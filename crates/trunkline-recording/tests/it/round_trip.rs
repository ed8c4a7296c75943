//! Bytes → a recording → both players against each other → the same recording.

use trunkline_recording::as_client::{ClientPlayer, Next};
use trunkline_recording::as_server::ServerPlayer;
use trunkline_recording::compare::{Ignore, compare};
use trunkline_recording::line::Party;
use trunkline_recording::recorder::Recorder;
use trunkline_recording::recording::Recording;
use trunkline_recording::redact::Redactor;

use crate::value;

const CONVERSATION: &str = r#"
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25"}}
    > {"method":"notifications/initialized"}
    < {"id":"r","method":"roots/list"}
    > {"id":"r","result":{"roots":[]}}
    > {"id":1,"method":"tools/list"}
    < {"id":1,"result":{"tools":[{"name":"login","inputSchema":{"properties":{"password":{"format":"password"}}}}]}}
    > {"id":2,"method":"tools/call","params":{"name":"login","arguments":{"password":"hunter2"},"_meta":{"progressToken":2}}}
    < {"method":"notifications/progress","params":{"progressToken":2,"progress":1}}
    < {"id":"q","method":"elicitation/create","params":{"message":"Sure?"}}
    > {"id":"q","result":{"action":"accept"}}
    < {"id":2,"result":{"content":[{"type":"text","text":"hunter2 at 2026-11-17T12:00:00Z"}]}}
    > {"id":3,"method":"resources/read","params":{"uri":"x://1"}}
    < {"id":3,"error":{"code":-32002,"message":"No."}}
"#;

#[test]
fn a_recorded_client_and_a_recorded_server_say_the_same_again() {
    let (mut recorder, mut file) = (Recorder::new(Redactor::default(), None), Vec::new());
    for line in CONVERSATION.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (mark, json) = line.split_once(' ').unwrap();
        let by = if mark == ">" { Party::Client } else { Party::Server };
        let text = format!("{}\n", value(json));
        // In pieces, as a pipe may deliver them.
        for piece in text.as_bytes().chunks(7) {
            recorder.bytes(by, piece, 1, &mut file);
        }
    }
    let file = String::from_utf8(file).unwrap();
    assert!(!file.contains("hunter2"), "{file}");
    let recorded = Recording::read(&file).unwrap();

    let mut client = ClientPlayer::new(&recorded.conversations[0], false);
    let mut server = ServerPlayer::new(&recorded);
    assert_eq!(client.masked(), 1);
    loop {
        let mut to_server = match client.next(2) {
            Next::Send(message, _) | Next::SendLater(message, _) => vec![message],
            Next::Done => break,
            other => panic!("{other:?}: {:?} has no answer", client.unanswered()),
        };
        while let Some(message) = to_server.pop() {
            for output in server.receive(&message) {
                to_server.extend(client.receive(output.message, None, 2));
            }
        }
    }
    assert_eq!(server.remarks(), [] as [String; 0]);
    let found = compare(&recorded, &client.into_live().into(), &Ignore::default());
    assert!(found.equal, "{found:?}");
    assert_eq!((found.calls, found.definitions), (5, 1));
}
