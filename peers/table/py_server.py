"""The server of the table, with PyPI `mcp` 2.x, over stdio, in both eras."""

import logging
import warnings
from typing import Annotated

import mcp_types as types
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import UrlElicitationRequiredError
from words import LEVELS, PAGE, PROMPT, QUESTION, Name, said

server = MCPServer("table", version="1.0.0")
NOTE = "table://py"
version = 1
is_visited = True
subscribed: set[str] = set()


@server.tool(structured_output=False)
async def ask(context: Context) -> str:
    return said(await context.elicit(QUESTION, Name))


@server.tool(structured_output=False)
async def visit(context: Context) -> str:
    return said(await context.elicit_url(**PAGE))


@server.tool(structured_output=False)
async def visit_first() -> str:
    global is_visited
    is_visited = not is_visited
    if is_visited:
        return "visited"
    raise UrlElicitationRequiredError([types.ElicitRequestURLParams(mode="url", **PAGE)])


@server.tool(structured_output=False)
async def sample(context: Context) -> str:
    return said(await context.session.create_message(PROMPT, max_tokens=10, related_request_id=context.request_id))


@server.tool(structured_output=False)
async def roots(context: Context) -> str:
    return said(await context.session.list_roots())


# In 2026-07-28 what a resolver asks is returned, and before that it is a request to the client.
async def name() -> Elicit[Name]:
    return Elicit(QUESTION, Name)


async def model() -> Sample:
    return Sample(PROMPT, max_tokens=10)


async def folders() -> ListRoots:
    return ListRoots()


@server.tool(structured_output=False)
async def ask_returned(it: Annotated[ElicitationResult[Name], Resolve(name)]) -> str:
    return said(it)


@server.tool(structured_output=False)
async def sample_returned(it: Annotated[types.CreateMessageResult, Resolve(model)]) -> str:
    return said(it)


@server.tool(structured_output=False)
async def roots_returned(it: Annotated[types.ListRootsResult, Resolve(folders)]) -> str:
    return said(it)


@server.tool(structured_output=False)
async def log(context: Context) -> str:
    for level in LEVELS:
        await context.log(level, f"a {level}", logger_name="table")
    return "logged"


@server.tool(structured_output=False)
async def progress(context: Context) -> str:
    for step in (1, 2, 3):
        await context.report_progress(step, 3, f"step {step}")
    return "done"


@server.resource(NOTE)
def note() -> str:
    return f"version {version}"


@server.tool(structured_output=False)
async def touch(context: Context) -> str:
    global version
    version += 1
    await context.notify_resource_updated(NOTE)
    if NOTE in subscribed:
        await context.session.send_resource_updated(NOTE)
    return "touched"


@server.tool(structured_output=False)
async def work() -> str:
    return "worked"


async def subscribe(_context: object, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(_context: object, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.discard(str(params.uri))
    return types.EmptyResult()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    # `MCPServer` has subscriptions in 2026-07-28 alone; for older revisions the server below it has them.
    inner = server._lowlevel_server
    inner.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    inner.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
    server.run()
