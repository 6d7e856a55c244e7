"""Answers of tools that page through a list, or that change one memory."""

from collections.abc import Callable, Mapping
from typing import Any

from web.mcp.rendering import render_memory, shorten
from web.mcp.tool import ToolCall, ToolResult, limit, text

PAGE = {"limit": limit(200), "cursor": text("next_cursor of the previous page")}

Row = Callable[[Mapping[str, Any]], str]


def render_done(call: ToolCall, done: str, memory: Mapping[str, Any]) -> ToolResult:
    """Return the answer of a tool that changed a memory."""
    return ToolResult(f"{done}\n{render_memory(shorten(memory), call.shown, call.now)}", ids=[memory["id"]])


def list_page(call: ToolCall, page: Mapping[str, Any], none: str) -> ToolResult:
    """Return a page of memories, or the text for none."""
    return list_items(page, lambda memory: render_memory(shorten(memory), call.shown, call.now), none)


def list_items(page: Mapping[str, Any], render: Row, none: str) -> ToolResult:
    """Return a page of a list, or the text for none."""
    text = "\n".join(map(render, page["items"])) or none
    return ToolResult(add_cursor(text, page), ids=[item["id"] for item in page["items"] if "id" in item])


def add_cursor(text: str, page: Mapping[str, Any]) -> str:
    """Return the text of a page with the cursor of the next one."""
    return f"{text}\nmore with cursor {page['next_cursor']}" if page["next_cursor"] else text
