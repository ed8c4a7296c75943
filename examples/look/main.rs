//! What does a server offer? Start it with a command or a URL.

use trunkline::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder("look", "1.0.0").connect_args(std::env::args().skip(1)).await?;
    let name = client.server_info().map_or("a server without a name", |it| it.name.as_str());
    println!("{name} speaks {}", client.revision());
    let offers = client.server_capabilities();
    if offers.tools.is_some() {
        for tool in client.list_tools().await? {
            println!("tool {}: {}", tool.name, tool.description.unwrap_or_default());
        }
    }
    if offers.prompts.is_some() {
        for prompt in client.list_prompts().await? {
            println!("prompt {}: {}", prompt.name, prompt.description.unwrap_or_default());
        }
    }
    if offers.resources.is_some() {
        for resource in client.list_resources().await? {
            println!("resource {}", resource.uri);
        }
        for template in client.list_resource_templates().await? {
            println!("template {}", template.uri_template);
        }
    }
    client.close().await;
    Ok(())
}
