"""The server of the table, with PyPI `fastmcp` 4.x, over stdio, in both eras; `--tasks` with its package for tasks."""

import logging
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
from fastmcp import Context, FastMCP
from mcp.shared.exceptions import UrlElicitationRequiredError
from words import FORM, LEVELS, PAGE, PROMPT, QUESTION, Name, said

# It says nothing but errors until it is told what its client wants to hear.
server = FastMCP("table", version="1.0.0", client_log_level="error")
HAS_TASKS = sys.argv[1:] == ["--tasks"]
NOTE = "table://fast-tasks" if HAS_TASKS else "table://fast"
version = 1
is_visited = True


@server.tool(output_schema=None)
async def ask(context: Context) -> str:
    return said(await context.elicit(QUESTION, response_type=Name))


@server.tool(output_schema=None)
async def visit(context: Context) -> str:
    return said(await context.session.elicit_url(**PAGE, related_request_id=context.request_id))


@server.tool(output_schema=None)
async def visit_first() -> str:
    global is_visited
    is_visited = not is_visited
    if is_visited:
        return "visited"
    raise UrlElicitationRequiredError([types.ElicitRequestURLParams(mode="url", **PAGE)])


@server.tool(output_schema=None)
async def sample(context: Context) -> str:
    return said(await context.session.create_message(PROMPT, max_tokens=10, related_request_id=context.request_id))


@server.tool(output_schema=None)
async def roots(context: Context) -> str:
    return said(await context.session.list_roots())


def returned(context: Context, question: Any) -> Any:
    """The question as an answer; the tool runs once more with what was answered."""
    given = (context.input_responses or {}).get("it")
    return types.InputRequiredResult(input_requests={"it": question}) if given is None else said(given)


@server.tool(output_schema=None)
async def ask_returned(context: Context) -> str | types.InputRequiredResult:
    params = types.ElicitRequestFormParams(message=QUESTION, requested_schema=FORM)
    return returned(context, types.ElicitRequest(params=params))


@server.tool(output_schema=None)
async def sample_returned(context: Context) -> str | types.InputRequiredResult:
    params = types.CreateMessageRequestParams(messages=PROMPT, max_tokens=10)
    return returned(context, types.CreateMessageRequest(params=params))


@server.tool(output_schema=None)
async def roots_returned(context: Context) -> str | types.InputRequiredResult:
    return returned(context, types.ListRootsRequest())


@server.tool(output_schema=None)
async def log(context: Context) -> str:
    for level in LEVELS:
        await context.log(f"a {level}", level, logger_name="table")
    return "logged"


@server.tool(output_schema=None)
async def progress(context: Context) -> str:
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "done"


@server.resource(NOTE)
def note() -> str:
    return f"version {version}"


@server.tool(output_schema=None)
async def touch(context: Context) -> str:
    global version
    version += 1
    await context.session.send_resource_updated(NOTE)
    return "touched"


if HAS_TASKS:
    from fastmcp_tasks import TasksExtension

    server.add_extension(TasksExtension())


@server.tool(output_schema=None, task=HAS_TASKS)
async def work() -> str:
    await anyio.sleep(0.3)
    return "worked"


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    server.run(show_banner=False)
