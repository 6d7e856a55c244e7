"""Export and import: a home as one file and back to the row, as notes that people edit, as lines of JSON."""

import contextlib
import gzip
import hashlib
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyrage
import pytest
from hypothesis import given, strategies as st

from pipeline.features.export import usecases as export
from pipeline.kernel.errors import Conflict, InvalidField, NotFound
from pipeline.kernel.records import Anchor, EdgeDraft, EdgeKind, Kind, Revision, Scope, ScopeKind
from pipeline.kernel.store import replicated_records
from pipeline.kernel.times import utc_text
from pipeline.write import revise
from tests.fakes.homes import Home, exchange_until_still, pair
from tests.fakes.passphrases import QuickPassphrases
from tests.fakes.properties import examples

pytestmark = pytest.mark.usefixtures("either_home")


@pytest.fixture
def quick_passphrases(monkeypatch):
    monkeypatch.setattr(pyrage, "passphrase", QuickPassphrases())


@pytest.fixture
def home(tmp_path):
    with contextlib.closing(Home(tmp_path / "home")) as made:
        yield made


@pytest.fixture
def other(tmp_path):
    with contextlib.closing(Home(tmp_path / "other")) as made:
        yield made


def fill(home):
    """Write something of every kind that a bundle has to carry."""
    first = home.say("The build uses make", tags=("build", "old"), metadata={"of": [1, {"deep": None}]})
    second = home.say("The build uses just", source="import")
    revise.edit(home.database(), first, Revision(content="The build uses task", pinned=True, importance=0.9))
    revise.add_edge(home.database(), second, EdgeDraft(EdgeKind.CONTRADICTS, first))
    home.say("The build uses just")
    for number, day in ((8123, 1), (9000, 5)):
        details = {"subject": "shop", "attribute": "port", "value": number}
        home.say("told", kind=Kind.KEYED_FACT, details=details, occurred_at=f"2026-01-0{day}T00:00:00.000Z")
    home.say("a thought", scope=Scope(ScopeKind.SESSION, "s1"), session_id="s1")
    gone, away = home.say("the flumadiddle"), home.say("put away")
    revise.purge(home.database(), gone)
    revise.archive(home.database(), away)
    home.say("Anchored", branch="main", expires_at="2030-01-01T00:00:00.000Z")
    home.say("I like tea", workspace="me")
    with home.database().write() as db:
        db.execute("UPDATE memory SET recall_count = 3, recalled_at = '2026-02-03T00:00:00.000Z' WHERE seq = 1")
    return first


def dump(home, workspace="default"):
    """Return all that a bundle carries of a workspace, as text."""
    with home.database(workspace).read() as db:
        keys = replicated_records.list_keys(db)
        told = replicated_records.read(db, keys)
        local = list(replicated_records.read_local_values(db))
        gone = sorted(row[0] for row in db.execute("SELECT memory_id FROM operation WHERE kind = 'purge'"))
    lines = [json.dumps([key, told[key]], sort_keys=True) for key in keys]
    return "\n".join([*lines, *(json.dumps(one, sort_keys=True) for one in local), *gone])


def write(home, target, phrase=None, workspaces=("default", "me")):
    return export.export_bundle(home.settings.paths, home.container.stores, target, workspaces, phrase)


def read(home, source, phrase=None):
    return export.import_bundle(home.settings.paths, home.container.stores, source, phrase)


@pytest.mark.usefixtures("quick_passphrases")
@pytest.mark.parametrize("phrase", [None, "correct horse battery staple"])
def test_bundle_restores_an_empty_store_row_by_row(home, other, tmp_path, phrase):
    fill(home)
    file = tmp_path / "all.bundle"
    counts = write(home, file, phrase)
    assert counts.memories == {"default": 7, "me": 1}
    assert (file.stat().st_mode & 0o777) == 0o600
    merged = read(other, file, phrase)
    assert merged.put_aside == []
    for workspace in ("default", "me"):
        assert dump(home, workspace) == dump(other, workspace)
    if phrase is None:
        assert "flumadiddle" not in gzip.decompress(file.read_bytes()).decode()


def test_a_bundle_that_is_read_twice_changes_nothing_more(home, other, tmp_path):
    fill(home)
    write(home, tmp_path / "b")
    read(other, tmp_path / "b")
    before = dump(other)
    again = read(other, tmp_path / "b")
    assert sum(again.applied.values()) == 0
    assert dump(other) == before


def test_bundle_read_into_a_nonempty_store_follows_merge_rules(home, other, tmp_path):
    first = fill(home)
    write(home, tmp_path / "b")
    read(other, tmp_path / "b")
    revise.edit(other.database(), first, Revision(content="The build uses bazel"))
    mine = other.say("only here")
    read(other, tmp_path / "b")
    assert other.get(first).content == "The build uses bazel"
    assert other.get(mine) is not None
    revise.purge(other.database(), first)
    read(other, tmp_path / "b")
    assert other.get(first) is None


def test_memories_signed_by_a_paired_device_are_not_applied_again(home, other, tmp_path):
    pair(home, other, url=f"dir:{tmp_path}/shared")
    home.say("signed")
    exchange_until_still(home, other)
    write(home, tmp_path / "b", workspaces=["default"])
    assert read(other, tmp_path / "b").applied == {"default": 0}


def spoil_cut(data):
    return data[: len(data) // 2]


def spoil_tail(data):
    return data[:-9]


def spoil_byte(data):
    return data[:100] + bytes([data[100] ^ 1]) + data[101:]


def spoil_lines(data):
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join([*lines[:3], *lines[4:]]))


def spoil_order(data):
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join([lines[0], lines[1], lines[3], lines[2], *lines[4:]]))


def spoil_version(data):
    return gzip.compress(gzip.decompress(data).replace(b'"version":1', b'"version":9', 1))


def spoil_other(_data):
    return b"PK\x03\x04 something else"


# An encrypted bundle has no lines to change.
SPOILS = (spoil_tail, spoil_byte, spoil_other)
SPOILS_OF_PLAIN = (*SPOILS, spoil_cut, spoil_lines, spoil_order, spoil_version)


def is_rejected(home, file, phrase):
    try:
        read(home, file, phrase)
    except InvalidField:
        return True
    return False


def list_accepted(home, other, file, phrase, spoils):
    """List the ways to damage a bundle that the other home does not notice."""
    write(home, file, phrase, home.settings.paths.workspace_ids())
    complete, accepted = file.read_bytes(), []
    for spoil in spoils:
        file.write_bytes(spoil(complete))
        if not is_rejected(other, file, phrase):
            accepted.append(spoil)
    file.write_bytes(complete)
    return accepted


@pytest.mark.usefixtures("quick_passphrases")
@pytest.mark.parametrize(("phrase", "spoils"), [(None, SPOILS_OF_PLAIN), ("correct horse", SPOILS)])
def test_an_incomplete_bundle_is_rejected(home, other, tmp_path, phrase, spoils):
    fill(home)
    assert list_accepted(home, other, tmp_path / "b", phrase, spoils) == []
    assert other.settings.paths.workspace_ids() == []


@pytest.mark.usefixtures("quick_passphrases")
def test_without_its_passphrase_a_bundle_stays_shut(home, other, tmp_path):
    fill(home)
    write(home, tmp_path / "b", "correct horse")
    with pytest.raises(InvalidField, match="--passphrase-file"):
        read(other, tmp_path / "b")
    with pytest.raises(InvalidField, match="passphrase does not open"):
        read(other, tmp_path / "b", "battery staple")


@pytest.mark.parametrize("either_home", ["plain"], indirect=True)
def test_a_bundle_that_age_encrypted_is_opened_or_rejected(home, other, tmp_path):
    home.say("The build uses make")
    # With age, opening a bundle takes a second.
    assert list_accepted(home, other, tmp_path / "b", "correct horse", (spoil_tail, spoil_byte)) == []
    assert other.settings.paths.workspace_ids() == []
    assert read(other, tmp_path / "b", "correct horse").applied == {"default": 1}


HOSTILE = {
    "long line": [b'{"operation":"' + b"0" * 17 * 2**20 + b'"}\n'],
    "unknown lines": [b"{}\n"] * 2,
    "too many bytes": [b'{"local":"' + b"0" * 2**20 + b'"}\n'] * 70,
    "deep": [b"[" * 200_000],
    "deep operation": [b'{"operation":' + b"[" * 3000 + b"]" * 3000 + b"}\n"],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_bundle_that_unpacks_to_too_much_is_rejected(home, other, tmp_path, kind):
    fill(home)
    write(home, tmp_path / "b", None, home.settings.paths.workspace_ids())
    header = gzip.decompress((tmp_path / "b").read_bytes()).splitlines(keepends=True)[0]
    with gzip.open(tmp_path / "hostile", "wb", compresslevel=1) as file:
        file.writelines([header, *HOSTILE[kind]])
    with pytest.raises(InvalidField):
        read(other, tmp_path / "hostile", None)
    assert other.settings.paths.workspace_ids() == []


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are POSIX's")
def test_a_bundle_that_is_no_regular_file_is_rejected(other, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for file in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(InvalidField):
            read(other, file, None)


def test_failed_export_of_an_unknown_workspace_leaves_no_file(home, tmp_path):
    home.say("something")
    with pytest.raises(NotFound):
        write(home, tmp_path / "b", workspaces=["nowhere"])
    assert list(tmp_path.glob("*b*")) == []


def test_a_damaged_line_keeps_no_other_from_being_read(home, other, tmp_path):
    home.say("one")
    home.say("two")
    write(home, tmp_path / "b", workspaces=["default"])
    lines = gzip.decompress((tmp_path / "b").read_bytes()).splitlines()
    lines[2] = lines[2].replace(b'"kind":"fact"', b'"kind":"fiction"', 1)
    body = b"".join(line + b"\n" for line in lines[:-1])
    end = {"end": {"lines": len(lines) - 1, "digest": hashlib.sha256(body).hexdigest()}}
    (tmp_path / "b").write_bytes(gzip.compress(body + json.dumps(end).encode() + b"\n"))
    merged = read(other, tmp_path / "b")
    assert len(merged.put_aside) == 1
    assert other.texts() == ["two"]


# Notes


def notes_of(home, folder):
    export.export_notes(home.settings.paths, home.container.databases, folder, home.settings.paths.workspace_ids())
    return {note.read_text("utf-8").rpartition("---\n")[2].strip(): note for note in folder.rglob("*.md")}


def take(home, folder):
    return export.import_notes(home.container.workspace("default"), folder)


def test_notes_are_edited_and_come_back_as_edits(home, tmp_path):
    first = fill(home)
    notes = notes_of(home, tmp_path / "notes")
    assert {"The build uses task", "The build uses just", "I like tea"} <= set(notes)
    assert "put away" not in notes
    file = notes["The build uses task"]
    file.write_text(file.read_text("utf-8").replace("The build uses task", "The build uses ninja"), "utf-8")
    (tmp_path / "notes" / "default" / "new.md").write_text("A note of my own\n", "utf-8")
    merged = take(home, tmp_path / "notes")
    assert (merged.edited, merged.created, merged.refused) == (1, 1, [])
    assert home.get(first).content == "The build uses ninja"
    assert "A note of my own" in home.texts()


def test_untouched_notes_change_nothing_after_a_memory_edit(home, tmp_path):
    first = fill(home)
    notes_of(home, tmp_path / "notes")
    revise.edit(home.database(), first, Revision(content="The build uses nix"))
    merged = take(home, tmp_path / "notes")
    assert (merged.edited, merged.created, merged.refused) == (0, 0, [])
    assert home.get(first).content == "The build uses nix"


def test_conflicting_note_and_memory_edits_are_rejected_and_reported(home, tmp_path):
    first = fill(home)
    file = notes_of(home, tmp_path / "notes")["The build uses task"]
    file.write_text(file.read_text("utf-8").replace("uses task", "uses ninja"), "utf-8")
    revise.edit(home.database(), first, Revision(content="The build uses nix"))
    merged = take(home, tmp_path / "notes")
    assert merged.edited == 0
    assert "changed too" in merged.refused[0]
    assert home.get(first).content == "The build uses nix"


@pytest.mark.parametrize(
    "text",
    ["---\nreverie: [1\n---\nx", "---\nkind: nonsense\n---\nx", "---\n- a\n---\nx", "---\nworkspace: ../x\n---\nx"],
)
def test_a_note_that_cannot_be_read_is_an_error_that_names_it(home, tmp_path, text):
    fill(home)
    notes_of(home, tmp_path / "notes")
    (tmp_path / "notes" / "bad.md").write_text(text, "utf-8")
    try:
        told = take(home, tmp_path / "notes").refused
    except InvalidField as error:
        told = [str(error)]
    assert any("bad.md" in one or "workspace" in one for one in told)


def test_notes_are_not_written_over_other_things(home, tmp_path):
    fill(home)
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "mine.md").write_text("mine", "utf-8")
    with pytest.raises(Conflict, match="contains other files"):
        notes_of(home, tmp_path / "vault")


def test_lines_of_json_hold_everything_with_its_history(home, tmp_path):
    first = fill(home)
    counts = export.export_lines(home.settings.paths, home.container.databases, tmp_path / "lines", ["default", "me"])
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text("utf-8").splitlines()]
    assert counts == {"default": 7, "me": 1}
    assert len(lines) == 8
    line = next(one for one in lines if one["id"] == first)
    assert [entry["content"] for entry in line["history"] if entry["event"] == "edited"] == ["The build uses make"]
    assert line["content"] == "The build uses task"


# Exports of the same shape that come back

LOCAL = ("tier", "recall_count", "merge_count")
STANDING = ("source", "trust", "author", "shared_from")


def lines_of(home, file, workspaces=("default",)):
    """Export memories as lines; return what every machine has of each, by id."""
    export.export_lines(home.settings.paths, home.container.databases, file, list(workspaces))
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return {line["id"]: {name: value for name, value in line.items() if name not in LOCAL} for line in lines}


def bring(home, source, **options):
    """Import exported lines or notes; return how many memories came back, and the reasons for the others."""
    usual = home.container.workspace("default")
    if source.is_dir():
        merged = export.import_notes(usual, source, **options)
        return merged.created, merged.refused
    counts = export.import_lines(usual, source, lambda _done, _total: None, **options)
    return counts.restored, counts.refused


def without(lines, *names):
    return {
        memory_id: {name: value for name, value in line.items() if name not in names}
        for memory_id, line in lines.items()
    }


def test_exported_lines_come_back_into_an_empty_data_directory(home, other, tmp_path):
    fill(home)
    told = lines_of(home, tmp_path / "out.jsonl", ("default", "me"))
    assert bring(other, tmp_path / "out.jsonl", is_own=True) == (8, [])
    assert lines_of(other, tmp_path / "back.jsonl", ("default", "me")) == told
    assert {line["kind"] for line in told.values()} >= {"fact", "keyed_fact"}
    assert any(line["archived_at"] for line in told.values())
    assert any(line["valid_to"] for line in told.values())
    assert bring(other, tmp_path / "out.jsonl") == (0, [])
    assert lines_of(other, tmp_path / "again.jsonl", ("default", "me")) == told


def test_a_file_does_not_make_its_memories_trusted(home, other, tmp_path):
    home.say("We deploy from main only", source="user")
    told = lines_of(home, tmp_path / "out.jsonl")
    notes_of(home, tmp_path / "notes")
    assert bring(other, tmp_path / "out.jsonl") == (1, [])
    back = lines_of(other, tmp_path / "back.jsonl")
    assert [(line["source"], line["trust"]) for line in back.values()] == [("import", "evidence")]
    assert without(back, *STANDING) == without(told, *STANDING)


def test_exported_notes_come_back_into_an_empty_data_directory(home, other, tmp_path):
    fill(home)
    told = lines_of(home, tmp_path / "out.jsonl", ("default", "me"))
    notes_of(home, tmp_path / "notes")
    assert bring(other, tmp_path / "notes", is_own=True) == (7, [])
    active = {memory_id: line for memory_id, line in told.items() if line["archived_at"] is None}
    assert lines_of(other, tmp_path / "back.jsonl", ("default", "me")) == active
    assert bring(other, tmp_path / "notes") == (0, [])
    assert lines_of(other, tmp_path / "again.jsonl", ("default", "me")) == active


def test_notes_of_another_data_directory_are_added_and_edited_in_between(home, other, tmp_path):
    tea, port = home.say("tea is in the left drawer", tags=("kitchen",)), home.say("The shop is on port 81")
    other.say("The lift is broken")
    notes = notes_of(home, tmp_path / "notes")
    file = notes["The shop is on port 81"]
    file.write_text(file.read_text("utf-8").replace("port 81", "port 82"), "utf-8")
    assert bring(other, tmp_path / "notes") == (2, [])
    assert other.get(port).content == "The shop is on port 82"
    revise.edit(other.database(), tea, Revision(tags=("kitchen", "tea"), pinned=True))
    file = notes["tea is in the left drawer"]
    file.write_text(file.read_text("utf-8").replace("left", "right").replace("\n", "\r\n"), "utf-8")
    merged = take(other, tmp_path / "notes")
    assert (merged.edited, merged.created, merged.same, merged.refused) == (1, 0, 1, [])
    kept = other.get(tea)
    assert (kept.content, kept.tags, kept.pinned) == ("tea is in the right drawer", ("kitchen", "tea"), True)
    assert take(other, tmp_path / "notes").same == 2


def test_a_note_that_was_exported_before_comes_back_too(other, tmp_path):
    (tmp_path / "old.md").write_text(
        "---\nreverie: 01JA0000000000000000000001\nworkspace: default\ndigest: aaaa\nkind: fact\ntags:\n- tea\n"
        "pinned: true\nimportance: 0.5\nsource: user\ntrust: trusted\nscope: session:s1\n"
        "created_at: '2026-01-01T00:00:00.000Z'\noccurred_at: 2026-01-01T00:00:00.000Z\n---\n\nTea at four\n",
        "utf-8",
    )
    assert bring(other, tmp_path) == (1, [])
    memory = other.get("01JA0000000000000000000001")
    assert (memory.content, memory.tags, memory.pinned) == ("Tea at four", ("tea",), True)
    assert (memory.scope, memory.occurred_at) == (Scope(ScopeKind.SESSION, "s1"), "2026-01-01T00:00:00.000Z")
    assert memory.trust == "evidence"


@pytest.mark.parametrize("form", ["lines", "notes"])
def test_a_purged_memory_does_not_come_back(home, other, tmp_path, form):
    memory_id = home.say("The flumadiddle is blue")
    lines_of(home, tmp_path / "out.jsonl")
    notes_of(home, tmp_path / "notes")
    source = tmp_path / ("notes" if form == "notes" else "out.jsonl")
    bring(other, source)
    revise.purge(other.database(), memory_id)
    restored, refused = bring(other, source)
    assert restored == 0
    assert "deleted" in refused[0]
    assert other.texts() == []


def test_a_file_cannot_hide_a_stored_memory(home, other, tmp_path):
    mine = other.say("The gate code is in the safe")
    foreign = home.say("The gate is open")
    lines_of(home, tmp_path / "out.jsonl")
    line = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))
    line["edges"] = [{"kind": "supersedes", "to": mine, "made_by": "user", "at": line["created_at"]}]
    (tmp_path / "out.jsonl").write_text(json.dumps(line), "utf-8")
    assert bring(other, tmp_path / "out.jsonl") == (1, [])
    assert "edges" not in lines_of(other, tmp_path / "back.jsonl")[foreign]


SPOILT = {
    "no id": {"id": None},
    "a path as id": {"id": "../../x"},
    "no text": {"content": ""},
    "text of another type": {"content": 7},
    "kind": {"kind": "hunch"},
    "details": {"kind": "decision", "details": {"alternatives": 7}},
    "time": {"created_at": "yesterday"},
    "importance": {"importance": 7},
    "scope": {"scope": "everything"},
    "anchor": {"anchor": {"path": "a", "lines": [9, 3]}},
    "workspace": {"workspace": "../x"},
    "history": {"history": [{"at": "then", "event": "edited"}]},
    "metadata": {"metadata": {"a": "x" * 17_000}},
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_line_that_cannot_be_read_costs_itself_alone(home, other, tmp_path, name):
    home.say("one")
    lines_of(home, tmp_path / "out.jsonl")
    line = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))
    spoilt = line | {"id": "01JA0000000000000000000001", "content": "two"} | SPOILT[name]
    unknown = line | {"id": "01JA0000000000000000000002", "content": "three", "colour": "red", "author": ""}
    (tmp_path / "out.jsonl").write_text("\n".join(map(json.dumps, [line, spoilt, unknown])), "utf-8")
    restored, refused = bring(other, tmp_path / "out.jsonl")
    assert (restored, len(refused)) == (2, 1)
    assert refused[0].startswith("line 2: ")
    assert other.texts() == ["one", "three"]


def test_secrets_of_a_file_are_removed_before_they_are_stored(home, other, tmp_path):
    memory_id = home.say("one", metadata={"note": "n"})
    lines_of(home, tmp_path / "out.jsonl")
    line = json.loads((tmp_path / "out.jsonl").read_text("utf-8"))
    secret = "ghp_" + "A1b2C3d4E5" * 3 + "F6g7H8"
    line |= {"content": f"token {secret}", "metadata": {"token": secret}}
    line["history"] = [{"at": line["created_at"], "event": "edited", "content": f"was {secret}", "detail": {}}]
    (tmp_path / "out.jsonl").write_text(json.dumps(line), "utf-8")
    assert bring(other, tmp_path / "out.jsonl") == (1, [])
    lines_of(other, tmp_path / "back.jsonl")
    assert memory_id in (tmp_path / "back.jsonl").read_text("utf-8")
    assert secret not in (tmp_path / "back.jsonl").read_text("utf-8")


def test_nothing_is_restored_where_nothing_may_be_stored(home, other, tmp_path):
    home.say("one")
    lines_of(home, tmp_path / "out.jsonl")
    other.container.workspace("default").paths.root.mkdir(parents=True)
    (other.container.workspace("default").paths.root / "config.toml").write_text("incognito = true\n", "utf-8")
    with pytest.raises(Conflict, match="incognito"):
        bring(other, tmp_path / "out.jsonl")


MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2026, 1, 1)).map(lambda at: utc_text(at.replace(tzinfo=UTC)))  # noqa: DTZ001
WORDS = st.sampled_from(
    [
        "bis Freitag",
        "l'évier fuit",
        "port 8123",
        "#not a heading",
        "---",
        "- dash: [x]",
        "  indented",
        "日本",
        "'\"",
        "🙂",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).flatmap(
    lambda words: st.sampled_from([" ", "\n", "\n\n", ": "]).map(lambda joint: joint.join(words))
)
DETAILS = {
    Kind.FACT: st.just({}),
    Kind.EPISODE: st.just({}),
    Kind.DECISION: st.fixed_dictionaries({"reason": st.just("less to run"), "alternatives": st.just(["RabbitMQ"])}),
    Kind.LESSON: st.fixed_dictionaries({"rule": WORDS, "severity": st.sampled_from(["info", "critical"])}),
    Kind.GOAL: st.fixed_dictionaries({"status": st.sampled_from(["open", "done"]), "progress": st.just(0.5)}),
    Kind.KEYED_FACT: st.fixed_dictionaries(
        {"subject": st.just("shop"), "attribute": st.sampled_from(["port", "host"]), "value": st.integers(1, 9)}
    ),
}


@st.composite
def generated_memories(draw):
    kind = draw(st.sampled_from(sorted(DETAILS)))
    return {
        "kind": kind,
        "details": draw(DETAILS[kind]),
        "tags": tuple(draw(st.lists(st.sampled_from(["a", "b-c", "2026"]), unique=True, max_size=3))),
        "metadata": draw(st.dictionaries(WORDS, st.one_of(WORDS, st.none(), st.booleans(), st.integers()), max_size=2)),
        "importance": draw(st.one_of(st.none(), st.floats(0, 1))),
        "occurred_at": draw(MOMENTS),
        "session_id": draw(st.sampled_from([None, "s1"])),
        "source": draw(st.sampled_from(["user", "agent", "ambient", "import"])),
        "scope": draw(st.sampled_from([None, Scope(ScopeKind.AGENT, "codex")])),
        "branch": draw(st.sampled_from([None, "try-it"])),
        "expires_at": draw(st.sampled_from([None, "2031-05-01T00:00:00.000Z"])),
        "sensitivity": draw(st.sampled_from([None, "private"])),
        "anchor": draw(st.sampled_from([None, Anchor("src/a.py", 3, 9, "a" * 64), Anchor("src/b.py")])),
    }


@examples(4)
@given(
    st.lists(st.tuples(SENTENCES, generated_memories(), st.sampled_from(["", "edit", "archive", "pin"])), max_size=8)
)
def test_generated_memories_come_back_from_lines_and_notes(written):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        homes = [Home(root / name) for name in ("home", "by-lines", "by-notes")]
        try:
            home, by_lines, by_notes = homes
            for text, fields, change in written:
                memory_id = home.say(text, **fields)
                stored = home.get(memory_id)
                if stored is None or stored.archived_at is not None:
                    continue
                if change == "archive":
                    revise.archive(home.database(), memory_id)
                elif change == "pin":
                    revise.edit(home.database(), memory_id, Revision(pinned=True))
                elif change == "edit" and fields["kind"] != Kind.KEYED_FACT:
                    revise.edit(home.database(), memory_id, Revision(content=f"{text} again"))
            home.database()
            told = lines_of(home, root / "out.jsonl")
            notes_of(home, root / "notes")
            assert bring(by_lines, root / "out.jsonl", is_own=True) == (len(told), [])
            by_lines.database()
            assert lines_of(by_lines, root / "back.jsonl") == told
            active = {key for key, line in told.items() if line["archived_at"] is None and not line["candidate"]}
            (root / "notes").mkdir(exist_ok=True)
            assert bring(by_notes, root / "notes", is_own=True) == (len(active), [])
            by_notes.database()
            noted = lines_of(by_notes, root / "noted.jsonl")
            assert without(noted, "edges") == without({key: told[key] for key in active}, "edges")
        finally:
            for home in homes:
                home.close()
