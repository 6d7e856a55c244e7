"""What a tool is: a name that a model chooses by, schemas, and what it does."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote

from pipeline.errors import FieldError, InvalidField, ReverieError
from web.mcp.rendering import ShownIds
from web.mcp.values import accepts_value, fit_value, is_scalar

Schema = dict[str, Any]

# The few JSON schemas that tools are described with.
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}
TIME: Schema = {"type": "string", "description": "RFC 3339 date-time with offset, or a date"}
SESSION: Schema = {"type": "string", "description": "Your session"}
ID: Schema = {"type": "string"}

log = logging.getLogger(__name__)


class ToolFailed(ReverieError):
    """Say in one line, to a model, why a tool could not answer."""


class Effect(StrEnum):
    """What calling a tool does to the memory; hosts ask their user accordingly."""

    READS = "reads"
    ADDS = "adds"
    FORGETS = "forgets"


class Server(Protocol):
    """What a tool asks: the HTTP contract."""

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Send one request and return the answer's JSON; raise ReverieError for anything but success."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: whom to ask, which ids were shown, the caller's name, folder and session, the arguments."""

    server: Server
    shown: ShownIds
    agent: str | None
    folder: str
    arguments: Mapping[str, Any]
    session: str | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def pick(self, *names: str) -> dict[str, Any]:
        """Return those of the named arguments that were given."""
        return {name: self.arguments[name] for name in names if name in self.arguments}

    def id(self, name: str = "id") -> str:
        """Return an argument that names a memory, whole, as a part of a path."""
        return segment(self.resolve_id(str(self.arguments[name]), name))

    def resolve_id(self, given: str, name: str) -> str:
        """Return the id of the memory that is meant; raise InvalidField where there is none."""
        return self.shown.resolve_id(given, name, lambda end: str(self.server.call("GET", f"/v1/memories/{end}")["id"]))

    def origin(self) -> dict[str, str]:
        """Return as whose what is stored is: an agent's, in its session."""
        return {"source": "agent"} | self.own_session()

    def own_session(self) -> dict[str, str]:
        """Return the session that the host told, else the one that the caller named, if there is one."""
        # Hooks, the journal and incognito know a session as its host does; a model may have made its name up.
        session = self.session or self.arguments.get("session_id")
        return {"session_id": session} if session else {}

    def viewer(self) -> dict[str, str]:
        """Return as whom the caller may see what is private to somebody."""
        found = {"agent": self.agent, "session": self.own_session().get("session_id")}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool: a text for a model, and for programs flags and the ids that it is about.

    There is no structured answer: hosts give their model that one instead of the text.
    """

    text: str
    flags: Mapping[str, bool] = field(default_factory=dict)
    ids: Sequence[str] = ()
    scores: Sequence[float] = ()

    @property
    def meta(self) -> dict[str, Any] | None:
        """Return what no model reads: whole ids of what the text is about, how well each answers, and the flags."""
        lists = {"reverie/ids": list(self.ids), "reverie/scores": list(self.scores)}
        known = {name: values for name, values in lists.items() if values}
        return known | {f"reverie/{name}": value for name, value in self.flags.items()} or None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; `takes` are the properties of its arguments.

    Those of `scalars` take a number, a flag and null as well: the APIs of models know no union of types.
    """

    name: str
    description: str
    run: Callable[[ToolCall], ToolResult]
    takes: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    effect: Effect = Effect.READS

    @property
    def input_schema(self) -> Schema:
        """Return the JSON schema of the arguments."""
        schema: Schema = {"type": "object", "properties": dict(self.takes), "additionalProperties": False}
        return schema | ({"required": list(self.required)} if self.required else {})


def validate_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without those left empty; raise InvalidField, naming each that cannot be taken."""
    # Models send null for what they leave out.
    given = {
        name: _fit(tool, name, value) for name, value in arguments.items() if value is not None or name in tool.scalars
    }
    problems = [
        FieldError(name, f"unknown; there are {', '.join(tool.takes) or 'none'}")
        for name in given
        if name not in tool.takes
    ]
    problems += [FieldError(name, "is required") for name in tool.required if name not in given]
    problems += [
        FieldError(name, f"must be {_describe_types(tool, name)}")
        for name, value in given.items()
        if name in tool.takes and not _takes(tool, name, value)
    ]
    if problems:
        raise InvalidField(*problems)
    return given


def _fit(tool: Tool, name: str, value: Any) -> Any:
    # What cannot be undone is done only if it is asked for as it must be.
    return value if name not in tool.takes or tool.effect is Effect.FORGETS else fit_value(tool.takes[name], value)


def _takes(tool: Tool, name: str, value: Any) -> bool:
    return is_scalar(value) if name in tool.scalars else accepts_value(tool.takes[name], value)


def _describe_types(tool: Tool, name: str) -> str:
    if name in tool.scalars:
        return "string or number or boolean or null"
    schema = tool.takes[name]
    return " or ".join(map(str, schema.get("enum") or [schema["type"]]))


def segment(text: str) -> str:
    """Return a text as one segment of a path; a dot, too, could lead to another path."""
    return quote(text, safe="").replace(".", "%2E")


def call_tool(tool: Tool, call: ToolCall) -> ToolResult:
    """Run a tool; raise ToolFailed, which names the field where there is one, for whatever went wrong."""
    try:
        arguments = validate_arguments(tool, call.arguments)
        return tool.run(replace(call, arguments=arguments))
    except ReverieError as error:
        raise ToolFailed(str(error)) from error
    except Exception as error:
        log.exception("tool %s", tool.name)
        raise ToolFailed(
            f"{tool.name} failed unexpectedly ({type(error).__name__}); the bridge's log says more"
        ) from error


def find_tool(tools: tuple[Tool, ...], name: str) -> Tool:
    """Return a tool; raise InvalidField for a name that no tool has."""
    for tool in tools:
        if tool.name == name:
            return tool
    raise InvalidField(FieldError("name", f"there is no such tool; there are {', '.join(t.name for t in tools)}"))


def describe_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as a host lists it."""
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
    """Return the schema of a name out of some."""
    return {"type": "string", "enum": list(names)}


def items(**properties: Schema) -> Schema:
    """Return the schema of a list of objects with these properties."""
    return {"type": "array", "items": record(**properties)}


def record(**properties: Schema) -> Schema:
    """Return the schema of an object with these properties. Gemini's API takes none without."""
    return {"type": "object", "properties": properties}


def limit(most: int) -> Schema:
    """Return the schema of how many to answer with."""
    return {"type": "integer", "minimum": 1, "maximum": most}


_HINTS: Mapping[str, dict[str, bool]] = {
    "reads": {"readOnlyHint": True, "openWorldHint": False},
    "adds": {"destructiveHint": False, "openWorldHint": False},
    "forgets": {"destructiveHint": True, "openWorldHint": False},
}
