"""Exports of other tools: those on disk, ones as large as is wished, and what every reading of one must hold to."""

import json
import re
from pathlib import Path

from pipeline.features.ingest.fields import Item, Skipped, Unchanged
from pipeline.kernel.records import MAX_CONTENT_CHARS, MAX_SESSION_ID_CHARS, MAX_TAGS, Source
from pipeline.write.prepare import prepare
from web.features.ingest.uploads import draft_body, problem_of_key

EXPORTS = Path(__file__).parents[1] / "data" / "exports"
WORDS = "The van from Feldkorb brings leeks, beets and chard to the north side before nine on every second day. "

_DIGEST = re.compile(r"[0-9a-f]{64}")
_TAG = re.compile(r"[a-z0-9-]{1,50}")


def load(name):
    """Return a fixture as JSON."""
    return json.loads((EXPORTS / name).read_text(encoding="utf-8"))


def write(path, value):
    """Write a value as JSON and return the path."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def read(reader, path, known=None):
    """Return everything that a reader reads, each reading held against what the door takes."""
    told = []
    readings = list(reader(Path(path), known or {}, lambda done, total: told.append((done, total))))
    for reading in readings:
        hold(reading)
    assert all(0 <= done <= total for done, total in told)
    assert told == [] or told[-1][0] == told[-1][1]
    return readings


def hold(reading):
    """Hold a reading against its contract."""
    assert 0 < len(reading.key) <= 1024
    if isinstance(reading, Skipped):
        assert reading.reason
    if isinstance(reading, Item):
        assert problem_of_key(reading.key) is None
        assert _DIGEST.fullmatch(reading.digest)
        assert reading.drafts
        for draft in reading.drafts:
            _hold_draft(draft)


def _hold_draft(draft):
    assert draft.source is Source.IMPORT
    assert 0 < len(draft.content) <= MAX_CONTENT_CHARS
    assert len(draft.tags) <= MAX_TAGS
    assert all(_TAG.fullmatch(tag) for tag in draft.tags)
    assert draft.session_id is None or len(draft.session_id) <= MAX_SESSION_ID_CHARS
    json.dumps(draft_body(draft), ensure_ascii=False, allow_nan=False).encode()
    assert prepare(draft).memory.content


def items(readings):
    """Return the items among readings by their keys."""
    return {one.key: one for one in readings if isinstance(one, Item)}


def reasons_by_key(readings):
    """Return the reasons of what was left out by its keys."""
    return {one.key: one.reason for one in readings if isinstance(one, Skipped)}


def again(reader, path):
    """Read twice, the second time knowing what came of the first; return the second readings."""
    known = {one.key: one.digest for one in read(reader, path) if isinstance(one, Item)}
    second = read(reader, path, known)
    assert {one.key for one in second if isinstance(one, Unchanged)} == known.keys()
    assert items(second) == {}
    return second


def chatgpt_conversation(number, exchanges=4, text=WORDS * 8):
    """Return a conversation as ChatGPT exports it."""
    mapping = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}}
    for step in range(2 * exchanges):
        mapping[f"n{step}"] = {
            "id": f"n{step}",
            "message": {
                "id": f"n{step}",
                "author": {"role": "assistant" if step % 2 else "user", "name": None, "metadata": {}},
                "create_time": 1_718_000_000.5 + 60 * step,
                "update_time": None,
                "content": {"content_type": "text", "parts": [f"Turn {step} of {number}. {text}"]},
                "status": "finished_successfully",
                "end_turn": True,
                "weight": 1.0,
                "metadata": {"citations": [], "model_slug": "gpt-4o", "finish_details": {"type": "stop"}},
                "recipient": "all",
                "channel": None,
            },
            "parent": f"n{step - 1}" if step else "root",
            "children": [f"n{step + 1}"] if step + 1 < 2 * exchanges else [],
        }
    return {
        "title": f"Talk {number}",
        "create_time": 1_718_000_000.5,
        "update_time": 1_718_000_900.5,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": f"n{2 * exchanges - 1}",
        "conversation_id": f"talk-{number}",
        "id": f"talk-{number}",
    }


def claude_conversation(number, exchanges=4, text=WORDS * 8):
    """Return a conversation as claude.ai exports it."""
    messages = [
        {
            "uuid": f"m{step}",
            "text": f"Turn {step} of {number}. {text}",
            "content": [{"type": "text", "text": f"Turn {step} of {number}. {text}", "citations": []}],
            "sender": "assistant" if step % 2 else "human",
            "created_at": f"2026-03-29T01:{step % 60:02d}:02.962122Z",
            "updated_at": f"2026-03-29T01:{step % 60:02d}:02.962122Z",
            "attachments": [],
            "files": [],
            "parent_message_uuid": f"m{step - 1}" if step else "00000000-0000-4000-8000-000000000000",
        }
        for step in range(2 * exchanges)
    ]
    return {
        "uuid": f"talk-{number}",
        "name": f"Talk {number}",
        "created_at": "2026-03-29T01:00:00.000000Z",
        "updated_at": "2026-03-29T02:00:00.000000Z",
        "account": {"uuid": "a"},
        "chat_messages": messages,
    }


def write_many(path, conversation, size, giant=0):
    """Write conversations until the file has `size` bytes, after one of `giant` bytes; return their count."""
    count = 0
    with path.open("wb") as file:
        file.write(b"[")
        if giant:
            file.write(json.dumps(conversation("giant", 1, WORDS * (giant // (2 * len(WORDS))))).encode() + b",\n")
        while file.tell() < size:
            file.write((b",\n" if count else b"") + json.dumps(conversation(count)).encode())
            count += 1
        file.write(b"]")
    return count
