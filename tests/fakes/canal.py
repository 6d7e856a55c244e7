"""A project of nine months on a canal: memories in two languages, for tests that need a long history."""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "data" / "canal.jsonl"


def load_canal() -> list[dict[str, Any]]:
    """Return the history as bodies of `POST /v1/memories/batch`."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
