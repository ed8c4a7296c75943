//! The travel server over stdio, with rmcp but without its feature `elicitation`: the question is put together by hand.

use std::error::Error;

use rmcp::handler::server::tool::{InputResponses, schema_for_output};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientResult, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult, ProgressNotificationParam, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
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

#[derive(Clone)]
struct Travel;

#[tool_router]
impl Travel {
    #[tool(description = "Books a hotel.", output_schema = schema_for_output::<Booking>())]
    async fn book(
        &self,
        Parameters(Trip { city, nights }): Parameters<Trip>,
        InputResponses(answers): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let question = ask(format!("{nights} nights in {city}?"))?;
        let is_modern =
            context.protocol_version().is_some_and(|it| it >= ProtocolVersion::V_2026_07_28);
        let answer: ElicitResult = if is_modern {
            // The handler runs once more with the answer: what was told before is not told again.
            let Some(answer) = answers.as_ref().and_then(|it| it.get(KEY)) else {
                progress(&context, 1.0).await?;
                let mut requests = InputRequests::new();
                let request = InputRequest::Elicitation(ElicitRequest::new(question));
                requests.insert(KEY.to_owned(), request);
                return Ok(InputRequiredResult::from_input_requests(requests).into());
            };
            serde_json::from_value(answer.clone()).map_err(internal)?
        } else {
            progress(&context, 1.0).await?;
            let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
            match context.peer.send_request(request).await.map_err(internal)? {
                ClientResult::ElicitResult(answer) => answer,
                _ => return Err(internal("The client answered something else.")),
            }
        };
        let content = answer.content.filter(|_| answer.action == ElicitationAction::Accept);
        let confirm: Option<Confirm> =
            content.map(serde_json::from_value).transpose().map_err(internal)?;
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

fn ask(message: String) -> Result<ElicitRequestParams, ErrorData> {
    let requested_schema = ElicitationSchema::from_type::<Confirm>().map_err(internal)?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
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
