"""Tools of the full profile for sessions."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.kernel.git.line_commit import locate_line
from pipeline.text.quoting import ANYBODY, quote
from web.mcp.rendering import render_memory, render_session, shorten
from web.mcp.tool import Tool, ToolCall, ToolResult, limit, one_of, segment, text

TURN_CHARS = 300
SUBJECT_CHARS = 500
_LINE = re.compile(r"(.+?):(\d+)(?::\d+)?")


def sessions(call: ToolCall) -> ToolResult:
    """List or search sessions, or show one of them."""
    session_id = call.arguments.get("id")
    if session_id is None and call.arguments.get("query"):
        found = call.server.call("GET", "/v1/sessions/search", query=call.pick("query", "limit"))["items"]
        return ToolResult("\n".join(render_session(session, call.now) for session in found) or "No session matches.")
    if session_id is None:
        page = call.server.call("GET", "/v1/sessions", query=call.pick("limit", "cursor"))
        lines = [
            f"- {quote(session['id'])} {session['last_at'][:16]}: {quote(session['name'] or 'no name')} "
            f"({session['turns']} turns, {session['actions']} actions, {session['memories']} memories)"
            for session in page["items"]
        ]
        more = [f"more with cursor {page['next_cursor']}"] if page["next_cursor"] else []
        return ToolResult("\n".join([*lines, *more]) or "There are no sessions.")
    record = call.server.call("GET", f"/v1/sessions/{segment(str(session_id))}")
    lines = [f"session {quote(record['session']['name'] or record['session']['id'])}"]
    lines += [f"- {turn['role']}: {ANYBODY.say(turn['content'][:TURN_CHARS])}" for turn in reversed(record["said"])]
    lines += [f"- {action['type']} {quote(action['target'])}{_failure(action)}" for action in reversed(record["did"])]
    lines += [
        f"- {'' if concluded['is_current'] else 'earlier '}{concluded['kind']}: {ANYBODY.say(concluded['content'])}"
        for concluded in record["concluded"]
    ]
    lines += [render_memory(shorten(memory), call.shown, call.now) for memory in record["learnt"]]
    return ToolResult("\n".join(lines), ids=[memory["id"] for memory in record["learnt"]])


def _failure(action: Mapping[str, Any]) -> str:
    if action["ok"]:
        return ""
    code = f" with exit status {action['exit_code']}" if action.get("exit_code") is not None else ""
    return f" (failed{code}{': ' + quote(action['error']) if action.get('error') else ''})"


def history(call: ToolCall) -> ToolResult:
    """Answer a question from past sessions."""
    ask, about = str(call.arguments["ask"]), str(call.arguments.get("about", ""))
    query = {"ask": ask, "about": about} | call.pick("limit")
    if ask == "blame" and call.folder:
        query |= _locate(call.folder, about)
    answer = call.server.call("GET", "/v1/history", query=query)
    lines = [_render_remedy(remedy) for remedy in answer["remedies"]]
    lines += [f"- {quote(one['command'])} ({one['successes']}×, {one['last_at'][:10]})" for one in answer["commands"]]
    lines += [line for session in answer["sessions"] for line in _render_file_session(session)]
    lines += [render_memory(shorten(memory), call.shown, call.now) for memory in answer["memories"]]
    for error in answer["errors"]:
        lines.append(f"- {quote(error['error'])}: {error['sessions']} sessions, last {error['last_at'][:10]}")
        lines += [f"  {_render_remedy(error['remedy'])}"] if error["remedy"] else []
    nothing = "No remedy is known." if ask == "fix" else "Past sessions have no answer."
    return ToolResult("\n".join(lines) or nothing, ids=[memory["id"] for memory in answer["memories"]])


def _locate(folder: str, about: str) -> dict[str, str]:
    """Return a file's path in its checkout, and the commit of the line that `PATH:LINE` names."""
    match = _LINE.fullmatch(about)
    named, line = (about, None) if match is None else (match[1], int(match[2]))
    path, commit = locate_line(Path(folder), named, line)
    named = {"commit_at": commit.at, "commit_subject": commit.subject[:SUBJECT_CHARS]} if commit else {}
    return {"about": path} | named


def _render_remedy(remedy: Mapping[str, Any]) -> str:
    steps = [f"{step['type']} {quote(step['target'])}" for step in remedy["steps"]]
    worked = "worked" if remedy["confirmed"] else "the error did not come back"
    similar = "" if remedy["likeness"] == 1 else f"; similar error: {quote(remedy['error'] or '')}"
    why = f"; agent explained: {quote(remedy['explanation'])}" if remedy["explanation"] else ""
    what = ", then ".join(steps) or "run again without a change"
    return f"- {what} ({worked} in {remedy['sessions']} sessions, {remedy['at'][:10]}{similar}{why})"


def _render_file_session(session: Mapping[str, Any]) -> Iterator[str]:
    name = quote(session["session_name"] or session["session_id"])
    wrote = ", made the commit of this line" if session["wrote_line"] else ""
    yield f"- {session['last_at'][:10]} {name}: {session['edits']} edits{wrote}"
    for decision in session["decisions"]:
        yield f"  - {decision['kind']}: {ANYBODY.say(decision['text'])}"


SESSION_TOOLS = (
    Tool(
        "history",
        "Ask past sessions. fix: what solved an error; how: the command for a task; blame: sessions and decisions "
        "behind PATH or PATH:LINE; friction: errors that return.",
        history,
        {"ask": one_of(("fix", "how", "blame", "friction")), "about": text("Error, task or path"), "limit": limit(50)},
        ("ask",),
        reads_folder=True,
    ),
    Tool(
        "sessions",
        "List earlier sessions, newest first; with query search what was said in them; "
        "with id show the messages, actions, conclusions and memories of one.",
        sessions,
        {
            "query": text("What was said"),
            "id": text("Session ID"),
            "limit": limit(200),
            "cursor": text("next_cursor of the previous page"),
        },
    ),
)
