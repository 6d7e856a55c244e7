"""The tools that the profile `full` adds: correct, review, explore and maintain the memory."""

from collections.abc import Mapping
from typing import Any

from pipeline.kernel.records import EdgeKind, Kind
from pipeline.kernel.registry import arrange
from pipeline.text.quoting import Speaker, flatten, quote
from web.features.sessions.tools import SESSION_TOOLS
from web.mcp.core_tools import CORE, DETAILS, TOOL_MODULES
from web.mcp.greeting import NO_TOOLS
from web.mcp.offered_tools import MORE_TOOLS
from web.mcp.rendering import render_edges
from web.mcp.tool import (
    FLAG,
    ID,
    NUMBER,
    TAGS,
    TEXT,
    Effect,
    Reading,
    Tool,
    ToolCall,
    ToolResult,
    one_of,
    record,
    segment,
)
from web.mcp.tool_lists import PAGE, list_items, list_page, render_done


def edit(call: ToolCall) -> ToolResult:
    """Change a memory."""
    body = call.pick("content", "importance", "tags", "metadata", "pinned", "details", "branch")
    memory = call.server.call("PATCH", f"/v1/memories/{call.id()}", body)
    return render_done(call, "changed", memory)


def restore(call: ToolCall) -> ToolResult:
    """Restore an archived memory."""
    memory = call.server.call("POST", f"/v1/memories/{call.id()}/restore")
    return render_done(call, "restored", memory)


def link(call: ToolCall) -> ToolResult:
    """Create or remove an edge."""
    path = f"/v1/memories/{call.id()}/edges"
    edge = {"kind": call.arguments["kind"], "to": call.resolve_id(call.arguments["to"], "to")}
    if call.arguments.get("remove"):
        answer = call.server.call("DELETE", path, query=edge)
    else:
        answer = call.server.call("POST", path, edge)
    return ToolResult(render_edges(answer["items"], call.shown), ids=[edge["id"] for edge in answer["items"]])


def list_memories(call: ToolCall) -> ToolResult:
    """List memories, newest first."""
    query = call.pick("kind", "session_id", "limit", "cursor")
    if call.arguments.get("archived"):
        query["archived"] = "true"
    page = call.server.call("GET", "/v1/memories", query={"limit": 20} | query)
    return list_page(call, page, "There are no memories.")


def why(call: ToolCall) -> ToolResult:
    """Explain why a recall does or does not find a memory."""
    body = {"query": call.arguments["query"], "id": call.resolve_id(call.arguments["id"], "id")}
    answer = call.server.call("POST", "/v1/recall/why", body | {"viewer": call.viewer()})
    # The reasons may contain the name of a session, so they are quoted.
    reason = Speaker("recall").say("; ".join(answer["reasons"])) if answer["reasons"] else f"rank {answer['rank']}"
    return ToolResult(reason, ids=[answer["id"]])


def audit(call: ToolCall) -> ToolResult:
    """List automatic changes, or undo one."""
    if "undo" in call.arguments:
        memory = call.server.call("POST", f"/v1/audit/{segment(call.arguments['undo'])}/undo")
        return render_done(call, "undone", memory)
    page = call.server.call("GET", "/v1/audit", query=call.pick("limit", "cursor"))
    return list_items(page, _render_act, "There are no automatic changes.")


def incognito(call: ToolCall) -> ToolResult:
    """Turn incognito on or off for a session, or list the incognito sessions."""
    if "session_id" in call.arguments:
        body = {"session_id": call.arguments["session_id"], "on": call.arguments.get("on", True)}
        answer = call.server.call("POST", "/v1/incognito", body)
        return ToolResult("incognito" if answer["since"] else "no longer incognito")
    page = call.server.call("GET", "/v1/incognito")
    return list_items(
        page, lambda session: f"- {quote(session['session_id'])}, since {session['since']}", "No session is incognito."
    )


def jobs(call: ToolCall) -> ToolResult:
    """List the maintenance jobs, or run one."""
    if "run" in call.arguments:
        answer = call.server.call("POST", f"/v1/jobs/{segment(call.arguments['run'])}")
        return ToolResult(f"requested run {answer['run_id']}")
    return list_items(call.server.call("GET", "/v1/jobs"), _render_job, "There are no jobs.")


def stats(call: ToolCall) -> ToolResult:
    """Count the contents of the workspace and its pending work."""
    answer = call.server.call("GET", "/v1/stats") | {"queue": call.server.call("GET", "/v1/queue")}
    answer["workspace"] = quote(answer["workspace"])
    return ToolResult("\n".join(f"{name}: {flatten(value)}" for name, value in answer.items()))


def _render_act(act: Mapping[str, Any]) -> str:
    joint = "replaced by" if act["action"] == "close" else "into"
    into = f" {joint} {act['other_id']}" if act["other_id"] else ""
    undone = " (undone)" if act["undone_at"] else ""
    return f"{act['id']} {act['at']} {act['actor']}: {act['action']} {act['memory_id']}{into}{undone}"


def _render_job(job: Mapping[str, Any]) -> str:
    run = job["last_run"]
    last = ""
    if run is not None:
        counts = f" ({flatten(run['counts'])})" if run["counts"] else ""
        # The error may contain text from any source, so it is quoted.
        state = "runs" if run["ok"] is None else "went well" if run["ok"] else f"failed with {quote(run['error'])}"
        last = f", last run {run['started_at']} {state}{counts}"
    return f"- {job['name']} {job['summary']}; {job['schedule']}, next {job['next_run_at']}{last}"


_OWN_TOOLS: tuple[Tool, ...] = (
    Tool(
        "edit",
        "Correct a memory; the old text stays in its history.",
        edit,
        {
            "id": ID,
            "content": TEXT,
            "importance": NUMBER,
            "tags": TAGS,
            "metadata": record(agent=TEXT),
            "pinned": FLAG,
            "details": DETAILS,
            "branch": TEXT,
        },
        ("id",),
        effect=Effect.ADDS,
    ),
    Tool("restore", "Restore an archived memory.", restore, {"id": ID}, ("id",), effect=Effect.ADDS),
    Tool(
        "link",
        "Link a memory to another one, or remove the link.",
        link,
        {
            "id": ID,
            "kind": one_of(kind for kind in EdgeKind if kind is not EdgeKind.NEXT_IN_SESSION),
            "to": ID,
            "remove": FLAG,
        },
        ("id", "kind", "to"),
        effect=Effect.ADDS,
    ),
    Tool(
        "list",
        "Page through memories without a search, newest first: of a kind, of a session, or archived ones.",
        list_memories,
        {"kind": one_of(Kind), "session_id": TEXT, "archived": FLAG, **PAGE},
    ),
    Tool(
        "why",
        "Explain why a recall does or does not find a memory.",
        why,
        {"query": TEXT, "id": ID},
        ("query", "id"),
    ),
    Tool(
        "audit",
        "List automatic merges, archives and ends of facts; undo reverts one by its id.",
        audit,
        {"undo": ID, **PAGE},
        effect=Effect.ADDS,
        reading=Reading("List automatic merges, archives and ends of facts.", tuple(PAGE)),
    ),
    Tool(
        "incognito",
        "Make a session incognito: nothing of it is stored (on: false ends that). Without session_id list them.",
        incognito,
        {"session_id": TEXT, "on": FLAG},
        effect=Effect.ADDS,
        reading=Reading("List the incognito sessions."),
    ),
    Tool(
        "jobs",
        "List the maintenance jobs, or run one now by its name.",
        jobs,
        {"run": TEXT},
        effect=Effect.ADDS,
        reading=Reading("List the maintenance jobs."),
    ),
    Tool("stats", "Counts, sizes and pending work.", stats),
    *SESSION_TOOLS,
)

# The tools that `more_tools` reveals in a session with the core profile.
REVEALED: tuple[Tool, ...] = tuple(
    arrange(_OWN_TOOLS, (tool for module in TOOL_MODULES for tool in module.TOOLS if not tool.is_core))
)
PROFILES: Mapping[str, tuple[Tool, ...]] = {
    "core": (*CORE, MORE_TOOLS),
    "full": (*CORE, *REVEALED),
    NO_TOOLS: (),
}
