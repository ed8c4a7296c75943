//! `Debug` output of plans, without anything that may be secret.

use std::fmt;

use trunkline_auth::url::shown;

use super::{AdminPlan, Inward, LoginClient, Outward, PluginPlan, Reach, TokenPlan};

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, inherit, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &Hidden(args.len()))
                .field("env", &Names(env))
                .field("inherit", inherit)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers, roots, auth } => f
                .debug_struct("Http")
                .field("url", &shown(url))
                .field("headers", &Names(headers))
                .field("roots", roots)
                .field("auth", auth)
                .finish(),
        }
    }
}

impl fmt::Debug for Outward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headers => f.write_str("Headers"),
            Self::Login => f.write_str("Login"),
            Self::PerUser(client) => f.debug_tuple("PerUser").field(client).finish(),
            Self::ClientCredentials { client_id, client_secret: _, issuer, scopes } => f
                .debug_struct("ClientCredentials")
                .field("client_id", client_id)
                .field("issuer", issuer)
                .field("scopes", scopes)
                .finish_non_exhaustive(),
        }
    }
}

/// `Debug` that shows these fields alone.
macro_rules! shown {
    ($($plan:ident: $($field:ident),+;)+) => {$(
        impl fmt::Debug for $plan {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut shown = f.debug_struct(stringify!($plan));
                $(shown.field(stringify!($field), &self.$field);)+
                shown.finish_non_exhaustive()
            }
        }
    )+};
}

shown! {
    Inward: tokens, issuers, resource, scopes, client;
    LoginClient: id, issuer, scopes;
    TokenPlan: name, tags;
}

impl fmt::Debug for AdminPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminPlan")
            .field("listen", &self.listen)
            .field("token", &self.token.as_ref().map(|_| Hidden(1)))
            .field("mtls", &self.mtls)
            .finish()
    }
}

impl fmt::Debug for PluginPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginPlan")
            .field("name", &self.name)
            .field("category", &self.category)
            .field("required", &self.required)
            .field("command", &self.command.first())
            .field("env", &Names(&self.env))
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The names of pairs, without their secret values.
struct Names<'a>(&'a [(String, String)]);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// A count in place of secrets.
struct Hidden(usize);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} hidden>", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn nothing_secret_is_in_debug_output() {
        let mut program = ServerPlan::stdio("a", "run");
        if let Reach::Stdio { args, env, .. } = &mut program.reach {
            args.push("--key=hunter2".to_owned());
            env.push(("KEY".to_owned(), "hunter2".to_owned()));
        }
        let mut remote = ServerPlan::http("b", "https://u:hunter2@b.example/mcp?key=hunter2");
        if let Reach::Http { headers, auth, .. } = &mut remote.reach {
            headers.push(("Authorization".to_owned(), "Bearer hunter2".to_owned()));
            *auth = Outward::ClientCredentials {
                client_id: "me".to_owned(),
                client_secret: "hunter2".to_owned(),
                issuer: "https://id.example".to_owned(),
                scopes: vec![],
            };
        }
        let mut gateway = GatewayPlan::default();
        let token = "hunter2".to_owned();
        gateway.auth.tokens = vec![TokenPlan { name: "alice".to_owned(), token, tags: vec![] }];
        gateway.auth.client.secret = Some("hunter2".to_owned());
        gateway.admin.token = Some("hunter2".to_owned());
        gateway.plugins = vec![PluginPlan {
            name: "p".to_owned(),
            category: Category::Audit,
            required: true,
            command: vec!["plugin".to_owned(), "hunter2".to_owned()],
            env: vec![("KEY".to_owned(), "hunter2".to_owned())],
            timeout: Duration::from_secs(1),
            config: serde_json::json!({ "key": "hunter2" }),
        }];
        let servers = [program, remote].map(|it| (it.name.clone(), Arc::new(it))).into();
        let said = format!("{:?}", Plan { servers, gateway, ..Plan::default() });
        assert!(!said.contains("hunter2"), "{said}");
        for told in ["\"KEY\"", "https://b.example/mcp", "\"Authorization\"", "\"alice\"", "\"me\""]
        {
            assert!(said.contains(told), "{told} is missing in {said}");
        }
    }
}
