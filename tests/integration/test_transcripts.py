"""Each record of a transcript is read once, in the project where it was said, whatever file it is copied to."""
# Reported of comparable tools: steipete/CodexBar#1002, langfuse/claude-observability-plugin#33

import json

import pytest

from pipeline.features.workspaces.identify import identify
from pipeline.kernel.errors import StoreBusy
from pipeline.sessions import intake_usecases as session_intake
from tests.fakes.in_process import digest_all, flush_notes
from tests.fakes.statements import MarkedStatements

A, B = "11111111-aaaa-4aaa-8aaa-000000000001", "22222222-bbbb-4bbb-8bbb-000000000002"
RULE = "rule: we always run the migrations before the rollout"


class Host:
    """A host that keeps transcripts in a folder, and whose turns end."""

    def __init__(self, client, container, folder):
        self._client, self._container = client, container
        self.folder = folder

    def path(self, session):
        return self.folder / f"{session}.jsonl"

    def write(self, session, *records):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path(session).write_text("".join(f"{json.dumps(record)}\n" for record in records))

    def end(self, session, cwd="", name="Stop", **fields):
        event = {"hook_event_name": name, "session_id": session, "cwd": str(cwd)}
        answer = self._client.post(
            "/hooks/claude-code", {**event, "transcript_path": str(self.path(session)), **fields}
        )
        assert (answer.status_code, answer.get_data()) == (200, b"")
        flush_notes(self._container)

    def said(self, session, workspace="default"):
        found = self._client.get(f"/v1/sessions/{session}", workspace=workspace)
        return [] if found.status_code == 404 else [one["content"] for one in reversed(found.get_json()["said"])]

    def errors(self, workspace="default"):
        return [one["message"] for one in self._client.get("/v1/errors", workspace=workspace).get_json()["items"]]


@pytest.fixture
def host(client, container, tmp_path):
    client.write("anything")
    return Host(client, container, tmp_path / ".claude" / "projects" / "slug")


@pytest.fixture
def projects(tmp_path):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)
    return folders


def record(text, number, session=A, role="user", **fields):
    return {
        "type": role,
        "uuid": f"e5bb4d6d-0000-4000-8000-{number:012}",
        "timestamp": f"2026-11-24T09:{number:02}:00.000Z",
        "sessionId": session,
        "message": {"role": role, "content": text},
    } | fields


def trust_of(client, text):
    return [one["trust"] for one in client.get("/v1/memories").get_json()["items"] if text in one["content"]]


# Field reports: `claude --resume A --fork-session` copies records into the file of a new session.
COPIED = {
    "session rewritten": {"session": B},
    "session kept": {"session": A},
    "session and uuid rewritten": {"session": B, "uuid": "another"},
    "session rewritten, time lost": {"session": B, "timestamp": None},
}


@pytest.mark.parametrize("copied", COPIED)
def test_a_fork_is_read_from_its_own_records_and_raises_no_trust(client, host, worker, copied):
    worker._classifier = MarkedStatements
    fields = dict(COPIED[copied])
    host.write(A, record(RULE, 1), record("Noted.", 2, role="assistant"))
    host.end(A)
    digest_all(worker)
    assert trust_of(client, "migrations") == ["evidence"]
    session = fields.pop("session")
    copies = [record(RULE, 1, session, **fields), record("Noted.", 2, session, role="assistant")]
    host.write(B, *copies, record("Now rename the button", 3, B))
    host.end(B)
    digest_all(worker)
    assert host.said(B) == ["Now rename the button"]
    assert trust_of(client, "migrations") == ["evidence"]


def test_statement_repeated_in_another_session_stays_evidence(client, host, worker):
    worker._classifier = MarkedStatements
    for number, session in enumerate((A, B)):
        host.write(session, record(RULE, number, session))
        host.end(session)
        digest_all(worker)
        assert host.said(session) == [RULE]
    assert trust_of(client, "migrations") == ["evidence"]


def test_a_fork_is_nobodys_word_again_in_another_project(client, host, projects):
    first, second = projects
    host.write(A, record(RULE, 1, cwd=str(first)))
    host.end(A, first)
    host.write(B, record(RULE, 1, B, cwd=str(second)), record("A new one", 2, B, cwd=str(second)))
    host.end(B, second)
    assert host.said(A, identify(first).id) == [RULE]
    assert host.said(B, identify(second).id) == ["A new one"]


def test_each_turn_is_of_the_project_in_which_it_was_said(client, host, projects):
    """A session that moves on takes nothing along: neither what was read before nor what was not."""
    first, second = projects
    (first / "src").mkdir()
    lines = [record("The customer is Okapi", 1, cwd=str(first)), record("Okapi, in src", 2, cwd=str(first / "src"))]
    host.write(A, lines[0])
    host.end(A, first)
    host.write(A, *lines, record("We build the shop", 3, cwd=str(second)), record("Without a folder", 4))
    host.end(A, second)
    host.end(A, second, "SessionEnd")
    assert host.said(A, identify(first).id) == ["The customer is Okapi", "Okapi, in src"]
    assert host.said(A, identify(second).id) == ["We build the shop", "Without a folder"]
    assert host.said(A) == []


@pytest.mark.parametrize("cwd", ["\x00", "relative", "~", 7, None, ""])
def test_turn_without_a_valid_folder_belongs_to_the_events_project(host, projects, cwd):
    host.write(A, record("Hello", 1, cwd=cwd))
    host.end(A, projects[0])
    assert host.said(A, identify(projects[0]).id) == ["Hello"]
    assert host.errors() == []


@pytest.mark.parametrize("silent", [0, 1])
def test_turns_are_not_stored_while_either_project_is_incognito(client, host, projects, silent):
    first, second = projects
    quiet = identify(projects[silent]).id
    client.post("/v1/incognito", {"session_id": A}, workspace=quiet)
    lines = [record("The customer is Okapi", 1, cwd=str(first))]
    host.write(A, *lines)
    host.end(A, second)
    client.post("/v1/incognito", {"session_id": A, "on": False}, workspace=quiet)
    host.write(A, *lines, record("All may know", 2, cwd=str(first)))
    host.end(A, second)
    assert host.said(A, identify(first).id) == ["All may know"]
    assert host.said(A, identify(second).id) == []


def test_turns_of_a_project_with_capture_off_are_not_read_later(client, host, container, projects):
    first, second = projects
    client.write("anything", workspace=identify(first).id)
    config = container.settings.paths.workspace(identify(first).id).config
    config.write_text('capture = "off"\n')
    lines = [record("In silence", 1, cwd=str(first)), record("Aloud", 2, cwd=str(second))]
    host.write(A, *lines)
    host.end(A, first)
    config.write_text('capture = "on"\n')
    host.write(A, *lines, record("Again aloud", 3, cwd=str(first)))
    host.end(A, first)
    assert host.said(A, identify(first).id) == ["Again aloud"]
    assert host.said(A, identify(second).id) == ["Aloud"]


def test_failed_project_is_read_again_without_duplicates_in_another(host, projects, monkeypatch):
    first, second = projects
    store, broken = session_intake.store_part, ["Of the first"]

    def refuse(db, part, *rest, **options):
        if part.messages[0].content in broken:
            raise StoreBusy("another writer has the file")
        return store(db, part, *rest, **options)

    monkeypatch.setattr(session_intake, "store_part", refuse)
    host.write(A, record("Of the first", 1, cwd=str(first)), record("Of the second", 2, cwd=str(second)))
    host.end(A, first)
    assert host.errors(identify(first).id) == ["another writer has the file"]
    broken.clear()
    host.end(A, first, "SessionEnd")
    assert host.said(A, identify(first).id) == ["Of the first"]
    assert host.said(A, identify(second).id) == ["Of the second"]


# How hosts rewrite a transcript: the lines before, and those after.
ONE, TWO, THREE = (record(f"Number {number}", number) for number in (1, 2, 3))
SUMMARY = record("This session is being continued", 9, isCompactSummary=True)
REWRITTEN = {
    "truncated": [ONE],
    "truncated and written to": [ONE, THREE],
    "rewound, the branch is left in place": [ONE, TWO, THREE | {"parentUuid": ONE["uuid"]}],
    "compacted, with a copy of the last": [ONE, TWO, SUMMARY, TWO, THREE],
    "compacted into the same file": [SUMMARY, TWO, THREE],
    "replaced by a longer file": [record("Number 0", 0, isMeta=True, slug="x" * 2000), ONE, TWO, THREE],
    "in another order": [THREE, TWO, ONE],
    "as large as before": [ONE, record("Number 3", 3)],
}


@pytest.mark.parametrize("rewritten", REWRITTEN)
def test_a_rewritten_transcript_repeats_nothing_and_loses_nothing(host, rewritten):
    host.write(A, ONE, TWO)
    host.end(A)
    lines = REWRITTEN[rewritten]
    host.write(A, *lines)
    host.end(A)
    is_new = any(line["message"]["content"] == "Number 3" for line in lines)
    assert host.said(A) == ["Number 1", "Number 2", *(["Number 3"] if is_new else [])]


def test_a_host_that_names_no_record_is_believed_by_time_and_words(host):
    lines = [record("Number 1", 1, uuid=None), record("Number 1", 2, uuid=None)]
    host.write(A, *lines)
    host.end(A)
    host.write(A, *lines[::-1])
    host.end(A)
    assert host.said(A) == ["Number 1", "Number 1"]


@pytest.mark.parametrize("linked", ["the host's folder", "projects", "the session's folder", "a file within"])
def test_a_transcript_behind_a_link_is_read(host, tmp_path, linked):
    """Dotfile managers put links in the place of folders and files."""
    place = {
        "the host's folder": host.folder.parents[1],
        "projects": host.folder.parent,
        "the session's folder": host.folder,
        "a file within": host.path(A),
    }[linked]
    host.write(A, ONE)
    target = host.folder.parent / "kept.jsonl" if linked == "a file within" else tmp_path / "dotfiles" / "kept"
    if linked == "the session's folder":
        target = host.folder.parent / "kept"
    target.parent.mkdir(exist_ok=True)
    place.rename(target)
    place.symlink_to(target)
    host.end(A)
    assert host.said(A) == ["Number 1"]
    assert host.errors() == []


@pytest.mark.parametrize("refused", ["a link out", "a name", "a folder", "no projects", "a way around", "a loop"])
def test_any_other_file_is_refused_and_named_once(host, tmp_path, refused):
    host.folder.mkdir(parents=True)
    outside = tmp_path / "outside" / "secret.jsonl"
    outside.parent.mkdir()
    outside.write_text(json.dumps(ONE) + "\n")
    path = host.path(A)
    match refused:
        case "a link out":
            path.symlink_to(outside)
        case "a name":
            path = host.path("other")
            path.write_text(json.dumps(ONE) + "\n")
        case "a folder":
            path.mkdir()
        case "no projects":
            path = outside.with_name(f"{A}.jsonl")
            outside.rename(path)
        case "a way around":
            outside.rename(outside.with_name(f"{A}.jsonl"))
            path = host.folder / ".." / ".." / ".." / "outside" / f"{A}.jsonl"
        case "a loop":
            path.symlink_to(path)
    for name in ("Stop", "PreCompact", "Stop"):
        host.end(A, name=name, transcript_path=str(path))
    assert host.said(A) == []
    [error] = host.errors()
    assert str(path) in error
    assert "was not read" in error


def test_words_that_an_event_brings_are_known_by_the_hosts_record(client, host):
    said = {"role": "user", "content": "We use pnpm", "at": "2026-11-24T09:00:00Z", "id": "t1 user"}
    for session in (A, B):
        host.end(session, said=[said, {"role": "user", "content": "Nobody else wrote this"}])
    assert host.said(A) == ["We use pnpm", "Nobody else wrote this"]
    assert host.said(B) == ["Nobody else wrote this"]
