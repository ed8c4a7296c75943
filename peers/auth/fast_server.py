"""A server made with `fastmcp` and protected by its own provider, over HTTP at a free port; it says where on stderr."""

import logging
import socket
import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions, RevocationOptions
from fastmcp.server.auth.providers import in_memory
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token

SCOPES = ["read", "write"]


def made(origin: str) -> FastMCP:
    """The server, which is its own authorization server and approves whoever asks."""
    provider = InMemoryOAuthProvider(
        base_url=origin,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=["read"],
    )
    server = FastMCP("fast-protected", auth=provider)

    @server.tool
    def add(a: int, b: int) -> dict[str, int]:
        """Adds two numbers."""
        return {"sum": a + b}

    @server.tool
    def seen() -> dict[str, object]:
        """What the provider knows of the caller and of everybody."""
        token = get_access_token()
        return {
            "scopes": token.scopes if token else [],
            "clients": len(provider.clients),
            "names": sorted({client.client_name or "" for client in provider.clients.values()}),
            "refresh_tokens": len(provider.refresh_tokens),
        }

    return server


if __name__ == "__main__":
    # How long an access token lives, in seconds.
    if len(sys.argv) > 1:
        in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[1])
    logging.disable(logging.CRITICAL)
    # Named as TCP, or asyncio leaves Nagle on.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = made(origin).http_app(path="/mcp", transport="http")
    runner = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    print(f"Serving at {origin}/mcp", file=sys.stderr, flush=True)
    runner.run(sockets=[listener])
