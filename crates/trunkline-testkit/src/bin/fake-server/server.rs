//! Messages into answers: the revision's handshake, the lists, and calls handed on to the tools.

use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

use crate::ask;
use crate::out::{self, error};
use crate::process::{CAPABILITIES, SUBSCRIPTION, Server};
use crate::tools;

impl Server {
    /// Takes one message; what takes time is answered later, from a thread.
    pub(crate) fn hear(self: &Arc<Server>, message: Value) {
        let id = &message["id"];
        match (message["method"].as_str(), id.is_null()) {
            (Some(method), false) => self.request(id, method, &message["params"]),
            (Some(method), true) => self.notification(method, &message["params"]),
            (None, false) => self.answered(id, message.clone()),
            (None, true) => self.journal.write("garbage", json!({ "message": message })),
        }
    }

    fn notification(self: &Arc<Server>, method: &str, params: &Value) {
        if method == "notifications/initialized" {
            self.opened();
        }
        let is_about_roots =
            ["notifications/initialized", "notifications/roots/list_changed"].contains(&method);
        if is_about_roots && self.options.asks_at_start {
            ask::keep_roots(self);
        }
        if method == "notifications/cancelled" {
            let id = &params["requestId"];
            let mut state = self.state();
            let listens = state.listens.len();
            state.listens.retain(|(listen, _)| listen != id);
            if state.listens.len() == listens {
                state.cancelled.insert(id.to_string());
            }
        }
        self.journal.write("notification", json!({ "method": method, "params": params }));
    }

    fn answered(&self, id: &Value, message: Value) {
        let waiting = id.as_u64().and_then(|id| self.state().asked.remove(&id));
        self.journal.write("answered", json!({ "id": id, "expected": waiting.is_some() }));
        let mut state = self.state();
        if state.keeps.is_some() && state.keeps == id.as_u64() {
            state.roots = Some(message["result"]["roots"].clone());
        }
        drop(state);
        if let Some(waiting) = waiting {
            // Whoever asked may have been given up meanwhile.
            let _ = waiting.send(message);
        }
    }

    fn request(self: &Arc<Server>, id: &Value, method: &str, params: &Value) {
        if self.options.exit_on.iter().any(|it| it == method) {
            self.journal.exit(1)
        }
        if self.options.hang_on.iter().any(|it| it == method) {
            return self.journal.write("hang", json!({ "id": id, "method": method }));
        }
        if method == "tools/call" {
            let (name, arguments) = (&params["name"], &params["arguments"]);
            let meta = &params["_meta"];
            let fields = json!({ "id": id, "tool": name, "arguments": arguments, "meta": meta });
            self.journal.write("call", fields);
        } else if method == "initialize" {
            let fields = json!({
                "id": id, "protocolVersion": params["protocolVersion"],
                "capabilities": params["capabilities"], "clientInfo": params["clientInfo"],
            });
            self.journal.write("initialize", fields);
        } else {
            self.journal.write("request", json!({ "id": id, "method": method }));
        }
        let outcome = match self.misfit(method, params) {
            Some(error) => Err(error),
            None if method == "tools/call" => return tools::call(self, id, params),
            None if method == "subscriptions/listen" => return self.listen(id, params),
            None => self.outcome(method, params),
        };
        self.finish(id, outcome);
        if method == "tools/list" && self.options.announces.after_lists {
            self.announce();
        }
    }

    /// The fault of a request in this revision, apart from its method and params.
    fn misfit(&self, method: &str, params: &Value) -> Option<Value> {
        if method == "initialize" && self.options.also.is_some() {
            self.opens_session();
        }
        let is_handshake = ["initialize", "ping", "logging/setLevel"].contains(&method)
            || ["resources/subscribe", "resources/unsubscribe"].contains(&method);
        let is_modern = ["server/discover", "subscriptions/listen"].contains(&method);
        if !self.is_stateless() {
            return is_modern.then(|| error(-32601, "Method not found"));
        }
        let claimed = &params["_meta"][VERSION];
        if method == "initialize" || (claimed.is_string() && claimed != &self.options.revision) {
            let mut refusal = error(-32022, "Unsupported protocol version");
            let requested = if claimed.is_string() { claimed } else { &params["protocolVersion"] };
            refusal["data"] =
                json!({ "supported": [self.options.revision], "requested": requested });
            return Some(refusal);
        }
        if !claimed.is_string() || !params["_meta"][CAPABILITIES].is_object() {
            return Some(error(-32602, "The envelope is incomplete"));
        }
        is_handshake.then(|| error(-32601, "Method not found"))
    }

    fn instructing(&self, mut result: Value) -> Value {
        if let Some(text) = &self.options.instructions {
            result["instructions"] = text.as_str().into();
        }
        result
    }

    fn outcome(&self, method: &str, params: &Value) -> Result<Value, Value> {
        match method {
            "initialize" => {
                self.state().capabilities = params["capabilities"].clone();
                Ok(self.instructing(json!({
                    "protocolVersion": self.revision(),
                    "capabilities": self.capabilities(),
                    "serverInfo": self.info(),
                })))
            }
            "server/discover" => Ok(self.cacheable(self.instructing(json!({
                "supportedVersions": [self.options.revision],
                "capabilities": self.capabilities(),
            })))),
            "ping" | "logging/setLevel" => Ok(json!({})),
            "tools/list" => {
                let mut all = tools::list(&self.options)?;
                if self.options.lists_by_client && self.can_sample(params) {
                    all.push(json!({ "name": "extra", "inputSchema": { "type": "object" } }));
                }
                self.page("tools", all, params)
            }
            "resources/list" => self.page("resources", self.resources(), params),
            "resources/templates/list" => {
                let uri = format!("fake://{}/{{part}}", self.options.name);
                let template = json!({ "uriTemplate": uri, "name": "part" });
                self.page("resourceTemplates", vec![template], params)
            }
            "resources/read" => self.read(params["uri"].as_str().unwrap_or_default()),
            "resources/subscribe" | "resources/unsubscribe" => {
                let uri = params["uri"].as_str().unwrap_or_default();
                let mut state = self.state();
                match method {
                    "resources/subscribe" => state.subscribed.insert(uri.into()),
                    _ => state.subscribed.remove(uri),
                };
                Ok(json!({}))
            }
            "prompts/list" => self.page("prompts", prompts(), params),
            "prompts/get" => get_prompt(params),
            "completion/complete" => {
                let begun = params["argument"]["value"].as_str().unwrap_or_default();
                let values: Vec<String> = ["a", "b"].map(|end| format!("{begun}{end}")).into();
                Ok(json!({ "completion": { "values": values, "total": 2, "hasMore": false } }))
            }
            _ => Err(error(-32601, "Method not found")),
        }
    }

    fn can_sample(&self, params: &Value) -> bool {
        match self.is_stateless() {
            true => params["_meta"][CAPABILITIES]["sampling"].is_object(),
            false => self.state().capabilities["sampling"].is_object(),
        }
    }

    /// The client is there: from now on it may be told.
    fn opened(self: &Arc<Server>) {
        if self.options.announces.at_start {
            self.announce();
        }
        if let Some(every) = self.options.announces.every {
            let server = Arc::clone(self);
            thread::spawn(move || {
                loop {
                    thread::sleep(every); // the sleep is the subject
                    server.announce();
                }
            });
        }
    }

    /// Says that the tools have changed, though they have not.
    fn announce(&self) {
        self.journal.write("announced", json!({}));
        self.tools_changed();
    }

    fn listen(self: &Arc<Server>, id: &Value, params: &Value) {
        let filter = params["notifications"].clone();
        let meta = json!({ SUBSCRIPTION: id });
        self.state().listens.push((id.clone(), filter.clone()));
        out::notify(
            "notifications/subscriptions/acknowledged",
            json!({ "_meta": meta, "notifications": filter }),
        );
        self.opened();
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({
            "tools": { "listChanged": self.options.may_announce() },
            "resources": { "subscribe": true },
            "prompts": {},
            "logging": {},
        });
        if self.revision() > "2024-11-05" {
            capabilities["completions"] = json!({});
        }
        capabilities
    }

    fn resources(&self) -> Vec<Value> {
        let uri = |part: &str| format!("fake://{}/{part}", self.options.name);
        let resource = |part: &str| json!({ "uri": uri(part), "name": part });
        ["one", "two"].map(resource).into()
    }

    fn read(&self, uri: &str) -> Result<Value, Value> {
        if !self.resources().iter().any(|resource| resource["uri"] == uri) {
            let code = if self.is_stateless() { -32602 } else { -32002 };
            return Err(error(code, "Resource not found"));
        }
        let text = format!("what {uri} says");
        let contents = json!([{ "uri": uri, "mimeType": "text/plain", "text": text }]);
        Ok(self.cacheable(json!({ "contents": contents })))
    }

    /// The part of a list that the cursor asks for.
    fn page(&self, key: &str, all: Vec<Value>, params: &Value) -> Result<Value, Value> {
        let from = match &params["cursor"] {
            Value::Null => 0,
            cursor => cursor
                .as_str()
                .and_then(|cursor| cursor.strip_prefix("from-")?.parse::<usize>().ok())
                .filter(|from| *from < all.len())
                .ok_or_else(|| error(-32602, "Invalid cursor"))?,
        };
        let to = self.options.page.map_or(all.len(), |page| all.len().min(from + page));
        let mut result = json!({ key: all[from..to] });
        if to < all.len() {
            result["nextCursor"] = format!("from-{to}").into();
        }
        Ok(self.cacheable(result))
    }

    fn cacheable(&self, mut result: Value) -> Value {
        if self.is_stateless() {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "public".into();
        }
        result
    }
}

fn prompts() -> Vec<Value> {
    let who = json!([{ "name": "who", "required": true }]);
    vec![json!({ "name": "greet", "arguments": who }), json!({ "name": "plain" })]
}

fn get_prompt(params: &Value) -> Result<Value, Value> {
    let text = match params["name"].as_str() {
        Some("greet") => {
            format!("Greet {}.", params["arguments"]["who"].as_str().unwrap_or("nobody"))
        }
        Some("plain") => "Say something.".to_owned(),
        _ => return Err(error(-32602, "Unknown prompt")),
    };
    let content = json!({ "type": "text", "text": text });
    Ok(json!({ "messages": [{ "role": "user", "content": content }] }))
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
