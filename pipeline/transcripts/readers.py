"""The readers of all agents, by the agent's name. A reader's module is loaded when it is used."""

import importlib
from collections.abc import Mapping
from typing import Final

from pipeline.transcripts.reader import TranscriptReader

# The module in `pipeline.transcripts`, and the class of the reader if it is not `Reader`.
READERS: Final[Mapping[str, str]] = {
    "claude-code": "claude_code",
    "codex": "codex",
    "cursor": "cursor",
    "copilot-cli": "copilot_cli",
    "vscode-copilot": "vscode_copilot",
    "opencode": "opencode",
    "kilo": "opencode:KiloReader",
    "gemini-cli": "gemini_cli",
    "antigravity": "antigravity",
    "cline": "cline",
    "roo-code": "cline:RooReader",
    "pi": "pi",
    "oh-my-pi": "pi:OhMyPiReader",
    "openclaw": "openclaw",
    "qwen-code": "qwen_code",
    "goose": "goose",
    "aider": "aider",
    "kimi-code": "kimi_code",
    "droid": "droid",
}


def load_reader(agent: str) -> TranscriptReader:
    """Return the reader of an agent."""
    module, _, name = READERS[agent].partition(":")
    reader: TranscriptReader = getattr(importlib.import_module(f"pipeline.transcripts.{module}"), name or "Reader")()
    return reader
