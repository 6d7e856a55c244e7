"""Tools: name, description and schema for a model, and the function that runs."""

import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote

from pipeline.kernel.errors import FieldError, InvalidField, ReverieError
from pipeline.kernel.feature import LAST
from pipeline.kernel.records import MAX_SESSION_ID_CHARS
from pipeline.text.normalize import TAG
from web.hooks.spool.writes import Spooled
from web.http.json_text import mend_surrogates
from web.mcp.rendering import ShownIds

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fit_value(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value in the form of its schema; a value that cannot be converted stays unchanged.

    Hosts send lists, objects, numbers and flags as JSON in a text, integers as 3.0, and one item where a list of
    them is required. A text is read as JSON once.
    """
    kind = schema["type"]
    if isinstance(value, str) and kind != "string":
        value = _read_text(schema, value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "array":
        items = schema["items"]
        if not isinstance(value, list) and _has_type(items["type"], value):
            value = [value]
        return [fit_value(items, item) for item in value] if isinstance(value, list) else value
    if kind == "object" and isinstance(value, dict):
        known = schema.get("properties", {})
        return {name: fit_value(known[name], part) if name in known else part for name, part in value.items()}
    return value


def _read_text(schema: Mapping[str, Any], text: str) -> Any:
    """Return the value of a JSON text, or the text itself if the value has not the required type."""
    try:
        value = json.loads(mend_surrogates(text))
    except (ValueError, RecursionError):
        return text
    kinds = {"array": ("array", "object"), "integer": ("number",)}.get(schema["type"], (schema["type"],))
    return value if any(_has_type(kind, value) for kind in kinds) else text


def accepts_value(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is one of the schema's names or has its type. The server checks nested values."""
    return value in schema["enum"] if "enum" in schema else _has_type(schema["type"], value)


def is_scalar(value: Any) -> bool:
    """Return whether a value is null, a flag, a number or a text."""
    return value is None or any(_has_type(kind, value) for kind in ("string", "number", "boolean"))


def _has_type(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind]) and not (isinstance(value, float) and not math.isfinite(value))


Schema = dict[str, Any]

# JSON schemas of arguments.
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TAGS: Schema = {"type": "array", "items": {"type": "string", "pattern": f"^{TAG.pattern}$"}}
TIME: Schema = {"type": "string", "description": "RFC 3339 date-time with offset, or a date"}
SESSION: Schema = {"type": "string", "description": "Your session"}
ID: Schema = {"type": "string"}
TO: Schema = {"type": "string", "description": "A team to store it for, if the user says so"}
# Length of each part of a brief.
SHOWN_EACH = 8

log = logging.getLogger(__name__)


class ToolFailed(ReverieError):
    """Report to a model in one line why a tool failed."""


class Effect(StrEnum):
    """The effect of a tool on the memory. Hosts decide by it whether to ask their user."""

    READS = "reads"
    ADDS = "adds"
    FORGETS = "forgets"


class Server(Protocol):
    """The HTTP API as tools use it, over HTTP or in the same process."""

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send one request and return the answer's JSON; raise ReverieError for anything but success."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: the server, the shown ids, the caller's name, folder and session, and the arguments."""

    server: Server
    shown: ShownIds
    agent: str | None
    folder: str
    arguments: Mapping[str, Any]
    session: str | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def pick(self, *names: str) -> dict[str, Any]:
        """Return the named arguments that the call has."""
        return {name: self.arguments[name] for name in names if name in self.arguments}

    def id(self, name: str = "id") -> str:
        """Return the full id in an argument that names a memory, as a part of a path."""
        return segment(self.resolve_id(str(self.arguments[name]), name))

    def resolve_id(self, shown_id: str, name: str) -> str:
        """Return the full id of a memory; raise InvalidField if there is none."""
        return self.shown.resolve_id(
            shown_id, name, lambda end: str(self.server.call("GET", f"/v1/memories/{end}")["id"])
        )

    def origin(self) -> dict[str, str]:
        """Return the source of stored memories: an agent, in its session."""
        return {"source": "agent"} | self.own_session()

    def own_session(self) -> dict[str, str]:
        """Return the session that the host reports, else the session that the model names, if there is one."""
        # Hooks, the journal and incognito use the host's id of a session. A model may have invented its id.
        session = self.session or self.arguments.get("session_id")
        return {"session_id": session} if session else {}

    def viewer(self) -> dict[str, str]:
        """Return the viewer, who decides which private memories are visible."""
        names = {"agent": self.agent, "session": self.own_session().get("session_id")}
        return {name: value for name, value in names.items() if value}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool: a text for a model; for programs the ids of its memories and flags.

    There is no structured content, because hosts would give it to their model instead of the text.
    """

    text: str
    flags: Mapping[str, bool] = field(default_factory=dict)
    ids: Sequence[str] = ()
    scores: Sequence[float] = ()

    @property
    def meta(self) -> dict[str, Any] | None:
        """Return the metadata for programs: full ids and scores of the memories in the text, and the flags."""
        lists = {"reverie/ids": list(self.ids), "reverie/scores": list(self.scores)}
        known = {name: values for name, values in lists.items() if values}
        return known | {f"reverie/{name}": value for name, value in self.flags.items()} or None


@dataclass(frozen=True, slots=True)
class Reading:
    """The form of a tool that also writes, for sessions that may only read: its description and arguments."""

    description: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; `takes` are the schemas of its arguments.

    Arguments in `scalars` also accept a number, a flag or null, because the APIs of models support no union types.
    """

    name: str
    description: str
    run: Callable[[ToolCall], ToolResult]
    takes: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    effect: Effect = Effect.READS
    reading: Reading | None = None
    # Whether a call with these arguments stores a memory of a project, so that its own workspace is created.
    stores: Callable[[Mapping[str, Any]], bool] = lambda _arguments: False
    # Whether it reads files of the caller's folder: then it runs where these files are.
    reads_folder: bool = False
    # Whether the core profile has it, and its place among the tools of its profile.
    is_core: bool = False
    place: float = LAST

    @property
    def reading_form(self) -> "Tool | None":
        """Return the tool for a session that may only read, None if the tool only writes."""
        if self.effect is Effect.READS:
            return self
        if self.reading is None:
            return None
        takes = {name: self.takes[name] for name in self.reading.names}
        return replace(self, description=self.reading.description, takes=takes, required=(), effect=Effect.READS)

    @property
    def input_schema(self) -> Schema:
        """Return the JSON schema of the arguments; no `additionalProperties`, which Gemini's API refuses."""
        schema: Schema = {"type": "object", "properties": dict(self.takes)}
        return schema | ({"required": list(self.required)} if self.required else {})


@dataclass(frozen=True, slots=True)
class BriefPart:
    """A part of the overview: name, title, how its records are read from the API, how one is shown, and place."""

    name: str
    title: str
    read: Callable[[Server, Mapping[str, str]], list[Any]]
    render: Callable[[Mapping[str, Any], ShownIds, datetime], str]
    place: float = LAST


def validate_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without empty ones; raise InvalidField with each invalid argument."""
    # Models send null for arguments that they omit.
    present = {
        name: _fit(tool, name, value) for name, value in arguments.items() if value is not None or name in tool.scalars
    }
    problems = [
        FieldError(name, f"is unknown; use {', '.join(tool.takes) or 'no arguments'}")
        for name in present
        if name not in tool.takes
    ]
    problems += [FieldError(name, "is required") for name in tool.required if name not in present]
    problems += [
        FieldError(name, f"must be {_describe_types(tool, name)}")
        for name, value in present.items()
        if name in tool.takes and not _takes(tool, name, value)
    ]
    if problems:
        raise InvalidField(*problems)
    return present


def _fit(tool: Tool, name: str, value: Any) -> Any:
    # A tool whose effect cannot be undone runs only with exact arguments.
    return value if name not in tool.takes or tool.effect is Effect.FORGETS else fit_value(tool.takes[name], value)


def _takes(tool: Tool, name: str, value: Any) -> bool:
    return is_scalar(value) if name in tool.scalars else accepts_value(tool.takes[name], value)


def _describe_types(tool: Tool, name: str) -> str:
    if name in tool.scalars:
        return "string or number or boolean or null"
    schema = tool.takes[name]
    return " or ".join(map(str, schema.get("enum") or [schema["type"]]))


def segment(text: str) -> str:
    """Return a text as one segment of a path. Dots are encoded too: they could lead to another path."""
    return quote(text, safe="").replace(".", "%2E")


def call_tool(tool: Tool, call: ToolCall) -> ToolResult:
    """Run a tool; raise ToolFailed for any error, with the invalid field if there is one."""
    try:
        arguments = validate_arguments(tool, call.arguments)
        return tool.run(replace(call, arguments=arguments))
    except Spooled as spooled:
        # Not an error: a model would repeat the call.
        return ToolResult(str(spooled))
    except ReverieError as error:
        raise ToolFailed(str(error)) from error
    except Exception as error:
        log.exception("tool %s", tool.name)
        raise ToolFailed(
            f"{tool.name} failed unexpectedly ({type(error).__name__}). See the log of the MCP server."
        ) from error


def find_thread(meta: Any) -> str | None:
    """Return the session that a call names: Codex sends its thread, which is the session of its hooks."""
    thread = meta.get("threadId") if isinstance(meta, Mapping) else None
    return thread[:MAX_SESSION_ID_CHARS] if isinstance(thread, str) and thread else None


def find_tool(tools: tuple[Tool, ...], name: str) -> Tool:
    """Return the tool of a name; raise InvalidField for an unknown name."""
    for tool in tools:
        if tool.name == name:
            return tool
    raise InvalidField(FieldError("name", f"is not a tool; use one of {', '.join(t.name for t in tools)}"))


def describe_tool(tool: Tool) -> dict[str, Any]:
    """Return the description of a tool for hosts."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": _HINTS[tool.effect],
    }


def text(description: str) -> Schema:
    """Return the schema of a text."""
    return TEXT | {"description": description}


def one_of(names: Iterable[str]) -> Schema:
    """Return the schema of one of several names."""
    return {"type": "string", "enum": list(names)}


def items(**properties: Schema) -> Schema:
    """Return the schema of a list of objects with these properties."""
    return {"type": "array", "items": record(**properties)}


def record(**properties: Schema) -> Schema:
    """Return the schema of an object with these properties. Gemini's API requires at least one."""
    return {"type": "object", "properties": properties}


def limit(most: int) -> Schema:
    """Return the schema of a maximum number of results."""
    return {"type": "integer", "minimum": 1, "maximum": most}


_HINTS: Mapping[str, dict[str, bool]] = {
    "reads": {"readOnlyHint": True, "openWorldHint": False},
    "adds": {"destructiveHint": False, "openWorldHint": False},
    "forgets": {"destructiveHint": True, "openWorldHint": False},
}


def find_by_key(call: ToolCall) -> ToolCall:
    """Return the call with the id of the fact that it names by subject and attribute."""
    named = call.pick("subject", "attribute")
    if ("id" in call.arguments) == (len(named) == 2) or len(named) == 1:
        raise InvalidField(FieldError("id", "is required, or subject and attribute of a fact"))
    if not named:
        return call
    fact = call.server.call("GET", f"/v1/facts/{path_name(call, 'subject')}/{path_name(call, 'attribute')}")
    return replace(call, arguments={**call.arguments, "id": fact["id"]})


def path_name(call: ToolCall, name: str) -> str:
    """Return an argument as a part of the path of a fact."""
    # A canonical name has no slash, and a path would be cut at one.
    return segment(call.arguments[name].replace("/", " "))


MOST_IDS = 200
LONGEST_TEXT = 20_000
LONGEST_REASON = 500


def call_recorded(tool: Tool, call: ToolCall) -> ToolResult:
    """Run a tool and record the call; raise ToolFailed for any error."""
    began = time.perf_counter()
    try:
        answer = call_tool(tool, call)
    except ToolFailed as error:
        _note(tool, call, began, {"outcome": "failed", "reason": str(error)[:LONGEST_REASON]})
        raise
    result = {"outcome": "told", "text": answer.text[:LONGEST_TEXT], "memory_ids": list(answer.ids)[:MOST_IDS]}
    _note(tool, call, began, result)
    return answer


def _note(tool: Tool, call: ToolCall, began: float, result: Mapping[str, object]) -> None:
    host = re.sub(r"[^\w.:-]+", "-", call.agent or "")[:100] or "unknown"
    run = {"event": f"mcp:{tool.name}", "host": host, "took_ms": (time.perf_counter() - began) * 1000, **result}
    try:
        call.server.call("POST", "/v1/hook-runs", run | call.own_session())
    except ReverieError as error:
        # The model still gets its answer; only the record of it is missing.
        log.info("the call of %s was not recorded: %s", tool.name, error)
