"""The interface of transcript readers: find an agent's sessions on this machine, and read what was said and done.

A reader only reads. It yields the person's own words, the agent's answers and its tool calls; it leaves out whatever
hosts and other tools put into a transcript: injected context, reminders, hook output, summaries, subagents' prompts,
file contents and tool output. Of a failed call it keeps the start of the output. Its module is loaded when it is used.
"""

import importlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from config.places import Places as Places  # noqa: PLC0414 - readers import the interface from here
from pipeline.kernel.store.turns import Role

# The part of a failed call's output that is read: the error is often at its end. The telling lines of it are stored.
ERROR_CHARS = 8000


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A file or database with one or more sessions: its agent, path, size in bytes and time of change."""

    agent: str
    path: Path
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A session: the agent and its id for the session, and what the transcript says of the session.

    Times are UTC texts. `parent` is the session that this one continues or copies.
    """

    agent: str
    id: str
    cwd: str = ""
    branch: str | None = None
    title: str | None = None
    started_at: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the person or the agent; `id` is the agent's id of the record.

    `folder` is the working directory, if it is not that of the session's start. `is_mid_turn` is whether the person
    wrote the message while the agent worked: no hook delivered it as a prompt. `is_unanswered` is whether the turn was
    interrupted or failed before the agent answered.
    """

    role: Role
    content: str
    at: str | None = None
    id: str | None = None
    folder: str = ""
    is_mid_turn: bool = False
    is_unanswered: bool = False


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call with the names that Claude Code uses (`Bash` with `command`; `Edit` and `Write` with `file_path`).

    `ok` is None if the transcript does not tell. `error` is the start of a failed call's output, `replaced` the text
    that an edit replaced, `folder` the working directory, if it is not that of the session's start.
    """

    tool: str
    arguments: Mapping[str, Any]
    ok: bool | None = None
    at: str | None = None
    id: str | None = None
    exit_code: int | None = None
    error: str = ""
    replaced: str = ""
    folder: str = ""


Entry = Said | ToolUse


@dataclass(frozen=True, slots=True)
class SessionPart:
    """Entries of one session in order, and the mark at which a later reading of the same file resumes.

    `left_out` counts records that are not imported, by reason; `problems` says what could not be read. `taken_back`
    are messages, of this part or earlier ones, that the person removed from the conversation.
    """

    session: SessionHead
    entries: tuple[Entry, ...]
    mark: str
    left_out: Counter[str] = field(default_factory=Counter)
    problems: tuple[str, ...] = ()
    taken_back: tuple[Said, ...] = ()


class TranscriptReader(Protocol):
    """Read one agent's sessions.

    A file is read in parts of bounded size. The part's mark is passed to the next reading of a file that has grown;
    a mark that no longer fits, because the file was rewritten, counts as none.
    """

    agent: ClassVar[str]

    def discover(self, places: Places) -> Iterator[TranscriptFile]:
        """Yield the agent's transcripts; nothing if the agent was never used on this machine."""

    def read(self, file: TranscriptFile, mark: str | None) -> Iterator[SessionPart]:
        """Yield what was said and done since a mark, or all of it without one."""


# The name for people; the module in `pipeline.sessions.readers`, and the class of the reader if it is not `Reader`.
READERS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": ("Claude Code", "claude_code"),
    "codex": ("Codex", "codex"),
    "cursor": ("Cursor", "cursor"),
    "copilot-cli": ("GitHub Copilot CLI", "event_logs:CopilotReader"),
    "vscode-copilot": ("Copilot Chat in VS Code", "vscode_copilot"),
    "opencode": ("opencode", "session_databases:OpencodeReader"),
    "kilo": ("Kilo CLI", "session_databases:KiloReader"),
    "gemini-cli": ("Gemini CLI", "gemini_cli"),
    "antigravity": ("Antigravity", "antigravity"),
    "cline": ("Cline", "cline"),
    "roo-code": ("Roo Code", "cline:RooReader"),
    "pi": ("pi", "pi"),
    "oh-my-pi": ("oh-my-pi", "pi:OhMyPiReader"),
    "openclaw": ("OpenClaw", "pi:OpenClawReader"),
    "qwen-code": ("Qwen Code", "gemini_cli:QwenReader"),
    "goose": ("Goose", "goose"),
    "aider": ("aider", "aider"),
    "kimi-code": ("Kimi Code", "event_logs:KimiCodeReader"),
    "droid": ("Factory Droid", "event_logs:DroidReader"),
    "hermes": ("Hermes Agent", "session_databases:HermesReader"),
}


def load_reader(agent: str) -> TranscriptReader:
    """Return the reader of an agent."""
    module, _, name = READERS[agent][1].partition(":")
    reader: TranscriptReader = getattr(
        importlib.import_module(f"pipeline.sessions.readers.{module}"), name or "Reader"
    )()
    return reader
