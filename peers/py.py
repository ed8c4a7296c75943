"""The PyPI client `mcp` (the 2.x line) against the server whose command line is given."""

import logging
import sys
import warnings
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import mcp.client.session as session_module
import mcp_types as types
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from check import Checks, Exchanges, Inbox, check_sessions, equal, serve, text
from demo import LEGACY, MODERN, Conversation, Person, asks_are_refused


class TaskHandle(types.Result):
    """A call that the server runs as a task (extension io.modelcontextprotocol/tasks)."""

    result_type: Literal["task"]
    task_id: str
    status: str
    ttl_ms: float | None = None
    poll_interval_ms: float | None = None


class TaskState(types.Result):
    """What `tasks/get` answers in that extension."""

    task_id: str
    status: str
    result: dict[str, Any] | None = None


class GetTask(types.GetTaskRequest):
    """`tasks/get`, whose task is named in the `Mcp-Name` header."""

    name_param = "taskId"


class Tasks(ClientExtension):
    """Follows a task to its end, and remembers which it followed."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self) -> None:
        self.followed: list[str] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskHandle, resolve=self.follow)]

    async def follow(self, handle: TaskHandle, context: ClaimContext) -> types.CallToolResult:
        self.followed.append(handle.task_id)
        while True:
            params = types.GetTaskRequestParams(task_id=handle.task_id)
            state = await context.session.send_request(GetTask(params=params), TaskState)
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.result)
            equal(state.status, "working")
            await anyio.sleep((handle.poll_interval_ms or 20) / 1000)


class Way:
    """How the server is reached: over stdio, over HTTP at `/mcp`, or over the pair at `/sse`."""

    def __init__(self, name: str, command: list[str], origin: str | None = None) -> None:
        self.name, self.command, self.origin = name, command, origin
        self.exchanges = Exchanges()

    def server(self) -> Any:
        self.exchanges = Exchanges()
        if self.name == "http":
            return streamable_http_client(f"{self.origin}/mcp", http_client=self.exchanges.client())
        if self.name == "sse":
            return sse_client(f"{self.origin}/sse", httpx_client_factory=self.exchanges.client)
        return StdioServerParameters(command=self.command[0], args=self.command[1:])


@asynccontextmanager
async def connect(way: Way, revision: str, mode: str, person: Person | None, **more: Any):
    """A client of one revision, and what it hears."""
    inbox = Inbox()
    # This client offers its newest handshake revision alone, and has no option for an older one.
    session_module.LATEST_HANDSHAKE_VERSION = revision if revision != MODERN else LEGACY[-1]
    answers = {}
    if person is not None:
        answers = {
            "elicitation_callback": person.elicit,
            "sampling_callback": person.sample,
            "list_roots_callback": person.roots,
        }
    client = Client(way.server(), mode=mode, message_handler=inbox.push, read_timeout_seconds=10, **answers, **more)
    with anyio.fail_after(60):
        async with client:
            yield client, inbox


async def tasks(checks: Checks, way: Way) -> None:
    """A call that the server runs as a task, because the client says it can follow one."""
    extension = Tasks()
    async with connect(way, MODERN, "auto", None, extensions=[extension]) as (client, _):

        async def work_as_a_task() -> None:
            equal(text(await client.call_tool("work", {"steps": 3})), "worked 3 steps")
            equal(len(extension.followed), 1)

        await checks.check("work as a task", work_as_a_task)


async def converse(checks: Checks, way: Way, revision: str, mode: str) -> None:
    """Everything, in one revision."""
    checks.prefix = f"py {way.name} {revision} {mode}" if revision != mode else f"py {way.name} {revision} pinned"

    async def conversation() -> None:
        person = Person()
        async with connect(way, revision, mode, person) as (client, inbox):
            talk = Conversation(checks, client, inbox, person, revision)
            if mode == MODERN:
                # Pinned, this client asks the server nothing about itself, so it is told to.
                raw = await client.session.send_discover(MODERN)
                client.session.adopt(types.DiscoverResult.model_validate(raw))
            await talk.all()
        if way.name == "http":
            await check_sessions(checks, way.exchanges, revision == MODERN)

    async def without_answers() -> None:
        async with connect(way, revision, mode, None) as (client, _):
            await checks.check("asks are refused to a client that cannot answer", lambda: asks_are_refused(client))

    await checks.check("connects and closes", conversation, 90)
    await checks.check("connects and closes without answers", without_answers, 30)


async def main(command: list[str], over: str) -> int:
    checks = Checks()
    handshakes = [(revision, "legacy") for revision in LEGACY]
    every = [*handshakes, (MODERN, MODERN), (MODERN, "auto")]

    async def run(way: Way, ways: list[tuple[str, str]]) -> None:
        for revision, mode in ways:
            await converse(checks, way, revision, mode)
        if ways == every:
            checks.prefix = f"py {way.name} {MODERN}"
            await checks.check("connects and closes with the tasks extension", lambda: tasks(checks, way), 30)

    if over == "--url":
        await run(Way("http", command, command[0].removesuffix("/mcp")), every)
    elif over == "--http":
        async with serve(command) as origin:
            await run(Way("http", command, origin), every)
            await run(Way("sse", command, origin), handshakes)
    else:
        await run(Way("stdio", command), every)
    return checks.end()


if __name__ == "__main__":
    over, words = "", sys.argv[1:]
    if words[:1] in (["--http"], ["--url"]):
        over, *words = words
    if not words:
        sys.exit("usage: python py.py [--http] COMMAND [ARG…] | --url URL")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sys.exit(anyio.run(main, words, over))
