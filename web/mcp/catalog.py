"""The lists for hosts: the tools of a profile, the resources and the prompts, in the form of the protocol."""

from collections.abc import Iterable, Mapping
from typing import Any

from web.mcp.tool import Tool, describe_tool

PLAIN = "text/plain"
BRIEF: dict[str, Any] = {
    "uri": "reverie://brief",
    "name": "brief",
    "description": "The project's brief: unfinished goals, lessons, decisions, facts.",
    "mimeType": PLAIN,
}
MEMORY: dict[str, Any] = {
    "uriTemplate": "reverie://memory/{id}",
    "name": "memory",
    "description": "A full memory with its details, edges and history.",
    "mimeType": PLAIN,
}
REVIEW: dict[str, Any] = {
    "name": "review",
    "description": "Review candidates and possible duplicates together with the user.",
}


def build_catalog(tools: Iterable[Tool], *, is_enabled: bool = True) -> Mapping[str, dict[str, Any]]:
    """Return the result of each list request. If Reverie is turned off, there are no resources."""
    return {
        "tools/list": {"tools": [describe_tool(tool) for tool in tools]},
        "prompts/list": {"prompts": [REVIEW]},
        "resources/list": {"resources": [BRIEF] if is_enabled else []},
        "resources/templates/list": {"resourceTemplates": [MEMORY] if is_enabled else []},
    }
