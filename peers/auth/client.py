"""The PyPI clients log in to a protected server by their own OAuth code: `py|fast (URL | COMMAND ARG…)`."""

import logging
import sys
import warnings
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import mcp
from fastmcp import Client as FastClient
from fastmcp.client.auth import OAuth
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from key_value.aio.stores.memory import MemoryStore
from mcp.client.auth import OAuthClientProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from check import Checks, equal, serve  # noqa: E402
from demo import LEGACY, MODERN  # noqa: E402


def query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def asked_well(url: str, resource: str) -> None:
    """The client asked for a code as it must: with a proof key, for this resource alone."""
    asked = query(url)
    equal((asked["response_type"], asked["code_challenge_method"], asked["resource"]), ("code", "S256", resource))
    assert len(asked["code_challenge"]) >= 43, asked["code_challenge"]


class Kept:
    """What the client `mcp` learns, and the browser it is given; fills in for a person who approves."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None
        self.asked: list[str] = []
        self.saved = 0

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.saved += 1
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def visit(self, url: str) -> None:
        self.asked.append(url)

    async def redirected(self) -> AuthorizationCodeResult:
        """Reads the redirect that approves, without following it."""
        async with httpx2.AsyncClient(follow_redirects=False) as browser:
            response = await browser.get(self.asked[-1])
        told = query(response.headers["location"])
        return AuthorizationCodeResult(code=told["code"], state=told.get("state"), iss=told.get("iss"))

    def login(self, url: str) -> OAuthClientProvider:
        metadata = OAuthClientMetadata(
            client_name="Peer py",
            # Nobody listens there.
            redirect_uris=["http://127.0.0.1:41739/callback"],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            token_endpoint_auth_method="none",
        )
        return OAuthClientProvider(url, metadata, self, self.visit, self.redirected)


class KeptByFast:
    """The same for `fastmcp`, which listens for the redirect itself."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.asked: list[str] = []
        self.saved = 0

    def login(self, url: str) -> OAuth:
        kept = self

        class Headless(OAuth):
            """Has no browser to open: a request that follows redirects is sent instead, once the listener is there."""

            async def redirect_handler(self, authorization_url: str) -> None:
                kept.asked.append(authorization_url)

            async def callback_handler(self) -> AuthorizationCodeResult:
                async def browse() -> None:
                    async with httpx2.AsyncClient(follow_redirects=True) as browser:
                        while True:
                            try:
                                response = await browser.get(kept.asked[-1])
                            except httpx2.ConnectError:
                                await anyio.sleep(0.02)
                                continue
                            equal(response.status_code, 200)
                            return

                async with anyio.create_task_group() as group:
                    group.start_soon(browse)
                    return await super().callback_handler()

            async def _handle_token_response(self, response: httpx2.Response) -> None:
                kept.saved += 1
                await super()._handle_token_response(response)

            async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
                kept.saved += 1
                return await super()._handle_refresh_response(response)

        return Headless(url, client_name="Peer fast", token_storage=self.store, callback_host="127.0.0.1")


@asynccontextmanager
async def connect(way: str, url: str, revision: str, login: Any):
    """A client of one revision that is let in by `login`."""
    mode = "auto" if revision == MODERN else "legacy"
    with anyio.fail_after(30):
        if isinstance(login, OAuth):
            kind = SSETransport if way == "sse" else StreamableHttpTransport
            async with FastClient(kind(url, auth=login), mode=mode, timeout=10) as client:
                yield client
        elif way == "sse":
            async with mcp.Client(sse_client(url, auth=login), mode=mode, read_timeout_seconds=10) as client:
                yield client
        else:
            async with httpx2.AsyncClient(auth=login, timeout=httpx2.Timeout(30, read=300)) as http:
                server = streamable_http_client(url, http_client=http)
                async with mcp.Client(server, mode=mode, read_timeout_seconds=10) as client:
                    yield client


async def works(client: Any) -> None:
    """Lists the tools and calls one."""
    listed = await client.list_tools()
    names = {tool.name for tool in getattr(listed, "tools", listed)}
    tool = "sum" if "sum" in names else "add"
    result = await client.call_tool(tool, {"a": 2, "b": 40})
    equal(result.structured_content["sum"], 42)


async def is_challenged(url: str) -> str:
    """Without a token there is a challenge that says where to find out more; what the server is called there."""
    async with httpx2.AsyncClient() as http:
        response = await http.get(url, headers={"accept": "text/event-stream"})
        equal(response.status_code, 401)
        metadata = response.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
        resource = (await http.get(metadata)).json()["resource"]
    assert url.startswith(resource), f"{url} is not in {resource}"
    return resource


async def converse(checks: Checks, which: str, way: str, url: str, revision: str, is_demo: bool) -> None:
    checks.prefix = f"auth {which} {way} {revision}"
    kept = Kept() if which == "py" else KeptByFast()

    async def registers() -> None:
        login = kept.login(url)
        async with connect(way, url, revision, login) as client:
            equal((client.protocol_version, len(kept.asked), kept.saved), (revision, 1, 1))
            asked_well(kept.asked[0], await is_challenged(url))
            await checks.check("lists and calls", lambda: works(client))

            async def refreshes() -> None:
                before = login.context.current_tokens.access_token
                login.context.token_expiry_time = 1
                await works(client)
                equal((len(kept.asked), kept.saved), (1, 2))
                assert login.context.current_tokens.access_token != before, "the token is the same"

            await checks.check("refreshes when its token has expired", refreshes)

            async def steps_up() -> None:
                equal((await client.call_tool("announce", {"kind": "tools"})).content[0].text, "announced")
                equal(len(kept.asked), 2)
                equal(sorted(query(kept.asked[1])["scope"].split()), ["demo", "demo:write"])

            if is_demo:
                await checks.check("asks for the scope that a tool needs", steps_up)

    async def comes_back() -> None:
        asked = len(kept.asked)
        async with connect(way, url, revision, kept.login(url)) as client:
            await works(client)
        equal(len(kept.asked), asked)

    await checks.check("registers, logs in, connects and closes", registers, 40)
    await checks.check("comes back with what it kept", comes_back, 40)


async def all_ways(checks: Checks, which: str, origin: str, is_demo: bool) -> int:
    url = f"{origin}/mcp"
    for revision in [LEGACY[-1], MODERN]:
        await converse(checks, which, "http", url, revision, is_demo)
    if is_demo:
        await converse(checks, which, "sse", f"{origin}/sse", LEGACY[-1], is_demo)
    return checks.end()


async def main(which: str, line: list[str]) -> int:
    checks = Checks()
    if line[0].startswith("http"):
        return await all_ways(checks, which, line[0].removesuffix("/mcp"), False)
    async with serve(line, "--auth", "--auth-approve", "alice") as origin:
        return await all_ways(checks, which, origin, True)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("py", "fast"):
        sys.exit("usage: python auth/client.py py|fast (URL | COMMAND [ARG…])")
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.exit(anyio.run(main, sys.argv[1], sys.argv[2:]))
