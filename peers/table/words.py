"""What the servers of the table say, so that all of them say the same; see `words.mjs`."""

import json
from typing import Any

import mcp_types as types
from pydantic import BaseModel

QUESTION = "Who are you?"
FORM = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}
PAGE = {"message": "Please sign in.", "url": "https://example.com/sign-in", "elicitation_id": "page-1"}
PROMPT = [types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Two and two?"))]
LEVELS = ["debug", "info", "warning", "error"]


class Name(BaseModel):
    """The form, where an SDK takes a model for it."""

    name: str
    age: int = 0


def said(what: Any) -> str:
    """What was answered, as JSON."""
    return what if isinstance(what, str) else json.dumps(dumped(what))


def dumped(what: Any) -> Any:
    return what.model_dump(by_alias=True, mode="json", exclude_none=True) if isinstance(what, BaseModel) else what
