"""A call as a task in 2026-07-28, by the PyPI client `fastmcp` 4.x with its package for tasks: `[PREFIX, URL | [COMMAND, ARG…]]…`
as JSON into what is seen of each, as JSON."""

import json
import logging
import sys
import warnings
from typing import Any

import anyio
import fastmcp
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp_tasks import call_tool_task


async def tried(prefix: str, way: Any) -> list[Any]:
    """What comes of a task that is waited for, of one that is watched, and of one that is cancelled."""
    transport = StreamableHttpTransport(way) if isinstance(way, str) else StdioTransport(way[0], way[1:], keep_alive=False)
    with anyio.fail_after(40):
        async with fastmcp.Client(transport, mode="auto", timeout=20) as client:
            tool = f"{prefix}work"

            async def plain() -> Any:
                return text(await client.call_tool(tool))

            async def watched() -> Any:
                task = await call_tool_task(client, tool)
                status = (await task.wait()).status
                return [status, text(await task.result())]

            async def cancelled() -> Any:
                task = await call_tool_task(client, tool)
                await task.cancel()
                return (await task.wait()).status

            return [await seen(plain), await seen(watched), await seen(cancelled)]


def text(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


async def seen(action: Any) -> dict[str, Any]:
    try:
        return {"result": await action()}
    except Exception as error:  # Whatever it is, it is what the caller sees.
        return {"error": {"message": str(error)}}


async def main() -> None:
    print(json.dumps([await tried(prefix, way) for prefix, way in json.loads(sys.argv[1])]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    anyio.run(main)
