use super::faults;

#[test]
fn unknown_keys_are_faults_where_it_is_decided_who_may_do_what() {
    let rules = "mcpServers: {}\ngateway: { rules: [{ principal: ann, effect: allow }] }";
    assert_eq!(
        faults(rules),
        [
            "2:22 gateway.rules[0].principal: `principal` means nothing here. | Did you mean `principals`?"
        ]
    );
    let token = "mcpServers: {}\ngateway: { auth: { tokens: [{ name: a, token: long-enough-to-be-one, tag: [b] }] } }";
    assert_eq!(
        faults(token),
        ["2:70 gateway.auth.tokens[0].tag: `tag` means nothing here. | Did you mean `tags`?"]
    );
}
