"""The PyPI client `fastmcp` (the 4.x line) over HTTP against the server whose command line is given."""

import logging
import sys
import warnings
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp.client.session as session_module
import mcp_types as types
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp.client.subscriptions import listen

from check import Checks, Exchanges, Inbox, check_sessions, equal, serve, text
from demo import LEGACY, MODERN, Conversation, Person, asks_are_refused


class Plain:
    """A FastMCP client under the names that `mcp.Client` has: what it sends and hears is the same."""

    def __init__(self, client: Client) -> None:
        self.client, self.session = client, client.session
        self.list_tools, self.list_resources = client.list_tools_mcp, client.list_resources_mcp
        self.list_resource_templates, self.list_prompts = client.list_resource_templates_mcp, client.list_prompts_mcp
        self.read_resource, self.get_prompt = client.read_resource_mcp, client.get_prompt_mcp
        self.set_logging_level = client.set_logging_level
        self.subscribe_resource = self.session.subscribe_resource
        self.unsubscribe_resource = self.session.unsubscribe_resource

    @property
    def protocol_version(self) -> str | None:
        return self.client.protocol_version

    @property
    def server_info(self) -> types.Implementation | None:
        return self.client.server_info

    @property
    def server_capabilities(self) -> types.ServerCapabilities | None:
        return self.client.server_capabilities

    async def call_tool(
        self, name: str, arguments: dict[str, Any], meta: Any = None, progress_callback: Any = None
    ) -> types.CallToolResult:
        return await self.client.call_tool_mcp(name, arguments, progress_handler=progress_callback, meta=meta)

    async def complete(self, ref: Any, argument: dict[str, str]) -> types.CompleteResult:
        return await self.client.complete_mcp(ref, argument)

    async def send_ping(self) -> types.EmptyResult:
        equal(await self.client.ping(), True)
        return types.EmptyResult()

    def listen(self, **wanted: Any) -> Any:
        return listen(self.session, **wanted)


class Way:
    """How the server is reached: at `/mcp`, or by the pair at `/sse`."""

    def __init__(self, name: str, origin: str) -> None:
        self.name, self.origin = name, origin
        self.exchanges = Exchanges()

    def transport(self) -> Any:
        self.exchanges = Exchanges()
        if self.name == "sse":
            return SSETransport(f"{self.origin}/sse", httpx_client_factory=self.exchanges.client)
        return StreamableHttpTransport(f"{self.origin}/mcp", httpx_client_factory=self.exchanges.client)


@asynccontextmanager
async def connect(way: Way, revision: str, mode: str, person: Person | None):
    """A client of one revision, and what it hears."""
    inbox = Inbox()
    # This client offers its newest handshake revision alone, and has no option for an older one.
    session_module.LATEST_HANDSHAKE_VERSION = revision if revision != MODERN else LEGACY[-1]
    answers = {}
    if person is not None:

        async def elicit(_message: str, _response: Any, params: Any, context: Any) -> types.ElicitResult:
            return await person.elicit(context, params)

        async def sample(_messages: Any, params: Any, context: Any) -> types.CreateMessageResult:
            return await person.sample(context, params)

        roots = (await person.roots(None)).roots
        answers = {"elicitation_handler": elicit, "sampling_handler": sample, "roots": roots}
    client = Client(
        way.transport(), mode=mode, message_handler=inbox.push, log_handler=ignore, timeout=10, **answers
    )
    with anyio.fail_after(60):
        async with client:
            yield client, inbox


async def ignore(_message: Any) -> None:
    """What is logged comes to the inbox too."""


async def everyday(client: Client) -> None:
    """The methods that its users call, which unpack what came."""
    equal((await client.call_tool("sum", {"a": 1, "b": 2})).data.sum, 3)
    failed = await client.call_tool("fail", {"message": "no luck"}, raise_on_error=False)
    equal((failed.is_error, text(failed)), (True, "no luck"))
    equal([part.text for part in await client.read_resource("demo://greeting/Ada")], ["Hello, Ada!"])
    equal(len(await client.list_tools()), 16)


async def converse(checks: Checks, way: Way, revision: str, mode: str) -> None:
    """Everything, in one revision."""
    checks.prefix = f"fast {way.name} {revision} {mode}" if revision != mode else f"fast {way.name} {revision} pinned"

    async def conversation() -> None:
        person = Person()
        async with connect(way, revision, mode, person) as (client, inbox):
            if mode == MODERN:
                # Pinned, this client asks the server nothing about itself, so it is told to.
                raw = await client.session.send_discover(MODERN)
                client.session.adopt(types.DiscoverResult.model_validate(raw))
            await Conversation(checks, Plain(client), inbox, person, revision).all()
            if revision >= "2025-06-18":
                await checks.check("everyday", lambda: everyday(client))
        if way.name == "http":
            await check_sessions(checks, way.exchanges, revision == MODERN)

    async def without_answers() -> None:
        async with connect(way, revision, mode, None) as (client, _):
            await checks.check("asks are refused to a client that cannot answer", lambda: asks_are_refused(Plain(client)))

    await checks.check("connects and closes", conversation, 90)
    await checks.check("connects and closes without answers", without_answers, 30)


async def main(words: list[str]) -> int:
    checks = Checks()
    handshakes = [(revision, "legacy") for revision in LEGACY]

    async def run(way: Way, ways: list[tuple[str, str]]) -> None:
        for revision, mode in ways:
            await converse(checks, way, revision, mode)

    every = [*handshakes, (MODERN, MODERN), (MODERN, "auto")]
    if words[0] == "--url":
        await run(Way("http", words[1].removesuffix("/mcp")), every)
    else:
        async with serve(words) as origin:
            await run(Way("http", origin), every)
            await run(Way("sse", origin), handshakes)
    return checks.end()


if __name__ == "__main__":
    if sys.argv[1:] in ([], ["--url"]):
        sys.exit("usage: python fast.py COMMAND [ARG…] | --url URL")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sys.exit(anyio.run(main, sys.argv[1:]))
