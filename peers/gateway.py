"""The PyPI clients `mcp` and `fastmcp` at the gateway whose URL is given, with five servers behind it; see `gateway.mjs`."""

import json
import os
from contextlib import asynccontextmanager
from typing import Any

import anyio
import fastmcp
import mcp
from fastmcp.client.transports import StreamableHttpTransport

from check import Checks, equal, start, text
from demo import Person
from fast import Plain

KNOWN = {
    "everything": ["echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"],
    "files": ["read_text_file", "list_directory", "search_files"],
    "time": ["get_current_time", "convert_time"],
    "git": ["git_status", "git_log"],
    "fast": ["add", "echo", "count", "greet"],
    "older": ["add", "echo", "count", "greet"],
}


@asynccontextmanager
async def connect(sdk: str, era: str, url: str, person: Person):
    """Either client, under the names that `mcp.Client` has."""
    with anyio.fail_after(200):
        if sdk == "py":
            answers = {
                "elicitation_callback": person.elicit,
                "sampling_callback": person.sample,
                "list_roots_callback": person.roots,
            }
            async with mcp.Client(url, mode=era, read_timeout_seconds=30, **answers) as client:
                yield client
            return

        async def elicit(_message: str, _response: Any, params: Any, context: Any) -> Any:
            return await person.elicit(context, params)

        async def sample(_messages: Any, params: Any, context: Any) -> Any:
            return await person.sample(context, params)

        roots = (await person.roots(None)).roots
        answers = {"elicitation_handler": elicit, "sampling_handler": sample, "roots": roots}
        async with fastmcp.Client(StreamableHttpTransport(url), mode=era, timeout=30, **answers) as client:
            yield Plain(client)


class Conversation:
    """What is used through the gateway, by either client."""

    def __init__(self, checks: Checks, client: Any, person: Person, folder: str) -> None:
        self.checks, self.client, self.person, self.folder = checks, client, person, folder

    async def all(self) -> None:
        for part in [
            self.lists, self.tools, self.failures, self.together, self.resources, self.prompts, self.progress,
            self.question, self.sampling, self.question_over_http, self.question_of_both_eras,
        ]:  # fmt: skip
            await self.checks.check(part.__doc__, part, 60)

    async def call(self, name: str, progress: Any = None, **arguments: Any) -> Any:
        return await self.client.call_tool(name, arguments, progress_callback=progress)

    async def said(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        return "\n".join(block.text for block in result.content if block.type == "text")

    async def lists(self) -> None:
        """lists the tools of every server"""
        tools = [tool.name for tool in await every(self.client.list_tools, "tools")]
        for server, known in KNOWN.items():
            equal([name for name in known if f"{server}.{name}" not in tools], [])
        equal([name for name in tools if name.split(".")[0] not in KNOWN], [])
        equal(len(tools), len(set(tools)))

    async def tools(self) -> None:
        """calls a tool of each"""
        equal(await self.said("everything.get-sum", a=2, b=40), "The sum of 2 and 40 is 42.")
        path = os.path.join(self.folder, "hello.txt")
        assert "hello from a file" in await self.said("files.read_text_file", path=path)
        now = json.loads(await self.said("time.get_current_time", timezone="Europe/Oslo"))
        equal(now["timezone"], "Europe/Oslo")
        assert "The first commit" in await self.said("git.git_log", repo_path=self.folder)
        equal((await self.call("fast.add", a=2, b=40)).structured_content, {"sum": 42})

    async def failures(self) -> None:
        """a tool that fails says so in its result"""
        outside = await self.call("files.read_text_file", path="/etc/hostname")
        failed = await self.call("fast.fail", message="no luck")
        equal((outside.is_error, failed.is_error), (True, True))
        assert "no luck" in text(failed)

    async def together(self) -> None:
        """calls at once are each answered with their own"""
        answers: dict[int, str] = {}

        async def one(at: int) -> None:
            if at % 2:
                answers[at] = await self.said("fast.echo", text=f"Echo: call {at}")
            else:
                answers[at] = await self.said("everything.echo", message=f"call {at}")

        async with anyio.create_task_group() as group:
            for at in range(40):
                group.start_soon(one, at)
        equal(answers, {at: f"Echo: call {at}" for at in range(40)})

    async def resources(self) -> None:
        """reads resources of both who have them"""
        uris = [str(resource.uri) for resource in await every(self.client.list_resources, "resources")]
        features = next(uri for uri in uris if uri.endswith("features.md"))
        assert "Everything" in (await self.client.read_resource(features)).contents[0].text
        readme = next(uri for uri in uris if uri.endswith("readme"))
        equal((await self.client.read_resource(readme)).contents[0].text, "Made with FastMCP.")

    async def prompts(self) -> None:
        """gets prompts of both who have them"""
        names = [prompt.name for prompt in await every(self.client.list_prompts, "prompts")]
        equal([name for name in ("everything.args-prompt", "fast.review") if name not in names], [])
        weather = await self.client.get_prompt("everything.args-prompt", {"city": "Paris"})
        assert "Paris" in weather.messages[0].content.text
        review = await self.client.get_prompt("fast.review", {"code": "fn main() {}"})
        assert "fn main" in review.messages[0].content.text

    async def progress(self) -> None:
        """hears of progress, over stdio and over HTTP behind it"""
        seen: list[tuple[float, float | None]] = []

        async def note(progress: float, total: float | None, _message: str | None) -> None:
            seen.append((progress, total))

        await self.call("everything.trigger-long-running-operation", note, duration=1, steps=4)
        equal(sorted(seen), [(step, 4) for step in range(1, 5)])
        seen.clear()
        equal(text(await self.call("fast.count", note, steps=3)), "done")
        # Each notification is a task of its own in this client, so the order in which it calls back is its own affair.
        equal(sorted(seen), [(step, 3) for step in range(1, 4)])

    async def question(self) -> None:
        """answers an elicitation"""
        self.person.accepts(name="Ada", check=True)
        assert "Name: Ada" in await self.said("everything.trigger-elicitation-request")
        equal(len(self.person.asked), 1)
        self.person.does("decline")
        assert "declined" in await self.said("everything.trigger-elicitation-request")

    async def sampling(self) -> None:
        """answers a sampling request"""
        self.person.asked.clear()
        said = await self.said("everything.trigger-sampling-request", prompt="two and two?", maxTokens=10)
        assert "four" in said, said
        equal(len(self.person.asked), 1)

    async def question_over_http(self) -> None:
        """answers the question of a server over HTTP"""
        self.person.accepts(value="Ada")
        equal(await self.said("older.greet"), "Hello, Ada!")

    async def question_of_both_eras(self) -> None:
        """hears from a server of both eras what it would without the gateway"""
        self.person.accepts(value="Ada")
        said = await self.said("fast.greet")
        if self.client.protocol_version == "2026-07-28":
            assert "unavailable on 2026-07-28" in said, said
        else:
            equal(said, "Hello, Ada!")


async def every(page: Any, key: str) -> list[Any]:
    """Every page of a list."""
    result = await page()
    found = list(getattr(result, key))
    while result.next_cursor is not None:
        result = await page(cursor=result.next_cursor)
        found += getattr(result, key)
    return found


async def main(url: str, folder: str) -> int:
    checks = Checks()
    for sdk, era in [("py", "auto"), ("py", "legacy"), ("fast", "auto"), ("fast", "legacy")]:
        checks.prefix = f"gateway {sdk} {era}"

        async def conversation() -> None:
            person = Person()
            async with connect(sdk, era, url, person) as client:
                equal(client.protocol_version, "2026-07-28" if era == "auto" else "2025-11-25")
                await Conversation(checks, client, person, folder).all()

        await checks.check("connects and closes", conversation, 220)
    return checks.end()


if __name__ == "__main__":
    start(main, "URL FOLDER")
