"""Tools for entities."""

from collections.abc import Mapping
from typing import Any

from pipeline.kernel.records import EntityKind
from pipeline.text.quoting import quote
from web.mcp.rendering import render_memories, shorten
from web.mcp.tool import ID, INTEGER, Tool, ToolCall, ToolResult, limit, one_of, segment, text
from web.mcp.tool_lists import PAGE, add_cursor, list_items


def entities(call: ToolCall) -> ToolResult:
    """List entities, or read one entity."""
    if "id" in call.arguments:
        answer = call.server.call("GET", f"/v1/entities/{segment(call.arguments['id'])}", query=call.viewer())
        neighbors = [
            f"together with {_render_entity(entity | {'mentions': entity['memories']})[2:]}"
            for entity in answer["related"]
        ]
        memories = [shorten(memory) for memory in answer["memories"]]
        lines = render_memories(memories, call.shown, "No memory mentions it.", call.now)
        text = "\n".join([_render_entity(answer), *neighbors, lines])
        return ToolResult(add_cursor(text, answer), ids=[memory["id"] for memory in memories])
    query = call.viewer() | call.pick("q", "kind", "limit", "cursor")
    return list_items(call.server.call("GET", "/v1/entities", query=query), _render_entity, "There are no entities.")


def graph(call: ToolCall) -> ToolResult:
    """Show the entities that share memories with an entity."""
    answer = call.server.call("GET", "/v1/graph", query=call.viewer() | call.pick("around", "depth", "limit"))
    names = {node["id"]: quote(node["name"]) for node in answer["nodes"]}
    neighbors = [
        f"- {names[edge['from']]} and {names[edge['to']]}: {edge['memories']} memories" for edge in answer["edges"]
    ]
    return ToolResult("\n".join([*map(_render_entity, answer["nodes"]), *neighbors]), ids=list(names))


def _render_entity(entity: Mapping[str, Any]) -> str:
    return f"- {entity['id']} · {entity['kind']} · {entity['mentions']} memories mention {quote(entity['name'])}"


TOOLS = (
    Tool(
        "entities",
        "List entities (people, files, tickets), most frequent first; with id show one entity and its memories.",
        entities,
        {"id": ID, "q": text("Part of a name"), "kind": one_of(EntityKind), **PAGE},
        place=95,
    ),
    Tool(
        "graph",
        "Show entities that share memories with an entity.",
        graph,
        {"around": text("Its id or name"), "depth": INTEGER | {"minimum": 1, "maximum": 2}, "limit": limit(100)},
        ("around",),
        place=95,
    ),
)
