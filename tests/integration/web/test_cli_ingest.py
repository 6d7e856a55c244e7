"""`reverie index` and `reverie import` against a server: taken, in step, broken off and begun again."""

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.usecases import IMPORTS, SOURCES, source_name
from pipeline.kernel.records import Draft, Revision, Trust
from pipeline.write import revise
from tests.fakes.command_line import run, run_json, serve_app
from tests.fakes.pdfs import pdf

README = "# Lock shop\n\nThe shop sells tea at the upper lock, from nine until the last boat has gone through.\n"
MODULE = '''"""Open and close the shop."""


def open_shop(hour: int) -> bool:
    """Open when the lamp is green."""
    return hour > 8
'''


@pytest.fixture
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "Lock Shop"
    folder.mkdir()
    (folder / "README.md").write_text(README)
    (folder / "shop.py").write_text(MODULE)
    return folder


def sources():
    return {one["source"]: one for one in run_json("index", "list")["items"]}


def test_project_is_indexed_and_kept_in_sync(server, project):
    first = run_json("index", "project", str(project))
    assert first["workspace"] == "default"
    assert first["source"] == source_name("project", project)
    assert first["source"].startswith("project:lock-shop-")
    assert first["items"] == {"created": 2}
    assert first["memories"]["created"] >= 2
    assert run_json("index", "project", str(project))["items"] == {"unchanged": 2}
    (project / "shop.py").write_text(MODULE.replace("green", "blue"))
    (project / "README.md").unlink()
    changed = run_json("index", "project", str(project))
    assert changed["items"] == {"replaced": 1, "forgotten": 1}
    assert changed["memories"]["archived"] >= 1
    assert run_json("recall", "shop sells tea at the upper lock")["results"][0]["kind"] == "code"
    (project / "README.md").write_text(README)
    assert run_json("index", "project", str(project))["memories"]["restored"] >= 1
    assert "tea" in run_json("recall", "shop sells tea at the upper lock")["results"][0]["content"]


@pytest.mark.parametrize("closed", ["", "deep"])
def test_memories_of_an_unreadable_folder_are_kept(server, project, closed, monkeypatch):
    (project / "deep" / "deeper").mkdir(parents=True)
    (project / "deep" / "deeper" / "till.py").write_text(MODULE)
    assert run_json("index", "project", str(project))["items"] == {"created": 3}
    scandir, place = os.scandir, str((project / closed).resolve())

    def refused(path="."):
        if os.fspath(path) == place:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    # Nothing is closed to root, who may run this.
    with monkeypatch.context() as shut:
        shut.setattr(os, "scandir", refused)
        again = run_json("index", "project", str(project))
    assert again["items"] == ({"unchanged": 2} if closed else {})
    assert again["skipped"]["cannot be read"]["first"] == [f"{closed}/" if closed else "."]
    assert run_json("index", "project", str(project))["items"] == {"unchanged": 3}


def test_a_folder_whose_name_is_no_text_is_taken(server, project):
    place = os.fsdecode(b"caf\xe9")
    moved = project.rename(project.with_name(place))
    assert run_json("index", "project", str(moved))["items"] == {"created": 2}


def test_project_index_is_summarized_in_plain_lines(server, project):
    (project / "logo.png").write_bytes(b"\x89PNG\x00\x01")
    told = run("index", "project", str(project))
    lines = {line.split("  ")[0]: line for line in told.stdout.splitlines()}
    assert list(lines) == ["workspace", "source", "items", "memories", "skipped", "took"]
    assert "2 created" in lines["items"]
    assert "logo.png" in lines["skipped"]
    assert told.stderr == f"reading {source_name('project', project)} …\n"


def test_a_dry_run_writes_nothing(server, project, container):
    told = run_json("index", "project", str(project), "--dry-run")
    assert (told["items"], told["dry_run"]) == ({"created": 2}, True)
    assert told["memories"]["given"] >= 2
    assert container.settings.paths.workspace_ids() == []
    assert "nothing was written" in run("index", "project", str(project), "--dry-run").stdout


def test_a_project_goes_to_the_workspace_of_its_folder(server, project, container):
    (project / ".reverie.toml").write_text('workspace = "canal"\n')
    assert run_json("index", "project", str(project))["workspace"] == "canal"
    assert run_json("-w", "other", "index", "project", str(project))["workspace"] == "other"
    assert container.settings.paths.workspace_ids() == ["canal", "other"]


def test_current_folder_is_indexed_by_default(server, project, monkeypatch):
    monkeypatch.chdir(project)
    assert run_json("index", "project")["source"] == source_name("project", project)


def test_sources_are_listed_and_forgotten(server, project):
    source = run_json("index", "project", str(project))["source"]
    assert sources()[source]["items"] == 2
    assert source in run("index", "list").stdout
    assert run_json("index", "forget", source, "--dry-run")["items"] == {"forgotten": 2}
    assert run_json("index", "forget", source)["items"] == {"forgotten": 2}
    assert sources() == {}
    assert run_json("workspace", "stats")["memories"]["active"] == 0
    assert 'has no source "never:heard-of"' in run("index", "forget", "never:heard-of", code=1).stderr
    assert run_json("index", "project", str(project))["items"] == {"created": 2}


def test_purged_item_is_counted_as_rejected_by_import(server, tmp_path):
    path = tmp_path / "memories.jsonl"
    memory = {"id": "m1", "content": "The lamp at the upper gate of Thornmere is green"}
    path.write_text(json.dumps(memory) + "\n")
    run_json("import", "jsonl", str(path))
    run("purge", run_json("recall", "lamp at the upper gate")["results"][0]["id"], "--yes")
    path.write_text(json.dumps(memory | {"tags": ["lamp"]}) + "\n")
    told = json.loads(run("import", "jsonl", str(path), "--json", code=1).stdout)
    assert told["items"] == {"replaced": 1}
    assert (told["memories"]["rejected"], told["rejected"]) == (
        1,
        {"was purged": {"count": 1, "first": ["m1"]}},
    )
    path.write_text(json.dumps(memory | {"tags": ["lock"]}) + "\n")
    told = run("import", "jsonl", str(path), code=1)
    assert "rejected   1 was purged: " in told.stdout
    assert "Nothing was imported from " in told.stderr
    assert run_json("recall", "lamp at the upper gate")["results"] == []


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
def test_commits_are_taken(server, project):
    def git(*arguments):
        who = {f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {"PATH": os.environ["PATH"], **who}
        subprocess.run(["git", *arguments], cwd=project, check=True, capture_output=True, env=environment)

    git("init", "-q", "-b", "main")
    for message in ("Open the gate at nine", "wip", "Close it when the last boat is through"):
        git("commit", "-q", "--allow-empty", "-m", message)
    (project / "sub").mkdir()
    told = run_json("index", "git", str(project / "sub"))
    assert told["source"] == source_name("git", project)
    assert told["items"] == {"created": 2}
    assert told["skipped"] == {"unfinished work": {"count": 1, "first": told["skipped"]["unfinished work"]["first"]}}
    assert run_json("index", "git", str(project), "--limit", "1")["items"] == {"unchanged": 1}
    assert run_json("index", "git", str(project), "--since", "2999-01-01")["items"] == {}


def test_a_folder_without_a_repository_is_an_error(server, tmp_path):
    if shutil.which("git") is not None:
        assert "not a git repository" in run("index", "git", str(tmp_path), code=1).stderr


def test_pdf_files_are_taken(server, tmp_path):
    (tmp_path / "handbook.pdf").write_bytes(pdf(["The lamp is green when the lock may be entered."]))
    (tmp_path / "scan.pdf").write_bytes(pdf([]))
    told = run_json("index", "pdf", str(tmp_path))
    assert told["items"] == {"created": 1}
    assert list(told["skipped"].values()) == [{"count": 1, "first": ["scan.pdf"]}]
    assert "handbook · p. 1" in run_json("recall", "when may the lock be entered")["results"][0]["content"]


CONVERSATION = {
    "chatgpt": [
        {
            "id": "c1",
            "conversation_id": "c1",
            "title": "Locks",
            "create_time": 1750000000.0,
            "update_time": 1750000100.0,
            "current_node": "b",
            "mapping": {
                "r": {"id": "r", "message": None, "parent": None, "children": ["a"]},
                "a": {
                    "id": "a",
                    "parent": "r",
                    "children": ["b"],
                    "message": {
                        "id": "a",
                        "author": {"role": "user"},
                        "create_time": 1750000000.0,
                        "content": {"content_type": "text", "parts": ["When may a boat enter the lock at Thornmere?"]},
                    },
                },
                "b": {
                    "id": "b",
                    "parent": "a",
                    "children": [],
                    "message": {
                        "id": "b",
                        "author": {"role": "assistant"},
                        "create_time": 1750000050.0,
                        "content": {"content_type": "text", "parts": ["When the lamp at the upper gate is green."]},
                    },
                },
            },
        }
    ],
    "claude": [
        {
            "uuid": "c1",
            "name": "Locks",
            "created_at": "2026-01-01T10:00:00.000Z",
            "updated_at": "2026-01-01T10:05:00.000Z",
            "chat_messages": [
                {
                    "uuid": "m1",
                    "sender": "human",
                    "text": "When may a boat enter the lock at Thornmere?",
                    "created_at": "2026-01-01T10:00:00.000Z",
                },
                {
                    "uuid": "m2",
                    "sender": "assistant",
                    "text": "When the lamp at the upper gate is green.",
                    "created_at": "2026-01-01T10:01:00.000Z",
                },
            ],
        }
    ],
    "mem0": {"results": [{"id": "m1", "memory": "The lamp at the upper gate of Thornmere is green", "user_id": "ada"}]},
    "pmb": {
        "exported_at": "2026-01-01T10:00:00Z",
        "workspace": {"name": "canal"},
        "n_events": 1,
        "events": [
            {
                "ulid": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "type": "fact",
                "content": "The lamp at the upper gate of Thornmere is green",
                "metadata": {},
            }
        ],
    },
}


@pytest.fixture
def exported(tmp_path):
    """Return the path of an export in a format."""

    def export(form):
        if form == "markdown":
            path = tmp_path / "notes"
            path.mkdir()
            (path / "lock.md").write_text("# Thornmere\n\nThe lamp at the upper gate is green.\n")
        elif form == "jsonl":
            path = tmp_path / "memories.jsonl"
            path.write_text(json.dumps({"content": "The lamp at the upper gate of Thornmere is green"}) + "\n")
        else:
            path = tmp_path / "conversations.json"
            path.write_text(json.dumps(CONVERSATION[form]))
        return str(path)

    return export


@pytest.mark.parametrize("form", IMPORTS)
def test_memories_of_other_tools_are_imported_once(server, exported, form):
    path = exported(form)
    first = run_json("import", form, path)
    assert first["items"] == {"created": 1}, first
    assert first["source"] == (source_name(form, Path(path)) if SOURCES[form].by_path else form)
    assert run_json("import", form, path)["items"] == {"unchanged": 1}
    best = run_json("recall", "lamp at the upper gate")["results"][0]
    assert (best["source"], best["trust"]) == ("import", "evidence")


@pytest.mark.parametrize("form", [name for name in IMPORTS if name != "markdown"])
def test_a_file_of_another_kind_is_an_error(server, tmp_path, form):
    path = tmp_path / "something.json"
    path.write_text('"no export at all"')
    assert run("import", form, str(path), code=1).stderr.splitlines()[-1].startswith("Error: path:")


def test_a_broken_off_import_goes_on_where_it_stopped(server, tmp_path, monkeypatch):
    path = tmp_path / "memories.jsonl"
    path.write_text("{}\n")

    def reading(stops_after):
        def read(path, known, progress):
            for number in range(500):
                if number == stops_after:
                    raise KeyboardInterrupt
                yield Item(str(number), "1", (Draft(f"Boat {number} went through"),))

        return read

    monkeypatch.setattr("pipeline.features.ingest.jsonl.read_jsonl", reading(450))
    broken = run("import", "jsonl", str(path), code=130)
    assert "imported memories are kept; run the same command again to continue" in broken.stderr
    assert broken.stderr.endswith("interrupted\n")
    taken = run_json("workspace", "stats")["memories"]["active"]
    assert 0 < taken < 500
    monkeypatch.setattr("pipeline.features.ingest.jsonl.read_jsonl", reading(None))
    again = run_json("import", "jsonl", str(path))
    assert again["memories"]["created"] == 500 - taken
    assert run_json("workspace", "stats")["memories"]["active"] == 500


def test_without_a_server_there_is_one_line(home, project, monkeypatch):
    monkeypatch.setenv("REVERIE_PORT", "1")
    told = run("index", "project", str(project), code=1).stderr
    assert told.splitlines()[-1].startswith("Error: No Reverie server answers")


@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "project", "/no/such/folder"),
        ("index", "git", "/no/such/folder"),
        ("index", "git", "--limit", "0"),
        ("index", "pdf"),
        ("import", "chatgpt"),
        ("import", "gossip", "/"),
        ("index", "forget", "a/b"),
    ],
)
def test_wrong_usage_asks_the_server_nothing(home, monkeypatch, arguments):
    monkeypatch.setenv("REVERIE_PORT", "1")
    run(*arguments, code=2)


def test_a_source_is_named_by_its_place(tmp_path):
    one, other = tmp_path / "a" / "Ünï Shop!", tmp_path / "b" / "Ünï Shop!"
    assert source_name("pdf", one) != source_name("pdf", other)
    assert source_name("pdf", one).startswith("pdf:n-shop-")
    assert source_name("pdf", tmp_path / "a" / ".." / "a" / "Ünï Shop!") == source_name("pdf", one)
    assert source_name("project", Path("/")).startswith("project:root-")


def test_notes_that_were_deleted_from_a_folder_are_forgotten(server, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("locks", "boats"):
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\nWhat is known of {name} at Thornmere.\n")
    assert run_json("import", "markdown", str(folder))["items"] == {"created": 2}
    (folder / "boats.md").unlink()
    told = run_json("import", "markdown", str(folder))
    assert told["items"] == {"unchanged": 1, "forgotten": 1}
    assert told["memories"]["archived"] == 1
    # A folder of which nothing can be read, as of a disk that is not mounted, is no empty one.
    (folder / "locks.md").unlink()
    assert "contains no Markdown" in run("import", "markdown", str(folder), code=1).stderr
    assert run_json("workspace", "stats")["memories"]["active"] == 1


def test_file_that_is_not_markdown_is_rejected_before_storing(server, tmp_path):
    file = tmp_path / "mem.jsonl"
    file.write_text('{"content": "a"}\n{"content": "b"}\n')
    refused = run("import", "markdown", str(file), code=1).stderr
    assert "mem.jsonl is not Markdown but lines of JSON. Use `reverie import jsonl`" in refused
    assert "There are no memories in workspace" in run("workspace", "stats").stdout


@pytest.mark.parametrize("lines", ["", '{"content": " "}\n', '{"kind": "hunch", "content": "x"}\nno json\n'])
def test_an_import_of_which_nothing_is_taken_fails_with_the_reason(server, tmp_path, lines):
    path = tmp_path / "memories.jsonl"
    path.write_text(lines)
    told = run("import", "jsonl", str(path), code=1)
    assert "Nothing was imported from " in told.stderr
    if "hunch" in lines:
        assert "kind: Input should be 'fact'" in told.stderr
    # A line that is taken is enough, and the others are counted.
    path.write_text(lines + '{"content": "The lamp is green"}\n')
    assert "1 created" in run("import", "jsonl", str(path)).stdout
    assert "1 unchanged" in run("import", "jsonl", str(path)).stdout


APIARY = {
    "Bees": "Two colonies stand behind the shed.",
    "Honey": "Honey is filled in June.",
    "Wax": "Wax goes to candle maker Ruhl.",
}


def write_note(file, sections):
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"## {name}\n\n{text}\n\n" for name, text in sections.items()))


@pytest.fixture
def apiary(server, container, tmp_path):
    """Return the folder of a note whose sections a person pinned, confirmed and edited, and the ids by section."""
    vault = tmp_path / "vault"
    write_note(vault / "apiary.md", APIARY)
    run_json("import", "markdown", str(vault))
    ids = {item["details"]["title"].rpartition(" › ")[2]: item["id"] for item in active_memories()}
    database = container.databases.get("default")
    revise.edit(database, ids["Bees"], Revision(pinned=True))
    revise.edit(database, ids["Honey"], Revision(trust=Trust.TRUSTED))
    wax = next(item["content"] for item in active_memories() if item["id"] == ids["Wax"])
    revise.edit(database, ids["Wax"], Revision(content=wax.replace("Ruhl.", "Ruhl, but only until June.")))
    return vault, ids


def active_memories():
    return run_json("list", "-n", "100")["items"]


MOVES = {
    "renamed": {"beekeeping.md": APIARY},
    "renamed to an earlier name": {"a.md": APIARY},
    "split": {"bees.md": {"Bees": APIARY["Bees"]}, "zoo.md": {"Honey": APIARY["Honey"], "Wax": APIARY["Wax"]}},
    "moved": {"apiary.md": {"Bees": APIARY["Bees"], "Honey": APIARY["Honey"]}, "a.md": {"Wax": APIARY["Wax"]}},
}


@pytest.mark.parametrize("move", MOVES)
def test_moved_section_keeps_a_persons_edits(apiary, move):
    vault, ids = apiary
    (vault / "apiary.md").unlink()
    for name, sections in MOVES[move].items():
        write_note(vault / name, sections)
    run_json("import", "markdown", str(vault))
    found = {item["id"]: item for item in active_memories()}
    assert found.keys() == set(ids.values())
    assert found[ids["Bees"]]["pinned"]
    assert found[ids["Honey"]]["trust"] == "trusted"
    assert "only until June" in found[ids["Wax"]]["content"]
    places = {name: file for file, sections in MOVES[move].items() for name in sections}
    for name, memory_id in ids.items():
        title = f"{places[name].removesuffix('.md')} › {name}"
        assert found[memory_id]["details"] == {"title": title, "uri": places[name]}
        assert found[memory_id]["content"].startswith(f"{title}\n\n")
    assert run_json("import", "markdown", str(vault))["items"].keys() == {"unchanged"}
    assert {item["id"] for item in active_memories()} == set(ids.values())


def test_an_equal_section_of_another_note_is_not_taken_for_a_moved_one(apiary):
    vault, _ = apiary
    write_note(vault / "other.md", {"Wax": APIARY["Wax"]})
    run_json("import", "markdown", str(vault))
    (vault / "apiary.md").unlink()
    write_note(vault / "new.md", {"Tools": "The smoker hangs left of the door."})
    run_json("import", "markdown", str(vault))
    texts = sorted(item["content"] for item in active_memories())
    assert len(texts) == 5
    assert [text for text in texts if "Wax goes" in text] == [
        "apiary › Wax\n\nWax goes to candle maker Ruhl, but only until June.",
        "other › Wax\n\nWax goes to candle maker Ruhl.",
    ]
