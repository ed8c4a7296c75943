"""A server made with `fastmcp`, over HTTP at a free port; it says where on stderr."""

import logging
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.prompts import Message

server = FastMCP("fast", instructions="A server to try clients on.")


@server.tool
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@server.tool
def echo(text: str) -> str:
    """Says the text back."""
    return text


@server.tool
def fail(message: str) -> str:
    """Fails."""
    raise ToolError(message)


@server.tool
async def count(steps: int, context: Context) -> str:
    """Counts, and tells how far it is."""
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
    await context.info("counted")
    return "done"


@server.tool
async def greet(context: Context) -> str:
    """Asks for a name."""
    answer = await context.elicit("What is your name?", response_type=str)
    return f"Hello, {answer.data}!" if answer.action == "accept" else f"It was a {answer.action}."


@server.resource("fast://readme", mime_type="text/plain")
def readme() -> str:
    return "Made with FastMCP."


@server.resource("fast://square/{number}")
def square(number: int) -> str:
    return str(number * number)


@server.prompt
def review(code: str) -> list[Message]:
    """Asks for a review."""
    return [Message(f"Please review: {code}")]


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else "http"
    logging.disable(logging.CRITICAL)
    # Named as TCP, or asyncio leaves Nagle on.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    app = server.http_app(path=f"/{'sse' if kind == 'sse' else 'mcp'}", transport=kind)
    runner = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    print(f"Serving at http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    runner.run(sockets=[listener])
