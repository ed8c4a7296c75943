"""Checks into lines: one `ok NAME` or `FAILED NAME` each, and a count at the end."""

import logging
import subprocess
import sys
import warnings
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client import streamable_http
from mcp.shared.exceptions import MCPError


class Checks:
    """Runs checks one after the other, none longer than its time."""

    def __init__(self) -> None:
        self.prefix = ""
        self.passed = 0
        self.failed: list[str] = []

    async def check(self, name: str, body: Any, seconds: float = 10) -> None:
        """Runs one check. A check that fails does not stop the next."""
        full = f"{self.prefix} {name}"
        try:
            with anyio.fail_after(seconds):
                await body()
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.failed.append(full)
            print(f"FAILED {full}: {reason[:800]}")
        else:
            self.passed += 1
            print(f"ok {full}")

    def end(self) -> int:
        for name in self.failed:
            print(f"failed: {name}")
        print(f"{self.passed} passed, {len(self.failed)} failed")
        return 0 if self.passed and not self.failed else 1


class Inbox:
    """Notifications in the order they arrive, and a way to wait for one."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.arrived = anyio.Event()

    async def push(self, message: Any) -> None:
        self.items.append(message)
        self.arrived.set()
        self.arrived = anyio.Event()

    def methods(self) -> list[str]:
        return [getattr(item, "method", "") for item in self.items]

    async def next(self, method: str, seconds: float = 5) -> Any:
        with anyio.fail_after(seconds):
            while True:
                for item in self.items:
                    if getattr(item, "method", "") == method:
                        return item
                await self.arrived.wait()


class Exchanges:
    """An HTTP client that notes each exchange: its method, its status, the media type, the session, what it resumed."""

    def __init__(self) -> None:
        self.items: list[tuple[str, int, str, str | None, str | None]] = []
        # The client comes back at once, so that one which never stops is seen.
        streamable_http.DEFAULT_RECONNECTION_DELAY_MS = 1

    def client(self, **options: Any) -> httpx2.AsyncClient:
        options.setdefault("timeout", httpx2.Timeout(30, read=300))
        return httpx2.AsyncClient(event_hooks={"response": [self.note]}, **options)

    async def note(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0]
        asked = response.request.headers
        session, resumed = asked.get("mcp-session-id"), asked.get("last-event-id")
        self.items.append((response.request.method, response.status_code, kind, session, resumed))


async def kept_to_its_session(exchanges: Exchanges) -> None:
    """The first exchange opened a session, all others were in it, none was refused, and the last one ended it."""
    first, *rest = exchanges.items
    equal(first[3], None)
    session = rest[0][3]
    assert session, "no session was opened"
    equal([exchange for exchange in rest if exchange[3] != session], [])
    # The stream of the call that was cancelled is asked for twice more, and need not be there.
    equal([exchange for exchange in exchanges.items if exchange[1] >= 400 and exchange[4] is None], [])
    equal(len([exchange for exchange in exchanges.items if exchange[0] == "GET" and exchange[4] is None]), 1)
    again = [exchange for exchange in exchanges.items if exchange[4] is not None]
    assert len(again) <= 2, f"a stream that had ended was asked for {len(again)} times"
    kinds = {(method, kind) for method, _, kind, _, _ in exchanges.items}
    for wanted in [("GET", "text/event-stream"), ("POST", "application/json"), ("POST", "text/event-stream")]:
        assert wanted in kinds, f"no {wanted} among {kinds}"
    equal(rest[-1][:2], ("DELETE", 204))


async def needed_none(exchanges: Exchanges) -> None:
    """Every exchange was a POST that knew of no session."""
    equal([exchange for exchange in exchanges.items if exchange[0] != "POST" or exchange[3] is not None], [])
    kinds = {kind for _, status, kind, _, _ in exchanges.items if status == 200}
    equal(kinds, {"application/json", "text/event-stream"})


async def check_sessions(checks: Checks, exchanges: Exchanges, is_modern: bool) -> None:
    if is_modern:
        await checks.check("no exchange needed a session", lambda: needed_none(exchanges))
    else:
        await checks.check("every exchange kept to its session", lambda: kept_to_its_session(exchanges))


@asynccontextmanager
async def serve(command: list[str], *more: str):
    """Serves over HTTP what a command serves over stdio; its origin."""
    words = [*command, "--http", "127.0.0.1:0", *more]
    process = await anyio.open_process(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    origin: str | None = None
    found = anyio.Event()

    async def read() -> None:
        nonlocal origin
        said = ""
        # Read to the end, so that the server can always write.
        async for data in process.stderr:
            said += data.decode(errors="replace")
            if origin is None and "/mcp" in said:
                origin = said[said.index("http://") : said.index("/mcp")]
                found.set()
        found.set()

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        with anyio.fail_after(20):
            await found.wait()
        assert origin is not None, f"`{command[0]}` did not say where it listens"
        try:
            yield origin
        finally:
            process.terminate()
            with anyio.move_on_after(10, shield=True):
                await process.wait()
            if process.returncode is None:
                process.kill()
        equal(process.returncode, 0)


def start(main: Any, words: str, quiet: int = logging.WARNING) -> None:
    """Runs the `main` of a script that takes these words, and exits as it says."""
    if len(sys.argv) != 1 + len(words.split()):
        sys.exit(f"usage: python {sys.argv[0]} {words}")
    warnings.simplefilter("ignore")
    logging.disable(quiet)
    sys.exit(anyio.run(main, *sys.argv[1:]))


def equal(found: Any, expected: Any) -> None:
    assert found == expected, f"expected {expected!r}, got {found!r}"


def text(result: types.CallToolResult) -> str:
    """The text of a result that is one text block."""
    equal([block.type for block in result.content], ["text"])
    return result.content[0].text


async def code(awaitable: Any) -> int:
    """The code of the error that a request ends in."""
    try:
        result = await awaitable
    except MCPError as error:
        return error.code
    raise AssertionError(f"expected an error, got {result!r}")


async def refused(awaitable: Any) -> None:
    """The call ends in an error of either kind."""
    try:
        result = await awaitable
    except MCPError:
        return
    assert result.is_error, f"expected a refusal, got {result!r}"
