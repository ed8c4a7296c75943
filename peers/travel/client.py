"""`py|fast ERA (URL | COMMAND ARG…)` into what that PyPI client sees of the travel server, as one line of JSON."""

import json
import logging
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types


class Seen:
    """What came, and a person who says yes to everything."""

    def __init__(self) -> None:
        self.asked = 0
        self.wire: list[list[float]] = []
        self.heard: list[list[float]] = []

    async def note(self, message: Any) -> None:
        if isinstance(message, types.ProgressNotification):
            self.wire.append([message.params.progress, message.params.total or 0])

    async def hear(self, progress: float, total: float | None, _message: str | None) -> None:
        self.heard.append([progress, total or 0])

    def answer(self, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked += 1
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: True for name in fields})


def py(seen: Seen, mode: str, target: str, args: list[str]) -> Any:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    async def elicit(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return seen.answer(params)

    server = target if target.startswith("http:") else StdioServerParameters(command=target, args=args)
    return Client(server, mode=mode, message_handler=seen.note, elicitation_callback=elicit, read_timeout_seconds=20)


def fast(seen: Seen, mode: str, target: str, args: list[str]) -> Any:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    async def elicit(_message: str, _response: Any, params: Any, _context: Any) -> types.ElicitResult:
        return seen.answer(params)

    transport = StreamableHttpTransport(target) if target.startswith("http:") else StdioTransport(target, args)
    return Client(transport, mode=mode, message_handler=seen.note, elicitation_handler=elicit, timeout=20)


async def main(sdk: str, era: str, target: str, *args: str) -> None:
    seen = Seen()
    make = {"py": py, "fast": fast}[sdk]
    trip = {"city": "Oslo", "nights": 3}
    with anyio.fail_after(40):
        async with make(seen, era, target, list(args)) as client:
            listed = await client.list_tools()
            tools = listed if sdk == "fast" else listed.tools
            hear = {"progress_handler" if sdk == "fast" else "progress_callback": seen.hear}
            result = await client.call_tool("book", trip, **hear)
            report = {
                "revision": client.protocol_version,
                "schema": any(tool.name == "book" and tool.output_schema for tool in tools),
                "asked": seen.asked,
                "wire": seen.wire,
                "heard": seen.heard,
                "error": bool(result.is_error),
                "result": result.structured_content,
            }
    print(json.dumps(report))


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("py", "fast") or sys.argv[2] not in ("auto", "legacy"):
        sys.exit("usage: python client.py py|fast auto|legacy (URL | COMMAND ARG…)")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    anyio.run(main, *sys.argv[1:])
