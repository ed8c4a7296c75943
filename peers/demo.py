"""One conversation with `trunkline demo`, spoken by any client that has the methods of `mcp.Client`."""

import base64
import json
import time
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from check import Checks, Inbox, code, equal, refused, text

MODERN = "2026-07-28"
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
README = "demo://readme"
TOOLS = [
    "announce", "book", "boom", "echo", "fail", "greet", "kinds", "log", "open_page", "progress",
    "roots", "sample", "sleep", "sum", "touch", "work",
]  # fmt: skip


class Person:
    """The client's side of the questions: what it answers, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.action: Literal["accept", "decline", "cancel"] = "cancel"
        self.content: dict[str, Any] = {}

    def accepts(self, **content: Any) -> None:
        self.asked.clear()
        self.action, self.content = "accept", content

    def does(self, action: Literal["accept", "decline", "cancel"]) -> None:
        self.asked.clear()
        self.action, self.content = action, {}

    async def elicit(self, _context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params)
        if self.action != "accept" or params.mode == "url":
            return types.ElicitResult(action=self.action)
        fields = params.requested_schema["properties"]
        content = {name: value for name, value in self.content.items() if name in fields}
        return types.ElicitResult(action="accept", content=content)

    async def sample(self, _context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.asked.append(params)
        content = types.TextContent(type="text", text="four")
        return types.CreateMessageResult(model="peer-model", role="assistant", content=content)

    async def roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///one", name="one"), types.Root(uri="file:///two")])


class Conversation:
    """Checks everything the demo promises to a client of one revision."""

    def __init__(self, checks: Checks, client: Any, inbox: Inbox, person: Person, revision: str) -> None:
        self.checks, self.client, self.inbox = checks, client, inbox
        self.person, self.revision = person, revision

    def has(self, since: str) -> bool:
        return self.revision >= since

    async def all(self) -> None:
        parts = [
            self.identity, self.lists, self.tools, self.kinds, self.failures, self.progress, self.cancellation,
            self.resources, self.prompts, self.completion, self.asks, self.logging,
        ]  # fmt: skip
        if self.has("2025-06-18"):
            parts += [self.question, self.formal, self.declined, self.cancelled, self.booking]
        else:
            parts += [self.no_question]
        parts += [self.page] if self.has("2025-11-25") else [self.no_page]
        parts += [self.listening] if self.has(MODERN) else [self.ping, self.subscription, self.changes]
        for part in parts:
            await self.checks.check(part.__name__.replace("_", " "), part)

    async def call(self, tool: str, meta: Any = None, progress: Any = None, **arguments: Any) -> types.CallToolResult:
        return await self.client.call_tool(tool, arguments, meta=meta, progress_callback=progress)

    async def identity(self) -> None:
        equal(self.client.protocol_version, self.revision)
        equal(self.client.server_info and self.client.server_info.name, "trunkline-demo")
        offers = self.client.server_capabilities
        equal((offers.tools and offers.tools.list_changed), True)
        equal((offers.resources and offers.resources.subscribe), True)

    async def lists(self) -> None:
        listed = (await self.client.list_tools()).tools
        equal(sorted(tool.name for tool in listed), TOOLS)
        resources = (await self.client.list_resources()).resources
        equal(sorted(str(resource.uri) for resource in resources), ["demo://logo", README])
        templates = (await self.client.list_resource_templates()).resource_templates
        equal([template.uri_template for template in templates], ["demo://greeting/{name}"])
        prompts = (await self.client.list_prompts()).prompts
        equal(sorted(prompt.name for prompt in prompts), ["greet", "review"])

    async def tools(self) -> None:
        for said in ["hello", "", "line\nbreak", '☃ 🦀 "quoted" \\', "x" * 200_000]:
            equal(text(await self.call("echo", text=said)), said)
        result = await self.call("sum", a=2, b=3.5)
        equal(result.structured_content, {"sum": 5.5} if self.has("2025-06-18") else None)
        equal(json.loads(text(result)), {"sum": 5.5})
        equal(text(await self.call("sleep", ms=5)), "slept 5 ms")
        equal(text(await self.call("work", steps=2)), "worked 2 steps")

    async def kinds(self) -> None:
        content = (await self.call("kinds")).content
        found = [block.type for block in content]
        expected = ["text", "image", "audio", "resource_link", "resource"]
        if not self.has("2025-06-18"):
            expected[3] = "text"
        if not self.has("2025-03-26"):
            expected[2] = "resource" if found[2] == "resource" else "text"
        equal(found, expected)
        equal(base64.b64decode(content[1].data)[1:4], b"PNG")

    async def failures(self) -> None:
        failed = await self.call("fail", message="no luck")
        equal((failed.is_error, text(failed)), (True, "no luck"))
        boom = await self.call("boom")
        equal((boom.is_error, text(boom).startswith("`boom` failed unexpectedly.")), (True, True))
        equal(await code(self.call("nothing")), -32602)
        equal(await code(self.client.read_resource("demo://nothing")), -32602 if self.has(MODERN) else -32002)
        equal(await code(self.client.get_prompt("nothing")), -32602)
        equal(text(await self.call("echo", text="alive")), "alive")

    async def progress(self) -> None:
        seen: list[tuple[float, float | None, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        equal(text(await self.call("progress", progress=note, steps=5)), "done")
        # Each notification is a task of its own in this client, so the order in which it calls back is its own affair.
        equal(sorted(seen), [(i, 5, f"step {i} of 5") for i in range(1, 6)])

    async def cancellation(self) -> None:
        seen: list[float] = []
        started = anyio.Event()

        async def note(progress: float, _total: float | None, _message: str | None) -> None:
            seen.append(progress)
            started.set()

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: self.call("progress", progress=note, steps=1000))
            # Its first step shows that the server has read it.
            await started.wait()
            start = time.monotonic()
            group.cancel_scope.cancel()
        equal(text(await self.call("echo", text="next")), "next")
        assert time.monotonic() - start < 2, "the next call waited"
        assert len(seen) < 500, f"{len(seen)} steps of 1000"

    async def resources(self) -> None:
        readme = (await self.client.read_resource(README)).contents
        equal([(part.mime_type, "trunkline" in part.text.lower()) for part in readme], [("text/markdown", True)])
        logo = (await self.client.read_resource("demo://logo")).contents
        equal([(part.mime_type, base64.b64decode(part.blob)[1:4]) for part in logo], [("image/png", b"PNG")])
        greeting = (await self.client.read_resource("demo://greeting/Ada")).contents
        equal([part.text for part in greeting], ["Hello, Ada!"])

    async def prompts(self) -> None:
        code_ = "fn main() {}"
        messages = (await self.client.get_prompt("review", {"code": code_, "language": "rust"})).messages
        equal([(message.role, code_ in message.content.text) for message in messages], [("user", True)])
        self.person.accepts(name="Ada")
        known = (await self.client.get_prompt("greet", {"name": "Grace"})).messages
        assert "Grace" in known[0].content.text, known
        equal(self.person.asked, [])
        if self.has("2025-06-18"):
            asked = (await self.client.get_prompt("greet", {})).messages
            assert "Ada" in asked[0].content.text, asked
            equal(len(self.person.asked), 1)
        else:
            assert await code(self.client.get_prompt("greet", {})) < 0

    async def completion(self) -> None:
        prompt = types.PromptReference(type="ref/prompt", name="review")
        found = await self.client.complete(prompt, {"name": "language", "value": "ru"})
        equal(sorted(found.completion.values), ["ruby", "rust"])
        template = types.ResourceTemplateReference(type="ref/resource", uri="demo://greeting/{name}")
        found = await self.client.complete(template, {"name": "name", "value": "A"})
        equal(sorted(found.completion.values), ["Ada", "Alan"])

    async def question(self) -> None:
        self.person.accepts(name="Ada")
        equal(text(await self.call("greet")), "Hello, Ada!")
        equal([asked.message for asked in self.person.asked], ["What is your name?"])

    async def formal(self) -> None:
        self.person.accepts(name="Ada", formal=True)
        equal(text(await self.call("greet")), "Good day, Ada.")

    async def declined(self) -> None:
        self.person.does("decline")
        result = await self.call("greet")
        equal((result.is_error, text(result)), (True, "The user declined."))

    async def cancelled(self) -> None:
        self.person.does("cancel")
        result = await self.call("greet")
        equal((result.is_error, text(result)), (True, "The user declined."))

    async def booking(self) -> None:
        self.person.accepts(ok=True, name="Ada")
        seen: list[float] = []

        async def note(progress: float, _total: float | None, _message: str | None) -> None:
            seen.append(progress)

        result = await self.call("book", progress=note, city="Paris", nights=2)
        assert not result.is_error, text(result)
        fields = [",".join(asked.requested_schema["properties"]) for asked in self.person.asked]
        equal((sorted(fields[:2]), fields[2:]), (["name", "ok"], ["ok"]))
        equal(sorted(result.structured_content), ["reference", "total"])
        equal(sorted(seen), [1, 2, 3])

    async def no_question(self) -> None:
        self.person.accepts(name="Ada")
        await refused(self.call("greet"))
        equal(self.person.asked, [])

    async def page(self) -> None:
        for action, answer in [("accept", "accepted"), ("decline", "declined")]:
            self.person.does(action)
            equal(text(await self.call("open_page")), answer)
            equal([(asked.mode, str(asked.url)) for asked in self.person.asked], [("url", "https://example.com/consent")])

    async def no_page(self) -> None:
        self.person.does("accept")
        await refused(self.call("open_page"))
        equal(self.person.asked, [])

    async def asks(self) -> None:
        self.person.asked.clear()
        equal(text(await self.call("sample", prompt="What is 2 + 2?")), "peer-model said: four")
        asked = self.person.asked[0]
        equal((asked.max_tokens, asked.messages[0].content.text), (100, "What is 2 + 2?"))
        equal(text(await self.call("roots")), "file:///one\nfile:///two")

    async def logging(self) -> None:
        self.inbox.items.clear()
        meta = None
        if self.has(MODERN):
            meta = {types.LOG_LEVEL_META_KEY: "warning"}
        else:
            await self.client.set_logging_level("warning")
        await self.call("log", meta=meta, level="info", message="too quiet")
        equal(text(await self.call("log", meta=meta, level="error", message="loud enough")), "logged")
        params = (await self.inbox.next("notifications/message")).params
        equal((params.level, params.logger, params.data), ("error", "demo", "loud enough"))
        equal(self.inbox.methods().count("notifications/message"), 1)

    async def ping(self) -> None:
        equal((await self.client.send_ping()).model_dump(exclude_none=True), {})

    async def subscription(self) -> None:
        self.inbox.items.clear()
        await self.client.subscribe_resource(README)
        equal(text(await self.call("touch", uri=README)), "touched")
        equal(str((await self.inbox.next("notifications/resources/updated")).params.uri), README)
        await self.client.unsubscribe_resource(README)
        self.inbox.items.clear()
        await self.call("touch", uri=README)
        await self.call("announce", kind="tools")
        await self.inbox.next("notifications/tools/list_changed")
        assert "notifications/resources/updated" not in self.inbox.methods(), "an update came after leaving"

    async def changes(self) -> None:
        for kind in ["tools", "prompts", "resources"]:
            self.inbox.items.clear()
            equal(text(await self.call("announce", kind=kind)), "announced")
            await self.inbox.next(f"notifications/{kind}/list_changed")

    async def listening(self) -> None:
        wanted = {"tools_list_changed": True, "resources_list_changed": True, "resource_subscriptions": [README]}
        async with self.client.listen(**wanted) as heard:
            equal((heard.honored.tools_list_changed, heard.honored.resource_subscriptions), (True, [README]))
            for tool, arguments, expected in [
                ("touch", {"uri": README}, ResourceUpdated(uri=README)),
                ("announce", {"kind": "tools"}, ToolsListChanged()),
                ("announce", {"kind": "prompts"}, None),
                ("announce", {"kind": "resources"}, ResourcesListChanged()),
            ]:
                await self.call(tool, **arguments)
                if expected is not None:
                    event = await anext(heard)
                    assert not isinstance(event, PromptsListChanged), "prompts were not asked for"
                    equal(event, expected)


async def asks_are_refused(client: Any) -> None:
    """A client that offers nothing is refused, and not left waiting."""
    for tool, arguments in [("greet", {}), ("open_page", {}), ("sample", {"prompt": "x"}), ("roots", {})]:
        await refused(client.call_tool(tool, arguments))
    equal(text(await client.call_tool("echo", {"text": "still here"})), "still here")
