//! Every range with its neighbours, every spelling, every sentence.

use std::net::IpAddr;

use super::Class::Public;
use super::{Guard, Host, Reach, class, host_of};
use crate::fetch::FetchError;

/// A row is a range: what lies before it, its first and its last address, what lies behind it.
const RANGES: &str = "
    Unspecified 0.0.0.0 0.255.255.255 | Public 1.0.0.0
    Public 9.255.255.255 | Private 10.0.0.0 10.255.255.255 | Public 11.0.0.0
    Public 100.63.255.255 | Private 100.64.0.0 100.127.255.255 | Public 100.128.0.0
    Private 100.100.100.199 | Metadata 100.100.100.200 | Private 100.100.100.201
    Public 126.255.255.255 | Loopback 127.0.0.0 127.255.255.255 | Public 128.0.0.0
    Public 168.63.129.15 | Metadata 168.63.129.16 | Public 168.63.129.17
    Public 169.253.255.255 | LinkLocal 169.254.0.0 169.254.255.255 | Public 169.255.0.0
    Public 172.15.255.255 | Private 172.16.0.0 172.31.255.255 | Public 172.32.0.0
    Public 191.255.255.255 | Reserved 192.0.0.0 192.0.0.255 | Public 192.0.1.0
    Reserved 192.0.0.191 | Metadata 192.0.0.192 | Reserved 192.0.0.193
    Public 192.0.1.255 | Reserved 192.0.2.0 192.0.2.255 | Public 192.0.3.0
    Public 192.88.98.255 | Reserved 192.88.99.0 192.88.99.255 | Public 192.88.100.0
    Public 192.167.255.255 | Private 192.168.0.0 192.168.255.255 | Public 192.169.0.0
    Public 198.17.255.255 | Private 198.18.0.0 198.19.255.255 | Public 198.20.0.0
    Public 198.51.99.255 | Reserved 198.51.100.0 198.51.100.255 | Public 198.51.101.0
    Public 203.0.112.255 | Reserved 203.0.113.0 203.0.113.255 | Public 203.0.114.0
    Public 223.255.255.255 | Multicast 224.0.0.0 239.255.255.255 | Reserved 240.0.0.0
    Multicast 239.255.255.255 | Reserved 240.0.0.0 255.255.255.255
    Unspecified :: | Loopback ::1
    Loopback ::1 | Reserved ::2
    Reserved ::2 ::ffff:ffff | Reserved ::1:0:0
    Reserved ::fffe:ffff:ffff | Private ::ffff:10.0.0.0 ::ffff:10.255.255.255 | Public ::ffff:11.0.0.0
    Public ::ffff:168.63.129.15 | Metadata ::ffff:168.63.129.16 ::ffff:a83f:8110 | Reserved ::1:0:0:0
    Reserved 64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff | Loopback 64:ff9b::7f00:0 64:ff9b::7fff:ffff | Reserved 64:ff9b::1:0:0
    Reserved 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Public 2000:: 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved 2001::
    Public 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved 2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff | Public 2001:200::
    Public 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff | Reserved 2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff | Public 2001:db9::
    Public 2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved 2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Public 2003::
    Public 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved 3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff | Public 3fff:1000::
    Public 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved 4000:: fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Private fc00::
    Reserved fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Private fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved fe00::
    Private fd00:ec2::253 | Metadata fd00:ec2::254 | Private fd00:ec2::255
    Private fd20:ce::253 | Metadata fd20:ce::254 | Private fd20:ce::255
    Reserved fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff | LinkLocal fe80:: febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Reserved fec0::
    Reserved feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff | Multicast ff00:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
";

#[test]
fn every_range_begins_and_ends_where_it_should() {
    for part in RANGES.lines().flat_map(|row| row.split('|')) {
        let mut words = part.split_whitespace();
        let expected = words.next().unwrap_or_default();
        for address in words {
            assert_eq!(format!("{:?}", class(ip(address))), expected, "{address}");
        }
    }
}

#[test]
fn an_address_is_read_however_it_is_written() {
    for (spellings, expected) in [
        (
            &[
                "127.0.0.1",
                "127.0.0.1.",
                "127.1",
                "127.0.1",
                "2130706433",
                "0x7f000001",
                "0X7F000001",
                "0x7f.1",
                "0x7f.0x0.0x0.0x1",
                "017700000001",
                "0177.0.0.1",
                "0177.0.0.01",
                "00000177.0.0.1",
                "0x000000007f.0.0.1",
            ][..],
            "127.0.0.1",
        ),
        (&["0", "0.0", "0.0.0", "0x0", "00", "0.0.0.0"], "0.0.0.0"),
        (
            &["255.255.255.255", "4294967295", "0xffffffff", "255.16777215", "255.255.65535"],
            "255.255.255.255",
        ),
        (&["1.2.3.4", "1.2.772", "1.131844", "16909060"], "1.2.3.4"),
        (&["[::1]", "::1", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0.0.0.1]"], "::1"),
        (&["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:7F00:0001]"], "::ffff:7f00:1"),
    ] {
        for spelling in spellings {
            assert_eq!(Host::parse(spelling), Ok(Host::Address(ip(expected))), "{spelling}");
        }
    }
}

#[test]
fn a_name_is_read_as_a_name() {
    let label = "a".repeat(49);
    let longest = [&*label; 5].join(".") + ".ab";
    assert_eq!(longest.len(), 252);
    let longest = format!("b{longest}");
    for (text, expected) in [
        ("id.example", "id.example"),
        ("ID.Example.", "id.example"),
        ("localhost.", "localhost"),
        ("my_host-1", "my_host-1"),
        ("7f3a2b1c", "7f3a2b1c"),
        ("1.2.3.4.com", "1.2.3.4.com"),
        ("0xg", "0xg"),
        ("127.0.0.1.nip.io", "127.0.0.1.nip.io"),
        (&*longest, &*longest),
    ] {
        assert_eq!(Host::parse(text), Ok(Host::Name(expected.to_owned())), "{text}");
    }
}

#[test]
fn what_resolvers_do_not_agree_upon_is_refused() {
    let too_long = format!("{}.ab", [&*"a".repeat(49); 5].join(".")) + "cd";
    assert_eq!(too_long.len(), 254);
    for text in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a..",
        "256.0.0.1",
        "0.0.0.256",
        "1.2.65536",
        "1.16777216",
        "4294967296",
        "0x100000000",
        "99999999999999999999",
        "1.2.3.4.5",
        "1.2.3.4.0x5",
        "08",
        "0x",
        "1.0X",
        "a.0x7f",
        "1.b.3",
        "0x7g.1",
        "１２７.0.0.1",
        "127。0。0。1",
        "127.0.0.1%00",
        "%31%32%37.0.0.1",
        "ⓛocalhost",
        "bücher.example",
        "a b",
        "a\u{0}",
        "a/b",
        "a@b",
        "[::1",
        "::1]",
        "[]",
        "[127.0.0.1]",
        "[fe80::1%25eth0]",
        "fe80::1%eth0",
        "[::ffff:0x7f.1]",
        "a:80",
        &too_long,
    ] {
        let Err(FetchError::Forbidden(why)) = Host::parse(text) else { panic!("{text} is read") };
        assert!(why.contains("` is no host that can be reached. Give a name"), "{why}");
    }
}

#[test]
fn a_guard_lets_through_what_its_reach_is() {
    let places = [
        ("8.8.8.8", Reach::Public),
        ("192.168.1.1", Reach::Private),
        ("fd00::1", Reach::Private),
        ("127.0.0.1", Reach::Local),
        ("localhost", Reach::Local),
        ("LOCALHOST.", Reach::Local),
        ("a.localhost", Reach::Local),
        ("169.254.169.254", Reach::Anywhere),
        ("100.100.100.200", Reach::Anywhere),
        ("0.0.0.0", Reach::Anywhere),
        ("224.0.0.1", Reach::Anywhere),
        ("240.0.0.1", Reach::Anywhere),
        ("notlocalhost", Reach::Public),
        ("localhost.example", Reach::Public),
        ("id.example", Reach::Public),
    ];
    let reaches = [Reach::Public, Reach::Private, Reach::Local, Reach::Anywhere];
    for (place, needed) in places {
        for reach in reaches {
            let guard = Guard::new(reach);
            let is_let = reach >= needed;
            assert_eq!(guard.check_host(place).is_ok(), is_let, "{place} with {reach:?}");
            if let Ok(address) = place.parse() {
                assert_eq!(guard.check("a", address).is_ok(), is_let, "{place} with {reach:?}");
            }
        }
    }
}

#[test]
fn what_is_allowed_is_never_less_than_before() {
    let guard = Guard::new(Reach::Private);
    assert_eq!(guard.allow(Reach::Public), guard);
    assert_eq!(guard.allow(Reach::Local), Guard::new(Reach::Local));
}

#[test]
fn a_server_may_send_us_where_it_is_itself() {
    for (url, expected) in [
        ("http://localhost:3000/mcp", Reach::Local),
        ("http://LOCALHOST./mcp", Reach::Local),
        ("http://mcp.localhost", Reach::Local),
        ("http://127.0.0.1/mcp", Reach::Local),
        ("http://2130706433:80", Reach::Local),
        ("http://[::1]:3000/mcp", Reach::Local),
        ("http://[::ffff:127.0.0.1]/", Reach::Local),
        ("https://10.0.0.1/", Reach::Private),
        ("https://[fd00::1]/", Reach::Private),
        ("https://user:pass@192.168.0.1:8443/", Reach::Private),
        ("http://keycloak:8080/mcp", Reach::Private),
        ("https://mcp.corp", Reach::Private),
        ("https://mcp.home", Reach::Private),
        ("https://mcp.home.arpa", Reach::Private),
        ("https://mcp.internal", Reach::Private),
        ("https://mcp.intranet", Reach::Private),
        ("https://mcp.lan", Reach::Private),
        ("https://mcp.LOCAL", Reach::Private),
        ("https://mcp.localdomain", Reach::Private),
        ("https://mcp.private", Reach::Private),
        ("https://mcp.example/", Reach::Public),
        ("https://mcplan.example", Reach::Public),
        ("https://8.8.8.8/", Reach::Public),
        ("https://169.254.169.254/", Reach::Public),
        ("https://0.0.0.0/", Reach::Public),
        ("https://localhost@mcp.example/", Reach::Public),
        ("https://mcp.example?@localhost", Reach::Public),
        ("https://mcp.example#@localhost", Reach::Public),
        ("https://mcp.example\\@localhost", Reach::Public),
        ("localhost", Reach::Public),
        ("https://", Reach::Public),
    ] {
        assert_eq!(Guard::for_server(url), Guard::new(expected), "{url}");
    }
}

#[test]
fn the_host_of_a_url_is_found() {
    for (url, expected) in [
        ("https://a.example:1/b", Some("a.example")),
        ("https://[::1]:1/b", Some("[::1]")),
        ("https://[::1", Some("[")),
        ("a.example", None),
    ] {
        assert_eq!(host_of(url), expected, "{url}");
    }
}

#[test]
fn a_refusal_says_what_is_there_and_what_to_do() {
    let guard = Guard::new(Reach::Public);
    let ask =
        "requests may not be sent there by what a server says. Ask the operator of the server";
    let here = "an address of this machine";
    let if_yours = ", or allow addresses of this machine if it is yours";
    for (host, what, advice) in [
        (
            "10.0.0.1",
            "an address of a private network",
            ", or allow private addresses if it is yours",
        ),
        ("0x7f.1", here, if_yours),
        ("localhost", here, if_yours),
        ("169.254.169.254", "a link-local address", ""),
        ("168.63.129.16", "an address where a cloud hands out credentials", ""),
        ("0.0.0.0", "an unspecified address", ""),
        ("[ff02::1]", "a multicast address", ""),
        ("[2002::]", "a reserved address", ""),
    ] {
        let why = guard.check_host(host).unwrap_err();
        let expected = format!("`{host}` is {what}: {ask}{advice}.");
        assert_eq!(why, FetchError::Forbidden(expected));
    }
    let why = guard.check("id.example", ip("169.254.169.254")).unwrap_err();
    let expected =
        format!("`id.example` leads to `169.254.169.254`, which is a link-local address: {ask}.");
    assert_eq!(why, FetchError::Forbidden(expected));
    assert_eq!(Public.to_string(), "a public address");
}

#[test]
fn a_refusal_repeats_nothing_that_could_mislead() {
    let why = Host::parse(&format!("a\u{1b}[2J`{}", "b".repeat(300))).unwrap_err().to_string();
    assert!(why.starts_with(&format!("`a[2J{}` is no host", "b".repeat(249))), "{why}");
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}
