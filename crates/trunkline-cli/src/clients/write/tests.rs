//! Every client's file, with the entry added and removed.

use super::super::fixtures;
use super::*;

fn stdio() -> Ours {
    let args = ["serve", "--stdio", "--config", "/users/a/trunkline.yaml"];
    Ours::Stdio {
        command: "/usr/bin/trunkline".to_owned(),
        args: args.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn http() -> Ours {
    Ours::Http { url: "http://127.0.0.1:7373/mcp".to_owned() }
}

#[test]
fn every_file_goes_there_and_back_to_the_byte() {
    for (client, text) in fixtures::ALL {
        for ours in [stdio(), http()] {
            assert!(!is_connected(client, text).unwrap());
            let with = connect(client, text, &ours).unwrap();
            assert_ne!(with, text, "{client:?}");
            assert!(is_connected(client, &with).unwrap());
            assert_eq!(connect(client, &with, &ours).unwrap(), with, "{client:?}: once is enough");
            assert_eq!(disconnect(client, &with, None).unwrap().unwrap(), text, "{client:?}");
            assert_eq!(disconnect(client, text, None).unwrap(), None);
            // Every original line is kept.
            let mut rest = with.lines();
            for line in text.lines().filter(|_| text.contains('\n')) {
                let is_it = |it: &str| it.replace(',', "") == line.replace(',', "");
                assert!(rest.any(is_it), "{client:?}: {line}");
            }
        }
    }
}

#[test]
fn originals_are_taken_out_and_come_back_to_the_byte() {
    for (client, text) in fixtures::ALL {
        let names = others(client, text).unwrap();
        let less = without(client, text, &names).unwrap();
        assert_eq!(others(client, &less).unwrap(), [""; 0], "{client:?}");
        let with = connect(client, &less, &stdio()).unwrap();
        assert_eq!(disconnect(client, &with, Some(text)).unwrap().unwrap(), text, "{client:?}");
    }
}

#[test]
fn one_kind_of_entry_takes_the_place_of_the_other() {
    for (client, text) in fixtures::ALL {
        let first = connect(client, text, &stdio()).unwrap();
        let second = connect(client, &first, &http()).unwrap();
        assert!(second.contains("7373") && !second.contains("--stdio"), "{second}");
        assert_eq!(disconnect(client, &second, None).unwrap().unwrap(), text, "{client:?}");
    }
}

#[test]
fn every_client_gets_the_words_it_knows() {
    let word = |client, ours: &Ours| {
        let text = connect(client, "", ours).unwrap();
        match client {
            Client::Codex => text,
            _ => jsonc::parse(&text).unwrap().unwrap().to_value().to_string(),
        }
    };
    let command = r#""args":["serve","--stdio","--config","/users/a/trunkline.yaml"],"command":"/usr/bin/trunkline""#;
    let url = "http://127.0.0.1:7373/mcp";
    for (client, by_command, by_url) in [
        (Client::ClaudeDesktop, format!(r#"{{"mcpServers":{{"trunkline":{{{command}}}}}}}"#), None),
        (
            Client::ClaudeCode,
            format!(r#"{{"mcpServers":{{"trunkline":{{{command}}}}}}}"#),
            Some(format!(r#"{{"mcpServers":{{"trunkline":{{"type":"http","url":"{url}"}}}}}}"#)),
        ),
        (
            Client::Cursor,
            format!(r#"{{"mcpServers":{{"trunkline":{{{command}}}}}}}"#),
            Some(format!(r#"{{"mcpServers":{{"trunkline":{{"url":"{url}"}}}}}}"#)),
        ),
        (
            Client::VsCode,
            format!(r#"{{"servers":{{"trunkline":{{{command},"type":"stdio"}}}}}}"#),
            Some(format!(r#"{{"servers":{{"trunkline":{{"type":"http","url":"{url}"}}}}}}"#)),
        ),
        (
            Client::Windsurf,
            format!(r#"{{"mcpServers":{{"trunkline":{{{command}}}}}}}"#),
            Some(format!(r#"{{"mcpServers":{{"trunkline":{{"serverUrl":"{url}"}}}}}}"#)),
        ),
        (
            Client::Zed,
            format!(r#"{{"context_servers":{{"trunkline":{{{command}}}}}}}"#),
            Some(format!(r#"{{"context_servers":{{"trunkline":{{"url":"{url}"}}}}}}"#)),
        ),
        (
            Client::Codex,
            "[mcp_servers.trunkline]\ncommand = \"/usr/bin/trunkline\"\nargs = [\"serve\", \"--stdio\", \"--config\", \"/users/a/trunkline.yaml\"]\n".to_owned(),
            Some(format!("[mcp_servers.trunkline]\nurl = \"{url}\"\n")),
        ),
        (
            Client::Gemini,
            format!(r#"{{"mcpServers":{{"trunkline":{{{command}}}}}}}"#),
            Some(format!(r#"{{"mcpServers":{{"trunkline":{{"httpUrl":"{url}"}}}}}}"#)),
        ),
    ] {
        assert_eq!(word(client, &stdio()), by_command);
        assert_eq!(client.takes_url(), by_url.is_some());
        if let Some(by_url) = by_url {
            assert_eq!(word(client, &http()), by_url);
        }
    }
}

#[test]
fn what_was_before_comes_back_to_the_byte_where_it_cannot_be_guessed() {
    for before in ["{\n  \"a\": 1\n}\n", "{\n  \"mcpServers\": {\n  }\n}\n", "", "{}"] {
        let with = connect(Client::Cursor, before, &stdio()).unwrap();
        assert_eq!(
            disconnect(Client::Cursor, &with, Some(before)).unwrap().as_deref(),
            Some(before)
        );
    }
    // The file was changed since: only our entry is removed.
    let with = connect(Client::Cursor, "{}\n", &stdio()).unwrap();
    let changed = with.replacen("{\n", "{\n  \"new\": true,\n", 1);
    let found = disconnect(Client::Cursor, &changed, Some("{}\n")).unwrap().unwrap();
    assert_eq!(found, "{\n  \"new\": true,\n  \"mcpServers\": {}\n}\n");
}

#[test]
fn a_file_that_cannot_be_read_is_not_touched() {
    let found = connect(Client::Cursor, "{\n  \"mcpServers\": }\n", &stdio()).unwrap_err();
    assert_eq!(found.to_string(), "line 2, column 17: Here should be a value.");
    assert!(connect(Client::Codex, "[a\n", &stdio()).is_err());
    let found = connect(Client::Zed, "{\"context_servers\": 5}", &stdio()).unwrap_err();
    assert!(found.message.contains("no object"), "{found}");
    assert!(disconnect(Client::Zed, "{", None).is_err());
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused_and_never_harmed() {
    for (client, text) in fixtures::ALL {
        for end in (0..text.len()).filter(|it| text.is_char_boundary(*it)) {
            let cut = &text[..end];
            let Ok(with) = connect(client, cut, &stdio()) else { continue };
            let back = disconnect(client, &with, Some(cut)).unwrap();
            assert_eq!(back.as_deref(), Some(cut), "{client:?}");
            // Without a backup the entry is removed, and the rest can still be parsed.
            let back = disconnect(client, &with, None).unwrap().unwrap();
            assert!(!is_connected(client, &back).unwrap(), "{client:?}: {back}");
        }
    }
}
