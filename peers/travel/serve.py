"""A Starlette app into that app at a free port, which is said on stderr."""

import logging
import socket
import sys
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    logging.disable(logging.CRITICAL)
    # Named as TCP, or asyncio leaves Nagle on.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    runner = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    print(f"Serving at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    runner.run(sockets=[listener])
