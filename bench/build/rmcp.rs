//! The travel server over stdio, as a user of rmcp writes it.

use std::error::Error;

use rmcp::handler::server::tool::{InputResponses, schema_for_output};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, InputRequest, InputRequests, InputRequiredResult,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt, elicit_safe, tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Travel.serve(stdio()).await?.waiting().await?;
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Trip {
    city: String,
    nights: u32,
}

#[derive(Serialize, JsonSchema)]
struct Booking {
    reference: String,
    total: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    value: bool,
}
elicit_safe!(Confirm);

#[derive(Clone)]
pub struct Travel;

#[tool_router]
impl Travel {
    #[tool(description = "Books a hotel.", output_schema = schema_for_output::<Booking>())]
    async fn book(
        &self,
        Parameters(Trip { city, nights }): Parameters<Trip>,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = format!("{nights} nights in {city}?");
        let is_modern =
            context.protocol_version().is_some_and(|it| it >= ProtocolVersion::V_2026_07_28);
        let confirm: Option<Confirm> = if is_modern {
            // The handler runs once more with the answer: what was told before is not told again.
            let Some(answer) = answers.as_ref().and_then(|it| it.get(KEY)) else {
                progress(&context, 1.0).await?;
                return Ok(ask(question)?.into());
            };
            let answer: ElicitResult = serde_json::from_value(answer.clone()).map_err(internal)?;
            let content = answer.content.filter(|_| answer.action == ElicitationAction::Accept);
            content.map(serde_json::from_value).transpose().map_err(internal)?
        } else {
            progress(&context, 1.0).await?;
            context.peer.elicit::<Confirm>(question).await.map_err(internal)?
        };
        if !confirm.is_some_and(|it| it.value) {
            return Ok(CallToolResult::structured_error("The user said no.".into()).into());
        }
        progress(&context, 2.0).await?;
        let booking = Booking { reference: "R-1".to_owned(), total: nights * 99 };
        Ok(CallToolResult::structured(serde_json::to_value(booking).map_err(internal)?).into())
    }
}

#[tool_handler(name = "travel", version = "1.0.0")]
impl ServerHandler for Travel {}

const KEY: &str = "confirm";

fn ask(message: String) -> Result<InputRequiredResult, ErrorData> {
    let requested_schema = ElicitationSchema::from_type::<Confirm>().map_err(internal)?;
    let form = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
    let mut requests = InputRequests::new();
    requests.insert(KEY.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
    Ok(InputRequiredResult::from_input_requests(requests))
}

async fn progress(context: &RequestContext<RoleServer>, done: f64) -> Result<(), ErrorData> {
    if let Some(token) = context.meta.get_progress_token() {
        let params = ProgressNotificationParam::new(token, done).with_total(2.0);
        context.peer.notify_progress(params).await.map_err(internal)?;
    }
    Ok(())
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
