"""The travel server, with PyPI `fastmcp` 4.x: over stdio, or with `--http` at a free port, which it says on stderr."""

import sys

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel

server = FastMCP("travel", version="1.0.0")
MODERN = "2026-07-28"
FORM = {"type": "object", "properties": {"value": {"type": "boolean"}}, "required": ["value"]}


class Booking(BaseModel):
    reference: str
    total: int


@server.tool(output_schema=Booking.model_json_schema())
async def book(city: str, nights: int, context: Context) -> Booking | types.InputRequiredResult:
    """Books a hotel."""
    question = f"{nights} nights in {city}?"
    # `context.elicit` refuses 2026-07-28, where the question is returned and the function runs once more.
    if context.request_context.protocol_version >= MODERN:
        given = (context.input_responses or {}).get("confirm")
        if given is None:
            await context.report_progress(1, 2)
            params = types.ElicitRequestFormParams(message=question, requested_schema=FORM)
            return types.InputRequiredResult(input_requests={"confirm": types.ElicitRequest(params=params)})
        is_confirmed = given.action == "accept" and bool(given.content["value"])
    else:
        await context.report_progress(1, 2)
        answer = await context.elicit(question, response_type=bool)
        is_confirmed = answer.action == "accept" and answer.data
    if not is_confirmed:
        raise ToolError("The user said no.")
    await context.report_progress(2, 2)
    return Booking(reference="R-1", total=nights * 99)


if __name__ == "__main__":
    if sys.argv[1:] == ["--http"]:
        from serve import serve

        serve(server.http_app(path="/mcp"))
    else:
        server.run(show_banner=False)
