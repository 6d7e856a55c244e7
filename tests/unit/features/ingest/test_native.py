"""The contract of all readers of native memories, and the rules of single tools."""

import os
import sqlite3
import time
from contextlib import closing
from itertools import chain

import pytest

from config.places import Places
from pipeline.features.ingest.fields import Item, Skipped, Unchanged
from pipeline.features.ingest.native.memory_stores import split_statements, strip_generated
from pipeline.features.ingest.native.projects import Projects, list_projects
from pipeline.features.ingest.native.tools import TOOLS
from pipeline.features.ingest.usecases import find_stores, open_store
from pipeline.kernel.records import PERSONAL, Kind, Source
from tests.fakes.native_memories import DATA, SECRET, make_project, place_memories

STATEMENT = "Run the tests with a single worker"


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "user", {}, "linux")


@pytest.fixture
def project(places):
    return make_project(places.home)


def find(places, project, tool):
    """Return the stores of a tool and the readings of each, and what discovery left out."""
    found = list(find_stores(places, project, [tool]))
    stores = list(chain.from_iterable(entry.stores for entry in found))
    return stores, list(chain.from_iterable(entry.skipped for entry in found))


def read(store, known=None):
    return list(open_store(store)(known or {}))


def items(readings):
    return [reading for reading in readings if isinstance(reading, Item)]


def drafts_of(stores):
    return [draft for store in stores for item in items(read(store)) for draft in item.drafts]


def test_every_tool_has_a_fixture():
    assert {folder.name for folder in DATA.iterdir()} == set(TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
class TestEveryReader:
    def test_empty_home_directory_contains_no_stores(self, tool, places, project):
        assert list(find_stores(places, project, [tool])) == []
        assert list(find_stores(places, None, [tool])) == []

    def test_memories_have_origin_date_and_scope(self, tool, places, project):
        place_memories(tool, places.home, project)
        stores, skipped = find(places, project, tool)
        assert skipped == [] or tool == "claude-mem"
        drafts = drafts_of(stores)
        assert any(STATEMENT in draft.content for draft in drafts)
        for store in stores:
            for draft in drafts_of([store]):
                assert draft.source is Source.IMPORT
                assert draft.occurred_at
                assert draft.metadata["tool"] == tool
                assert draft.metadata["file"].startswith("~/")
                assert draft.scope == (PERSONAL if store.project is None else None)
                assert store.project in (None, project)
                assert tool in draft.tags

    def test_a_second_reading_finds_everything_unchanged(self, tool, places, project):
        place_memories(tool, places.home, project)
        for store in find(places, project, tool)[0]:
            first = items(read(store))
            again = read(store, {item.key: item.digest for item in first})
            assert {reading.key for reading in again if isinstance(reading, Unchanged)} == {item.key for item in first}
            assert items(again) == []

    def test_sources_have_distinct_names_that_stay(self, tool, places, project):
        place_memories(tool, places.home, project)
        stores = find(places, project, tool)[0]
        sources = [store.source for store in stores]
        assert len(set(sources)) == len(sources)
        assert [store.source for store in find(places, project, tool)[0]] == sources

    def test_secrets_and_generated_blocks_are_left_out(self, tool, places, project):
        place_memories(tool, places.home, project)
        text = repr(drafts_of(find(places, project, tool)[0]))
        assert SECRET not in text
        assert "generated line" not in text
        assert "Search the project's memory" not in text

    def test_nothing_is_written(self, tool, places, project):
        place_memories(tool, places.home, project)
        before = {path: path.read_bytes() for path in places.home.rglob("*") if path.is_file()}
        drafts_of(find(places, project, tool)[0])
        assert {path: path.read_bytes() for path in places.home.rglob("*") if path.is_file()} == before

    def test_a_store_that_cannot_be_read_gives_no_items_and_is_no_deletion(self, tool, places, project):
        place_memories(tool, places.home, project)
        stores = find(places, project, tool)[0]
        for path in [path for path in places.home.rglob("*") if path.is_file() and ".git" not in path.parts]:
            path.write_bytes(b"\xff\xfe broken \x00\x01")
        for store in stores:
            readings = read(store)
            assert items(readings) == []
            reasons = {entry.reason for entry in readings if isinstance(entry, Skipped)} - {"written by a memory tool"}
            assert all(reason.startswith("cannot be read") for reason in reasons)


def test_types_decide_about_the_reach_of_claude_memories(places, project):
    place_memories("claude-code", places.home, project)
    by_reach = {
        store.project: [draft.content for draft in drafts_of([store])]
        for store in find(places, project, "claude-code")[0]
    }
    assert by_reach[None] == ["The user maintains the checkout of a tea shop."]
    assert [content.partition("\n")[0] for content in by_reach[project]] == [f"{STATEMENT}."]


def test_a_project_that_is_gone_is_left_out_with_the_reason(places, project):
    place_memories("claude-code", places.home, project)
    project.rename(project.with_name("moved"))
    stores, skipped = find(places, None, "claude-code")
    assert [store.project for store in stores] == [None]
    assert [entry.reason for entry in skipped] == ["its project's folder was not found on this machine"]


def test_an_index_is_read_only_without_the_notes_that_it_lists(places, project):
    place_memories("claude-code", places.home, project)
    for note in places.home.rglob("*.md"):
        if note.name != "MEMORY.md":
            note.unlink()
    contents = [draft.content for draft in drafts_of(find(places, project, "claude-code")[0])]
    assert len(contents) == 2


def test_undated_memories_get_the_date_of_their_file_and_say_so(places, project):
    place_memories("gemini", places.home, project)
    os.utime(places.home / ".gemini" / "GEMINI.md", (1750000000, 1750000000))
    stores = [store for store in find(places, project, "gemini")[0] if store.project is None]
    dates = {(draft.occurred_at[:10], draft.metadata["date_estimated"]) for draft in drafts_of(stores)}
    assert dates == {("2025-06-15", True)}


def test_dates_of_the_tool_are_not_marked(places, project):
    place_memories("engram", places.home, project)
    assert all("date_estimated" not in draft.metadata for draft in drafts_of(find(places, project, "engram")[0]))


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("engram", "deleted in the tool"),
        ("mcp-memory-service", "deleted in the tool"),
        ("mcp-memory-service", "replaced in the tool"),
        ("mem0", "deleted in the tool"),
    ],
)
def test_rows_that_are_no_longer_valid_are_left_out(tool, reason, places, project):
    place_memories(tool, places.home, project)
    reasons = {e.reason for s in find(places, project, tool)[0] for e in read(s) if isinstance(e, Skipped)}
    assert reason in reasons


@pytest.mark.parametrize(
    ("tool", "present", "absent"),
    [
        ("mem0", "Run the tests with a single worker", "Runs the tests with two workers"),
        ("mempalace", "the tests ran with two workers (until 2026-01-01)", "A chunk of a file that exists."),
        ("mempalace", "The oven needs an hour. Start it before the first guest arrives.", "oven|bread"),
    ],
    ids=["last text", "validity and manual drawers", "joined pieces without index"],
)
def test_only_current_memories_of_a_tool_are_read(tool, present, absent, places, project):
    place_memories(tool, places.home, project)
    contents = [draft.content for draft in drafts_of(find(places, project, tool)[0])]
    assert present in contents
    assert not any(absent in content for content in contents)


def test_mcp_memory_service_keeps_conversations_and_marks_missing_tags(places, project):
    place_memories("mcp-memory-service", places.home, project)
    drafts = drafts_of(find(places, project, "mcp-memory-service")[0])
    assert {draft.kind for draft in drafts if draft.content.startswith("[user]")} == {Kind.EPISODE}
    assert all("untagged" not in draft.tags for draft in drafts)


def test_claude_mem_finds_a_project_by_its_transcripts(places, project):
    place_memories("claude-mem", places.home, project)
    transcripts = places.home / ".claude" / "projects" / "any"
    transcripts.mkdir(parents=True)
    (transcripts / "c1.jsonl").write_text(f'{{"cwd": "{project}"}}\n')
    stores, skipped = find(places, None, "claude-mem")
    assert [store.project for store in stores] == [project]
    assert [entry.key.rpartition(": ")[2] for entry in skipped] == ["elsewhere"]
    kinds = {draft.kind for draft in drafts_of(stores)}
    assert kinds == {Kind.FACT, Kind.EPISODE}


def test_missing_columns_and_tables_are_no_error(places, project):
    file = places.home / ".engram" / "engram.db"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as db:
        db.executescript(
            "CREATE TABLE observations (id INTEGER, content TEXT); INSERT INTO observations VALUES (1, 'x')"
        )
    assert [draft.content for draft in drafts_of(find(places, project, "engram")[0])] == ["x"]


def test_mempalace_writes_times_of_this_machine(places, project, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    place_memories("mempalace", places.home, project)
    drafts = drafts_of(find(places, project, "mempalace")[0])
    monkeypatch.undo()
    time.tzset()
    [draft] = [draft for draft in drafts if draft.content.startswith(STATEMENT)]
    assert draft.occurred_at == "2026-01-01T18:04:05.000Z"


@pytest.mark.parametrize(
    ("tool", "place", "moved", "environment"),
    [
        ("mempalace", ".mempalace", ".config/mempalace", {}),
        ("basic-memory", ".basic-memory", "settings/basic-memory", {"XDG_CONFIG_HOME": "settings"}),
        ("mcp-memory", "graph", ".npm/_npx/1a2b/node_modules/@modelcontextprotocol/server-memory/dist", {}),
    ],
)
def test_a_store_is_found_where_new_versions_put_it(tool, place, moved, environment, places, project):
    place_memories(tool, places.home, project)
    (places.home / ".claude.json").unlink(missing_ok=True)
    (places.home / moved).parent.mkdir(parents=True)
    (places.home / place).rename(places.home / moved)
    variables = {name: str(places.home / folder) for name, folder in environment.items()}
    drafts = drafts_of(find(Places(places.home, variables, "linux"), project, tool)[0])
    assert any(STATEMENT in draft.content for draft in drafts)


def test_claude_mem_rows_belong_to_the_project_that_they_were_merged_into(places, project):
    place_memories("claude-mem", places.home, project)
    with closing(sqlite3.connect(places.home / ".claude-mem" / "claude-mem.db")) as db:
        db.execute("UPDATE observations SET merged_into_project = ? WHERE project = 'elsewhere'", (project.name,))
        db.commit()
    stores, skipped = find(places, project, "claude-mem")
    assert "Of another project" in " ".join(draft.content for draft in drafts_of(stores))
    assert [entry.key.rpartition(": ")[2] for entry in skipped] == ["elsewhere"]


def test_a_line_of_mcp_memory_may_contain_other_line_separators(places, project):
    place_memories("mcp-memory", places.home, project)
    graph = places.home / "graph" / "memory.jsonl"
    pasted = "Bake\u2028at 230\u2029degrees\u0085always."
    graph.write_text(f'{{"type":"entity","name":"oven","observations":["{pasted}"]}}\n', encoding="utf-8")
    [store] = find(places, project, "mcp-memory")[0]
    [draft] = drafts_of([store])
    assert draft.content.startswith("oven: Bake")
    assert draft.content.endswith("always.")


def test_a_line_of_mcp_memory_that_cannot_be_read_is_no_deletion(places, project):
    place_memories("mcp-memory", places.home, project)
    with (places.home / "graph" / "memory.jsonl").open("a") as graph:
        graph.write('{"type":"entity","name":"cut\n')
    [store] = find(places, project, "mcp-memory")[0]
    assert Skipped(".", "cannot be read: line 4 is not JSON") in read(store)


def test_rule_files_are_read_once_with_their_project_includes(places, project):
    place_memories("rules", places.home, project)
    stores = {store.project: store for store in find(places, project, "rules")[0]}
    contents = [draft.content for draft in drafts_of([stores[project]])]
    assert contents.count("Prefer small commits.") == 1
    assert {"Indent with four spaces.", "Keep every test below one second."} <= set(contents)
    assert "Outside of the project." not in contents
    assert [draft.content for draft in drafts_of([stores[None]])] == ["Never push to main."]
    skipped = {entry.reason for entry in read(stores[project]) if isinstance(entry, Skipped)}
    assert skipped == {"same content as another rule file", "written by a memory tool"}
    assert all("rule-file" in draft.tags for draft in drafts_of(stores.values()))


def test_a_link_to_another_rule_file_is_read_once(places, project):
    (project / "AGENTS.md").write_text("Prefer small commits.\n")
    (project / "CLAUDE.md").symlink_to("AGENTS.md")
    assert len(drafts_of(find(places, project, "rules")[0])) == 1


def test_a_slug_is_found_without_settings_if_one_folder_fits(tmp_path):
    (tmp_path / "a-b" / "c.d").mkdir(parents=True)
    projects = Projects()
    slug = "".join(sign if sign.isalnum() else "-" for sign in str(tmp_path / "a-b" / "c.d"))
    assert projects.find_slug(slug) == tmp_path / "a-b" / "c.d"
    (tmp_path / "a" / "b" / "c-d").mkdir(parents=True)
    assert projects.find_slug(slug) is None
    assert projects.find_slug("no-root") is None


def test_projects_come_from_the_settings_of_agents(places, project):
    (places.home / ".claude.json").write_text(f'{{"projects": {{"{project}": {{}}, "/gone": {{}}}}}}')
    (places.home / ".codex").mkdir()
    (places.home / ".codex" / "config.toml").write_text(f'[projects."{places.home}"]\ntrust_level = "trusted"\n')
    assert list_projects(places, None).folders == (project,)


@pytest.mark.parametrize(
    "generated",
    [
        "<claude-mem-context>\nx\n</claude-mem-context>",
        "<!-- reverie:begin -->\nx\n<!-- reverie:end -->",
        "<!-- BEGIN TOOL -->\nx\n<!-- END TOOL -->",
        "<!-- gentle-ai:engram-protocol -->\nx\n<!-- /gentle-ai:engram-protocol -->",
        "From this project's memory (recorded earlier; check before relying on it):\n- x\n- y",
    ],
)
def test_generated_blocks_are_stripped(generated):
    assert strip_generated(f"Before.\n\n{generated}\n\nAfter.").split() == ["Before.", "After."]


def test_a_note_that_reverie_exported_is_left_out():
    assert strip_generated("---\nreverie: 01JAAAAAAAAAAAAAAAAAAAAAAA\nkind: fact\n---\nA fact.\n") == ""


def test_statements_have_the_headings_above_them():
    text = "# A\n\nFirst paragraph\nin two lines.\n\n## B\n\nUse these:\n\n- one thing\n  and more\n- another\n"
    text += "\n```\ncode\n```\n"
    found = [(statement.path, statement.text) for statement in split_statements(text)]
    assert found[0] == (("A",), "First paragraph\nin two lines.")
    assert found[1] == (("A", "B", "Use these"), "one thing\n  and more")
    assert found[2][0] == ("A", "B", "Use these")
    assert found[2][1].startswith("another")
