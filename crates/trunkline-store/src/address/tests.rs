use super::*;

#[test]
fn an_address_is_shown_without_its_password() {
    for (text, shown) in [
        ("redis://localhost", "redis://localhost:6379"),
        ("redis://ann:s%40cret@cache:7000/2", "redis://cache:7000/2"),
        ("rediss://:secret@[::1]:6380", "rediss://[::1]:6380"),
        ("valkey://cache", "redis://cache:6379"),
        ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ("redis+sentinel://a,b:1,c/main", "redis+sentinel://a:26379,b:1,c:26379/main"),
        ("redis+sentinel://:pw@a/main/3", "redis+sentinel://a:26379/main/3"),
        ("rediss+cluster://a,b:7001", "rediss+cluster://a:6379,b:7001"),
    ] {
        let address = RedisAddress::parse(text).expect(text);
        assert_eq!(address.to_string(), shown, "{text}");
        assert_eq!(format!("{address:?}"), format!("RedisAddress({shown})"), "{text}");
    }
}

#[test]
fn credentials_are_percent_decoded() {
    let address = RedisAddress::parse("redis://an%3An:p%25w%2F@h").expect("an address");
    assert_eq!(address.user.as_deref(), Some("an:n"));
    assert_eq!(address.password.as_deref(), Some("p%w/"));
    let address = RedisAddress::parse("redis://:a@b@h").expect("the last @ ends it");
    assert_eq!((address.user, address.password.as_deref()), (None, Some("a@b")));
}

#[test]
fn a_wrong_address_is_explained_and_its_password_is_not_repeated() {
    for (text, why) in [
        ("localhost", "begins with `redis://`"),
        ("http://localhost", "begins with `redis://`"),
        ("redis+quorum://a", "The forms are"),
        ("redis://a,b", "Several hosts"),
        ("redis://", "not a host"),
        ("redis://h:port", "not a host"),
        ("redis://[::1", "not a host"),
        ("redis://h/one", "small whole number"),
        ("redis://h/-1", "small whole number"),
        ("redis+sentinel://a", "Name the primary"),
        ("redis+cluster://a/1", "database 0 alone"),
        ("redis+unix://relative", "redis+unix:///path"),
        ("rediss+unix:///s", "no TLS"),
        ("redis://:secret%zz@h", "percent-encoded"),
    ] {
        let refused = RedisAddress::parse(text).expect_err(text).to_string();
        assert!(refused.contains(why), "{text}: {refused}");
        assert!(!refused.contains("secret"), "{text}: {refused}");
    }
}
