//! The kinds of questions, each to be awaited.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use trunkline_wire::json::Json;
use trunkline_wire::model::{
    CreateMessageParams, CreateMessageResult, ElicitAction, ElicitParams, ElicitResult,
    InputRequest, ListRootsResult, Root,
};

use super::{Answer, AskError, Key};
use crate::Context;
use crate::form::Form;

type Asking<T> = Pin<Box<dyn Future<Output = Result<T, AskError>> + Send>>;

/// A form for the user, to be awaited. Made by [`Context::ask`].
///
/// ```
/// use trunkline::{Answer, Context, ToolError};
///
/// async fn nights(cx: Context) -> Result<String, ToolError> {
///     Ok(match cx.ask::<u8>("How many nights?").key("nights").await? {
///         Answer::Accept(nights) => format!("{nights} nights."),
///         Answer::Decline | Answer::Cancel => "Perhaps another time.".to_owned(),
///     })
/// }
/// # let _ = trunkline::tool("nights", nights);
/// ```
#[must_use = "a question is asked when it is awaited"]
pub struct Ask<T> {
    context: Context,
    key: Key,
    message: String,
    answer: PhantomData<fn() -> T>,
}

impl<T> Ask<T> {
    pub(in crate::server) fn new(context: Context, message: String) -> Self {
        let key = context.next_question();
        Self { context, key, message, answer: PhantomData }
    }
}

impl<T: Form> IntoFuture for Ask<T> {
    type Output = Result<Answer<T>, AskError>;
    type IntoFuture = Asking<Answer<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let form = T::form();
            match self.context.form(self.key, self.message, form.to_json(), &form).await? {
                Answer::Accept(content) => {
                    T::read(&content).map(Answer::Accept).map_err(AskError::Answer)
                }
                Answer::Decline => Ok(Answer::Decline),
                Answer::Cancel => Ok(Answer::Cancel),
            }
        })
    }
}

/// A form with a schema made at run time, to be awaited. Made by [`Context::ask_form`].
///
/// ```
/// use trunkline::model::{EnumSchema, FormSchema};
/// use trunkline::{Context, ToolError};
///
/// async fn pick(cx: Context, colours: Vec<String>) -> Result<String, ToolError> {
///     let form = FormSchema::new().required("colour", EnumSchema::new(colours));
///     let answer = cx.ask_form("Which one?", form.to_json()).await?.accepted()?;
///     Ok(answer.get().to_owned())
/// }
/// # let _ = pick;
/// ```
#[must_use = "a question is asked when it is awaited"]
pub struct AskForm {
    context: Context,
    key: Key,
    message: String,
    form: Json,
}

impl IntoFuture for AskForm {
    type Output = Result<Answer<Json>, AskError>;
    type IntoFuture = Asking<Answer<Json>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let form = self.form;
            let check = crate::form::Check::new(&form).map_err(AskError::Invalid)?;
            match self.context.form(self.key, self.message, form, check.form()).await? {
                Answer::Accept(content) => {
                    let content = check.filled_in(&content).map_err(AskError::Answer)?;
                    Ok(Answer::Accept(Json::of(&content)))
                }
                other => Ok(other),
            }
        })
    }
}

/// A URL for the user to visit, to be awaited. Made by [`Context::ask_url`].
///
/// ```
/// use trunkline::{Context, ToolError};
///
/// async fn connect(cx: Context) -> Result<&'static str, ToolError> {
///     cx.ask_url("Please sign in.", "https://example.com/login").await?.accepted()?;
///     Ok("You are being connected.")
/// }
/// # let _ = trunkline::tool("connect", connect);
/// ```
#[must_use = "a question is asked when it is awaited"]
pub struct AskUrl {
    context: Context,
    key: Key,
    message: String,
    url: String,
}

impl AskUrl {
    pub(in crate::server) fn new(context: Context, message: String, url: String) -> Self {
        let key = context.next_question();
        Self { context, key, message, url }
    }
}

impl IntoFuture for AskUrl {
    type Output = Result<Answer<()>, AskError>;
    type IntoFuture = Asking<Answer<()>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let request = InputRequest::Elicit(ElicitParams::url(self.message, self.url));
            let result: ElicitResult = self.context.question(self.key, request).await?;
            Ok(match result.action {
                ElicitAction::Accept => Answer::Accept(()),
                ElicitAction::Decline => Answer::Decline,
                ElicitAction::Cancel => Answer::Cancel,
            })
        })
    }
}

/// A question to the client's model, to be awaited. Made by [`Context::sample`].
///
/// ```
/// use trunkline::model::{CreateMessageParams, SamplingMessage};
/// use trunkline::{Context, ToolError};
///
/// async fn poem(cx: Context) -> Result<String, ToolError> {
///     let params = CreateMessageParams::new(vec![SamplingMessage::user("A poem, please.")], 200);
///     Ok(cx.sample(params).await?.text())
/// }
/// # let _ = trunkline::tool("poem", poem);
/// ```
#[must_use = "a question is asked when it is awaited"]
pub struct AskModel {
    context: Context,
    key: Key,
    params: CreateMessageParams,
}

impl AskModel {
    pub(in crate::server) fn new(context: Context, params: CreateMessageParams) -> Self {
        let key = context.next_question();
        Self { context, key, params }
    }
}

impl IntoFuture for AskModel {
    type Output = Result<CreateMessageResult, AskError>;
    type IntoFuture = Asking<CreateMessageResult>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.params.check().map_err(|fault| AskError::Invalid(fault.to_string()))?;
            self.context.question(self.key, InputRequest::Sample(Box::new(self.params))).await
        })
    }
}

/// A request for the client's roots, to be awaited. Made by [`Context::roots`].
///
/// ```
/// use trunkline::{Context, ToolError};
///
/// async fn count(cx: Context) -> Result<String, ToolError> {
///     Ok(format!("{} folders", cx.roots().await?.len()))
/// }
/// # let _ = trunkline::tool("count", count);
/// ```
#[must_use = "a question is asked when it is awaited"]
pub struct AskRoots {
    context: Context,
    key: Key,
}

impl AskRoots {
    pub(in crate::server) fn new(context: Context) -> Self {
        let key = context.next_question();
        Self { context, key }
    }
}

impl IntoFuture for AskRoots {
    type Output = Result<Vec<Root>, AskError>;
    type IntoFuture = Asking<Vec<Root>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let result: ListRootsResult =
                self.context.question(self.key, InputRequest::Roots).await?;
            Ok(result.roots)
        })
    }
}

macro_rules! named {
    ($($Ask:ident $(<$T:ident>)?),*) => { $(
        impl $(<$T>)? $Ask $(<$T>)? {
            /// Names the question. The default name is the question's position in the handler. A
            /// second question of the same name in one call is an [`AskError::Invalid`]. A client
            /// that knows the name may answer before it is asked.
            pub fn key(mut self, key: impl Into<String>) -> Self {
                self.key = Key { text: key.into(), is_chosen: true };
                self
            }
        }
    )* };
}

named! { Ask<T>, AskForm, AskUrl, AskModel, AskRoots }

impl Context {
    /// Asks the user to fill in a form whose schema is only known at run time: the JSON of a
    /// [`FormSchema`](trunkline_wire::model::FormSchema), or one written by hand. The answer is
    /// checked against it.
    ///
    /// ```
    /// use trunkline::{Context, ToolError, serde_json::json};
    ///
    /// async fn pick(cx: Context) -> Result<String, ToolError> {
    ///     let form = json!({
    ///         "type": "object",
    ///         "properties": { "colour": { "type": "string", "enum": ["red", "blue"] } },
    ///     });
    ///     Ok(cx.ask_form("Which colour?", form).await?.accepted()?.get().to_owned())
    /// }
    /// # let _ = trunkline::tool("pick", pick);
    /// ```
    pub fn ask_form(&self, message: impl Into<String>, form: impl Into<Json>) -> AskForm {
        let key = self.next_question();
        AskForm { context: self.clone(), key, message: message.into(), form: form.into() }
    }
}
