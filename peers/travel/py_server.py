"""The travel server, with PyPI `mcp` 2.x: over stdio, or with `--http` at a free port, which it says on stderr."""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("travel", version="1.0.0")


class Confirm(BaseModel):
    value: bool


class Booking(BaseModel):
    reference: str
    total: int


async def ask(city: str, nights: int) -> Elicit[Confirm]:
    return Elicit(f"{nights} nights in {city}?", Confirm)


# Its questions are asked before the body runs, so both steps come after the answer.
@server.tool()
async def book(city: str, nights: int, context: Context, confirm: Annotated[Confirm, Resolve(ask)]) -> Booking:
    """Books a hotel."""
    await context.report_progress(1, 2)
    if not confirm.value:
        raise ToolError("The user said no.")
    await context.report_progress(2, 2)
    return Booking(reference="R-1", total=nights * 99)


if __name__ == "__main__":
    if sys.argv[1:] == ["--http"]:
        from serve import serve

        serve(server.streamable_http_app())
    else:
        server.run()
