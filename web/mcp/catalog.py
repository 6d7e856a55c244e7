"""What a host can list: the tools of a profile, the resources and the prompts, as the protocol has them."""

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
    "description": "A memory whole, with details, edges and history.",
    "mimeType": PLAIN,
}
REVIEW: dict[str, Any] = {
    "name": "review",
    "description": "Go through the writes that wait for review and the pairs that may say the same.",
}


def build_catalog(tools: Iterable[Tool]) -> Mapping[str, dict[str, Any]]:
    """Return the result of each request that lists something."""
    return {
        "tools/list": {"tools": [describe_tool(tool) for tool in tools]},
        "prompts/list": {"prompts": [REVIEW]},
        "resources/list": {"resources": [BRIEF]},
        "resources/templates/list": {"resourceTemplates": [MEMORY]},
    }
