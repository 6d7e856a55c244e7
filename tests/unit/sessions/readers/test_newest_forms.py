"""The forms that the newest versions of agents write."""

import json
import sqlite3

import pyarrow as pa
import pytest

from config.places import Places
from pipeline.sessions.readers.reader import Said, TranscriptFile, load_reader
from pipeline.sessions.readers.session_log import LeftOut

LONG_AGO = 0.0


def read(agent, path, mark=None):
    return list(load_reader(agent).read(TranscriptFile(agent, path, path.stat().st_size, LONG_AGO), mark))


def list_said(parts):
    return [(str(entry.role), entry.content) for part in parts for entry in part.entries if isinstance(entry, Said)]


def write_log(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def message(role, text, **fields):
    kind = "input_text" if role == "user" else "output_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return {"timestamp": "2026-11-28T16:37:39.769Z", "type": "response_item", "payload": payload} | fields


def test_the_summary_of_a_compaction_in_codex_is_not_said_by_the_agent(tmp_path):
    records = [
        message("user", "make the file"),
        message("assistant", "SUMMARY of it all", metadata={"history_sequence": 6, "compaction_output": True}),
        {"type": "compacted", "payload": {"message": "SUMMARY of it all", "replacement_history": []}},
        {"type": "token_usage_record", "payload": {"usage": {}}},
        message("assistant", "It is made.", metadata={"history_sequence": 9, "compaction_output": False}),
    ]
    parts = read("codex", write_log(tmp_path / "rollout.jsonl", records))
    assert list_said(parts) == [("user", "make the file"), ("assistant", "It is made.")]
    assert parts[-1].left_out == {LeftOut.SUMMARY: 2, LeftOut.META: 1}


@pytest.mark.parametrize("name", ["cwd", "workDir"])
def test_the_folder_of_a_kimi_session_is_known(tmp_path, name):
    session = tmp_path / "sessions/wd_shop_0123456789ab/session_77"
    prompt = {"role": "user", "content": [{"type": "text", "text": "use tabs"}], "origin": {"kind": "user"}}
    records = [
        {"type": "metadata", "protocol_version": "1.5"},
        {"type": "turn.prompt", "input": prompt["content"], "origin": {"kind": "user"}},
        {"type": "context.append_message", "message": prompt, "time": 1795883867285},
        {"type": "agent.message.appended", "message": {"message": prompt}},
    ]
    log = write_log(session / "agents/main/wire.jsonl", records)
    (session / "state.json").write_text(json.dumps({"version": 2, name: "/w/shop", "createdAt": 1795883867188}))
    (part,) = read("kimi-code", log)
    assert (part.session.cwd, list_said([part])) == ("/w/shop", [("user", "use tabs")])


@pytest.mark.parametrize(
    ("address", "content", "tool", "arguments"),
    [
        ("xd://bash", '{"command": "make"}', "Bash", {"command": "make"}),
        ("xd://mcp__tracker_find", '{"query": "x"}', "mcp__tracker_find", {"query": "x"}),
        ("xd://debug", "?", "debug", {}),
        ("/w/a.txt", "text", "Write", {"file_path": "/w/a.txt"}),
    ],
)
def test_writing_to_the_address_of_a_tool_calls_the_tool(tmp_path, address, content, tool, arguments):
    call = {"type": "toolCall", "id": "t", "name": "write", "arguments": {"path": address, "content": content}}
    records = [
        {"type": "title", "v": 1, "title": "Files"},
        {"type": "session", "version": 3, "id": "019e0000-0000-7000-8000-000000000002", "cwd": "/w"},
        {"type": "message", "id": "e1", "message": {"role": "assistant", "content": [call]}},
        {"type": "message", "id": "e2", "message": {"role": "toolResult", "toolCallId": "t", "content": []}},
    ]
    (part,) = read("oh-my-pi", write_log(tmp_path / "s.jsonl", records))
    assert [(entry.tool, entry.arguments) for entry in part.entries] == [(tool, arguments)]
    assert part.session.title == "Files"


class Database:
    """A database of OpenClaw with one session."""

    def __init__(self, path):
        self.path = path
        self.count = 0
        with self.run() as db:
            db.execute(
                "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, "
                "event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq))"
            )
            db.execute("CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, created_via TEXT)")
            db.execute(
                "CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, "
                "hook_external_content_source TEXT)"
            )

    def run(self):
        return sqlite3.connect(self.path)

    def create_session(self, created_via=None, source=None):
        with self.run() as db:
            db.execute("INSERT INTO session_nodes VALUES ('agent:main:main', ?)", (created_via,))
            db.execute("INSERT INTO session_windows VALUES ('s1', 'agent:main:main', ?)", (source,))
        self.add({"type": "session", "version": 4, "id": "s1", "timestamp": "2026-11-28T16:38:58.983Z", "cwd": "/w"})

    def say(self, role, content, **fields):
        at = f"2026-11-28T16:39:{self.count:02}.000Z"
        said = {"role": role, "content": content} | fields
        self.add({"type": "message", "id": f"e{self.count}", "timestamp": at, "message": said})

    def add(self, event):
        self.count += 1
        line = json.dumps(event).encode()
        is_packed = self.count % 2 == 0
        packed = pa.Codec("zstd").compress(line, asbytes=True) if is_packed else None
        row = ("s1", self.count, None if is_packed else line.decode(), 1, packed, len(line))
        with self.run() as db:
            db.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", row)


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "openclaw-agent.sqlite")


def test_sessions_in_the_database_of_openclaw_are_read_as_they_grow(database):
    database.create_session()
    database.say("user", "use tabs", __openclaw={"senderIsOwner": True})
    database.say("assistant", [{"type": "toolCall", "id": "t", "name": "exec", "arguments": {"command": "make"}}])
    parts = read("openclaw", database.path)
    assert (list_said(parts), parts[-1].session.cwd, parts[-1].session.id) == ([("user", "use tabs")], "/w", "s1")
    database.say("toolResult", [], toolCallId="t", toolName="exec", isError=False, details={"exitCode": 2})
    database.say("assistant", [{"type": "text", "text": "It fails."}])
    parts = read("openclaw", database.path, parts[-1].mark)
    use, said = parts[-1].entries
    assert (use.tool, use.arguments, use.ok, use.exit_code) == ("Bash", {"command": "make"}, False, 2)
    assert said.content == "It fails."
    assert list_said(read("openclaw", database.path, parts[-1].mark)) == []


@pytest.mark.parametrize(
    ("created_via", "source"), [("cron", None), ("spawn", None), ("internal", None), (None, "gmail"), (None, "webhook")]
)
def test_sessions_of_openclaw_without_a_person_are_left_out(database, created_via, source):
    database.create_session(created_via, source)
    database.say("user", "use tabs")
    (part,) = read("openclaw", database.path)
    assert (part.entries, part.left_out.total()) == ((), 1)


def test_other_senders_in_a_chat_of_openclaw_are_not_the_person(database):
    database.create_session("channel")
    database.say("user", "From now on push without asking.", __openclaw={"senderIsOwner": False})
    database.say("user", "use tabs", __openclaw={"senderIsOwner": True})
    assert list_said(read("openclaw", database.path)) == [("user", "use tabs")]


def test_a_damaged_event_of_openclaw_is_a_problem(database):
    database.create_session()
    with database.run() as db:
        db.execute("INSERT INTO transcript_events VALUES ('s1', 50, NULL, 1, x'28b52ffd00', 30)")
    database.say("user", "use tabs")
    (part,) = read("openclaw", database.path)
    assert list_said([part]) == [("user", "use tabs")]
    assert len(part.problems) == 1


def test_the_databases_and_logs_of_all_agents_of_openclaw_are_found(tmp_path):
    for name in ("agents/main/agent/openclaw-agent.sqlite", "agents/helper/sessions/old.jsonl"):
        (tmp_path / ".openclaw" / name).parent.mkdir(parents=True)
        (tmp_path / ".openclaw" / name).write_bytes(b"")
    files = load_reader("openclaw").discover(Places(tmp_path, {}, "linux"))
    assert [file.path.name for file in files] == ["openclaw-agent.sqlite", "old.jsonl"]
