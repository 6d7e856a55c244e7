"""The readers of all agents, by the agent's name. A reader's module is loaded when it is used."""

import importlib
from collections.abc import Mapping
from typing import Final

from pipeline.sessions.readers.reader import TranscriptReader

# The name for people; the module in `pipeline.sessions.readers`, and the class of the reader if it is not `Reader`.
READERS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": ("Claude Code", "claude_code"),
    "codex": ("Codex", "codex"),
    "cursor": ("Cursor", "cursor"),
    "copilot-cli": ("GitHub Copilot CLI", "copilot_cli"),
    "vscode-copilot": ("Copilot Chat in VS Code", "vscode_copilot"),
    "opencode": ("opencode", "opencode"),
    "kilo": ("Kilo CLI", "opencode:KiloReader"),
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
    "kimi-code": ("Kimi Code", "kimi_code"),
    "droid": ("Factory Droid", "droid"),
    "hermes": ("Hermes Agent", "hermes"),
}


def load_reader(agent: str) -> TranscriptReader:
    """Return the reader of an agent."""
    module, _, name = READERS[agent][1].partition(":")
    reader: TranscriptReader = getattr(
        importlib.import_module(f"pipeline.sessions.readers.{module}"), name or "Reader"
    )()
    return reader
