//! Somebody at a browser: cookies, forms and links.

use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use trunkline_testkit::peer::PATIENCE;

/// A browser with its cookies, by host.
#[derive(Default)]
pub(crate) struct Browser(BTreeMap<String, String>);

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: String,
    head: String,
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|it| it.split_once(": "));
        let mut found = fields.filter(|(it, _)| it.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    /// The link of a page that leads elsewhere.
    pub(crate) fn leads_to(&self) -> String {
        attribute(&self.body, "href").unwrap_or_else(|| panic!("It leads nowhere: {self:?}"))
    }
}

impl Browser {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) async fn get(&mut self, url: &str) -> Page {
        self.ask(url, "GET", "").await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &str) -> Page {
        self.ask(url, "POST", form).await
    }

    /// Opens a link, sends its form, and is these people at one authorization server after the other.
    pub(crate) async fn connect(&mut self, link: &str, form: &str, people: &[&str]) -> Page {
        let page = self.get(link).await;
        assert!(page.status == 200 && page.body.contains("<form"), "{page:?}");
        let mut page = self.post(link, form).await;
        for person in people {
            let back = self.approve(&page.leads_to(), person).await;
            page = self.get(&back).await;
        }
        page
    }

    /// Approves as somebody, and says where that leads.
    pub(crate) async fn approve(&mut self, url: &str, person: &str) -> String {
        let page = self.get(url).await;
        let ticket =
            page.body.split("name=\"ticket\"").nth(1).and_then(|it| attribute(it, "value"));
        let ticket = ticket.unwrap_or_else(|| panic!("Nobody is asked: {page:?}"));
        let action = attribute(page.body.split("<form").nth(1).unwrap(), "action").unwrap();
        let host = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let action = if action.starts_with("http") { action } else { format!("{host}{action}") };
        let form = format!("ticket={ticket}&scope=mcp&user={person}&decision=approve");
        let page = self.post(&action, &form).await;
        page.header("location").unwrap_or_else(|| panic!("{page:?}")).to_owned()
    }

    async fn ask(&mut self, url: &str, method: &str, form: &str) -> Page {
        let rest = url.strip_prefix("http://").expect("it is on this machine");
        let (host, path) = rest.split_at(rest.find('/').expect("it has a path"));
        let mut ask = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        if let Some(cookie) = self.0.get(host) {
            ask.push_str(&format!("Cookie: {cookie}\r\n"));
        }
        if method == "POST" {
            let kind = "application/x-www-form-urlencoded";
            let length = form.len();
            ask.push_str(&format!(
                "Origin: http://{host}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n"
            ));
        }
        let mut stream = TcpStream::connect(host).await.unwrap();
        stream.write_all(format!("{ask}\r\n{form}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("it answers").unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default();
        let page = Page { status, body: body.to_owned(), head: head.to_owned() };
        if let Some(cookie) = page.header("set-cookie").and_then(|it| it.split(';').next()) {
            self.0.insert(host.to_owned(), cookie.to_owned());
        }
        page
    }
}

fn attribute(text: &str, name: &str) -> Option<String> {
    let value = text.split(&format!("{name}=\"")).nth(1)?.split('"').next()?;
    Some(value.replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\""))
}
