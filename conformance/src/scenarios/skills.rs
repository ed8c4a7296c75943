//! Scenarios about skills: listed without being read, and not used unless they are what was promised.

use trunkline::client::Client;
use trunkline::model::SkillFiles;

use super::Failure;

/// Looks at the list, and at nothing else.
pub(super) async fn list(client: &Client) -> Result<(), Failure> {
    match client.list_skills().await?.is_empty() {
        true => Err(Failure::new("There are no skills.")),
        false => Ok(()),
    }
}

/// Loads every skill whole; stops at the first file that is not what its skill promised.
pub(super) async fn load(client: &Client) -> Result<(), Failure> {
    for skill in client.list_skills().await? {
        client.load_skill(&skill).await?;
        let SkillFiles::Listed(files) = &skill.resources else { continue };
        for file in files.iter().filter(|it| it.uri != skill.uri) {
            client.read_skill_file(&skill, &file.uri).await?;
        }
    }
    Ok(())
}
