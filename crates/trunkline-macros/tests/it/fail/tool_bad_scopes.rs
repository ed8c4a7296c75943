/// Writes.
#[trunkline::tool(scopes = ["files:write", "files read", "files:write"])]
async fn write() -> String {
    String::new()
}

/// Reads.
#[trunkline::prompt(scopes)]
async fn read() -> String {
    String::new()
}

/// Is there.
#[trunkline::resource("test://it", scopes = [])]
async fn it() -> String {
    String::new()
}

struct Files;

#[trunkline::toolbox(scopes = "ä", scope = "files")]
impl Files {
    /// Lists the files.
    #[tool]
    async fn list(&self) -> String {
        String::new()
    }
}

struct More;

#[trunkline::toolbox(scopes = "say \"please\"")]
impl More {
    /// Lists the files.
    #[tool(scopes = 7)]
    async fn list(&self) -> String {
        String::new()
    }
}

fn main() {
    let server = trunkline::Server::builder("a", "1").toolbox(More);
    let _ = (server, write::entry(), read::entry(), it::entry());
}
