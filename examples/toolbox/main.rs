//! How do I make the methods of a type into tools, prompts and resources?

use std::process::ExitCode;
use std::sync::Mutex;
use trunkline::{Json, Server, data, toolbox};

#[data]
#[derive(Clone)]
struct Book {
    title: String,
    shelf: String,
}

struct Library {
    books: Mutex<Vec<Book>>,
}

#[toolbox]
impl Library {
    /// Puts a book on a shelf.
    #[tool(idempotent)]
    async fn add(&self, book: Book) -> Json<Book> {
        self.books().push(book.clone());
        Json(book)
    }

    /// The titles on a shelf.
    #[resource("library://{shelf}", mime_type = "text/plain")]
    async fn shelf(&self, shelf: String) -> Option<String> {
        let books = self.books();
        let titles: Vec<_> =
            books.iter().filter(|it| it.shelf == shelf).map(|it| &*it.title).collect();
        (!titles.is_empty()).then(|| titles.join("\n"))
    }

    /// Asks for something to read.
    #[prompt(title = "What shall I read?")]
    async fn recommend(
        &self,
        /// What you are in the mood for.
        mood: Option<String>,
    ) -> String {
        let count = self.books().len();
        let mood = mood.unwrap_or_else(|| "any".to_owned());
        format!("Choose one of the {count} books in library:// for {mood} mood.")
    }

    /// Without an attribute it is a method like any other.
    fn books(&self) -> std::sync::MutexGuard<'_, Vec<Book>> {
        self.books.lock().expect("nobody panics in the library")
    }
}

fn main() -> ExitCode {
    let library = Library { books: Mutex::default() };
    Server::builder("toolbox", "1.0.0").toolbox(library).build().run()
}
