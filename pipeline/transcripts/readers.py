"""The readers of all agents, by the agent's name. A reader's module is loaded when it is used."""

import importlib
from collections.abc import Mapping
from typing import Final

from pipeline.transcripts.reader import TranscriptReader

# The class `Reader` of the module `pipeline.transcripts.<module>`.
READERS: Final[Mapping[str, str]] = {
    "claude-code": "claude_code",
    "codex": "codex",
    "cursor": "cursor",
    "copilot-cli": "copilot_cli",
    "vscode-copilot": "vscode_copilot",
    "opencode": "opencode",
    "kilo": "kilo",
    "gemini-cli": "gemini_cli",
    "antigravity": "antigravity",
    "cline": "cline",
    "roo-code": "roo_code",
    "pi": "pi",
    "oh-my-pi": "oh_my_pi",
    "openclaw": "openclaw",
    "qwen-code": "qwen_code",
    "goose": "goose",
    "aider": "aider",
    "kimi-code": "kimi_code",
    "droid": "droid",
}


def load_reader(agent: str) -> TranscriptReader:
    """Return the reader of an agent."""
    reader: TranscriptReader = importlib.import_module(f"pipeline.transcripts.{READERS[agent]}").Reader()
    return reader
