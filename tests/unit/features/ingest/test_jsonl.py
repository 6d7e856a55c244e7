"""Lines of JSON are memories as the API tells them; each line stands and falls alone."""

import json

import pytest

from pipeline.features.ingest.jsonl import MAX_LINE_BYTES, read_jsonl
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Anchor, Kind, Scope, ScopeKind
from tests.fakes.exports import again, items, read, reasons_by_key

LISTED = {
    "id": "01JA0000000000000000000001",
    "content": "Chose Redis over RabbitMQ for the queue",
    "kind": "decision",
    "scope": {"kind": "workspace", "id": None},
    "tags": ["queue"],
    "metadata": {"ticket": "FK-12"},
    "source": "agent",
    "trust": "trusted",
    "importance": 0.7,
    "tier": "semantic",
    "pinned": False,
    "session_id": "s-1",
    "created_at": "2026-02-25T06:13:20.250Z",
    "occurred_at": "2026-02-24T06:13:20.250Z",
    "updated_at": "2026-02-25T06:13:20.250Z",
    "archived_at": None,
    "content_hash": "0" * 64,
    "recall_count": 3,
    "merge_count": 0,
    "details": {"reason": "less to run", "alternatives": ["RabbitMQ"]},
    "anchor": {"path": "app/queue.py", "lines": [3, 9], "content_hash": "a" * 64, "stale": None},
    "branch": "main",
    "candidate": False,
    "instructs": False,
    "valid_from": None,
    "valid_to": None,
}


def _file(tmp_path, *lines):
    path = tmp_path / "memories.jsonl"
    path.write_bytes(b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines) + b"\n")
    return path


def test_a_memory_as_it_is_listed_is_read_back(tmp_path):
    (item,) = items(read(read_jsonl, _file(tmp_path, LISTED))).values()
    (draft,) = item.drafts
    assert item.key == LISTED["id"]
    assert (draft.content, draft.kind, draft.importance) == (LISTED["content"], Kind.DECISION, 0.7)
    assert (draft.tags, draft.metadata, draft.session_id) == (("queue",), {"ticket": "FK-12"}, "s-1")
    assert draft.occurred_at == "2026-02-24T06:13:20.250Z"
    assert draft.details == LISTED["details"]
    assert draft.anchor == Anchor("app/queue.py", 3, 9, "a" * 64)
    assert (draft.branch, draft.scope) == ("main", Scope(ScopeKind.WORKSPACE))


def test_unknown_fields_become_metadata_and_empty_ones_are_ignored(tmp_path):
    line = {"content": "Vans leave at six.", "colour": "red", "vector": [0.123456789] * 4000, "tags": None, "kind": ""}
    line |= {"branch": "", "author": None, "shared_from": None, "anchor": {"path": "a.py", "checkout": "/x"}}
    (item,) = items(read(read_jsonl, _file(tmp_path, line | {"metadata": {"ticket": "FK-12"}}))).values()
    (draft,) = item.drafts
    assert draft.metadata == {"colour": "red", "ticket": "FK-12", "left_out": ["vector"]}
    assert (draft.kind, draft.tags, draft.branch, draft.anchor) == (Kind.FACT, (), None, Anchor("a.py"))


def test_a_page_of_the_list_is_as_many_memories(tmp_path):
    page = {"items": [LISTED, LISTED | {"id": "2"}, 3], "next_cursor": "17"}
    readings = read(read_jsonl, _file(tmp_path, page))
    assert items(readings).keys() == {LISTED["id"], "2"}
    assert reasons_by_key(readings) == {"line 1 #3": "not an object"}


def test_a_line_needs_no_more_than_its_text(tmp_path):
    (item,) = items(read(read_jsonl, _file(tmp_path, {"content": "Vans leave at six."}))).values()
    assert item.key == "line 1"
    assert item.drafts[0].kind is Kind.FACT
    assert item.drafts[0].occurred_at is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"content": 7}, "content: Input should be a valid string"),
        ({"content": " \u0000 "}, "content: String should have at least 1 character"),
        ({"kind": "hunch"}, "kind: Input should be 'fact', 'decision'"),
        ({"importance": 2}, "importance: Input should be less than or equal to 1"),
        ({"importance": True}, "importance: Input should be a valid number"),
        ({"tags": ["§ §"]}, "tags.0: must contain a letter from a to z or a digit"),
        ({"tags": ["a"] * 21}, "tags: Tuple should have at most 20 items"),
        ({"scope": {"kind": "galaxy"}}, "scope.kind: Input should be 'user', 'workspace'"),
        ({"scope": {"kind": "agent", "id": None}}, "scope.id: a scope of kind agent needs an id"),
        ({"occurred_at": "yesterday"}, "occurred_at: must be an RFC 3339 date-time"),
        ({"occurred_at": "2030"}, "occurred_at: must be an RFC 3339 date-time"),
        ({"occurred_at": "2026-01-01T00:00:00"}, "occurred_at: must be an RFC 3339 date-time"),
        ({"occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at: must be in the years 1 to 9999 in UTC"),
        ({"session_id": "s" * 257}, "session_id: String should have at most 256 characters"),
        ({"metadata": {"a": "x" * 17_000}}, "metadata: must have at most 16384 bytes as JSON"),
        ({"metadata": [1]}, "metadata: Input should be an object"),
        ({"details": {"reason": "r", "mood": "good"}}, "details.mood: a decision has no such field"),
        ({"anchor": {"path": "a", "lines": [9, 3]}}, "anchor.lines: must name the first line before the last"),
        ({"branch": "b" * 257}, "branch: String should have at most 256 characters"),
    ],
)
def test_a_field_that_cannot_be_taken_is_named_with_its_line(tmp_path, change, problem):
    readings = read(read_jsonl, _file(tmp_path, LISTED, LISTED | {"id": "2"} | change))
    assert items(readings).keys() == {LISTED["id"]}
    assert reasons_by_key(readings)["2"].startswith(f"line 2: {problem}")


@pytest.mark.parametrize("number", [b"NaN", b"1e999", b"-Infinity"])
def test_non_finite_numbers_are_reported(tmp_path, number):
    raw = json.dumps(LISTED | {"metadata": {"a": "here"}}).encode().replace(b'"here"', number)
    assert reasons_by_key(read(read_jsonl, _file(tmp_path, raw))) == {
        LISTED["id"]: "line 1: metadata: must contain only finite numbers"
    }


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"archived_at": "2026-02-25T06:13:20.250Z"}, "archived"),
        ({"candidate": True}, "waits for review"),
        ({"valid_to": "2026-02-25T06:13:20.250Z"}, "a fact that is no longer valid"),
    ],
)
def test_inactive_memories_are_skipped_with_a_reason(tmp_path, change, reason):
    assert reasons_by_key(read(read_jsonl, _file(tmp_path, LISTED | change))) == {LISTED["id"]: reason}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "not valid JSON"),
        (b'{"content": "half', "not valid JSON"),
        (b'{"content": "\xff"}', "not valid UTF-8"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested deeper than 64 levels"),
        (b"[1]", "not an object"),
        (b"7", "not an object"),
        (b'{"content": "' + b"x" * MAX_LINE_BYTES + b'"}', "longer than 8 MiB"),
    ],
)
def test_a_line_that_cannot_be_read_costs_itself_alone(tmp_path, line, reason):
    readings = read(read_jsonl, _file(tmp_path, {"content": "before"}, b"", line, {"content": "after"}))
    assert items(readings).keys() == {"line 1", "line 4"}
    assert reasons_by_key(readings) == {"line 3": reason}


def test_a_fact_that_belongs_to_a_key_begins_when_it_began(tmp_path):
    fact = LISTED | {
        "kind": "keyed_fact",
        "content": "ada editor: zed",
        "details": {"subject": "ada", "attribute": "editor", "value": "zed"},
        "valid_from": "2026-01-01T00:00:00.000Z",
    }
    (item,) = items(read(read_jsonl, _file(tmp_path, fact))).values()
    assert item.drafts[0].occurred_at == "2026-01-01T00:00:00.000Z"
    assert item.drafts[0].details["value"] == "zed"


def test_a_long_text_is_split(tmp_path):
    (item,) = items(read(read_jsonl, _file(tmp_path, {"content": "Vans leave at six. " * 1000}))).values()
    assert len(item.drafts) == 2


def test_signs_that_are_no_text_do_not_get_in(tmp_path):
    line = b'{"content": "a\\ud83d\\u0000b", "metadata": {"k\\udc00": "\\u202e"}}'
    (item,) = items(read(read_jsonl, _file(tmp_path, line))).values()
    assert (item.drafts[0].content, item.drafts[0].metadata) == ("ab", {"k": ""})


def test_jsonl_digest_ignores_recall_statistics(tmp_path):
    again(read_jsonl, _file(tmp_path, LISTED, {"content": "no id"}))
    known = {key: item.digest for key, item in items(read(read_jsonl, _file(tmp_path, LISTED))).items()}
    later = LISTED | {"recall_count": 9, "updated_at": "2026-09-01T00:00:00.000Z", "tier": "episodic"}
    assert items(read(read_jsonl, _file(tmp_path, later), known)) == {}
    assert items(read(read_jsonl, _file(tmp_path, LISTED | {"content": "Else"}), known)).keys() == known.keys()


def test_a_file_without_any_object_is_refused(tmp_path):
    for raw in (b"# Notes", b"[1,\n2]", b"\xff\xfe"):
        with pytest.raises(InvalidField, match="contains no JSON objects, one per line"):
            read(read_jsonl, _file(tmp_path, raw))
    with pytest.raises(InvalidField, match="is not a file"):
        read(read_jsonl, tmp_path)
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert read(read_jsonl, tmp_path / "empty.jsonl") == []
