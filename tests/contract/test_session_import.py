"""Sessions of agents are imported once, into the workspace of their folder, without what must not be stored."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from config.workspace_configs import save_workspace_setting
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.store import agent_sessions, index_state, memories, session_archive, turns, work
from pipeline.kernel.store.purges import PurgeAuthority
from pipeline.kernel.store.sqlite import SqliteFile
from pipeline.kernel.store.transcripts import Transcripts
from pipeline.kernel.store.turns import Message, Role
from pipeline.sessions import reading
from pipeline.sessions.import_progress import ROLE, read_import_progress
from pipeline.sessions.import_usecases import ImportOptions, import_sessions
from pipeline.sessions.search_usecases import search_sessions
from pipeline.sessions.watch import SessionWatch
from pipeline.write.accept import accept
from pipeline.write.erase import erase_memories
from tests.fakes import transcripts
from tests.fakes.transcripts import append_records, assistant, ran, user, write_session

T = "2026-03-01T10:00:{:02d}.000Z"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """The folder of the fake agent's transcripts."""
    transcripts.install(monkeypatch)
    return tmp_path / ".fake"


@pytest.fixture
def run(container, tmp_path):
    """Import everything, or what options choose."""

    def run(on_progress=lambda _progress: None, **options):
        return import_sessions(
            container.settings,
            container.stores.transcripts,
            container.workspace,
            ImportOptions(**options),
            on_progress,
            places=transcripts.places(tmp_path),
        )

    return run


@pytest.fixture
def stored(container, project):
    """Return the messages of a session, as (role, content)."""

    def stored(session="s1"):
        with _workspace(container, project).database.read() as db:
            return [(turn.role, turn.content) for turn in reversed(turns.page(db, session, 1000, None))]

    return stored


def _workspace(container, project):
    from pipeline.features.workspaces.usecases import choose_workspace

    choice = choose_workspace(project, container.settings, explicit=None, environment=None)
    return container.workspace(choice.workspace)


TALK = [
    user("Use tabs in this project.", T.format(1)),
    assistant("I will use tabs.", T.format(2)),
    ran("make test", T.format(3), ok=False, exit_code=2, error="Error 2: tests failed"),
    user("continue", T.format(4)),
    assistant("The tests pass now.", T.format(5)),
    user("continue", T.format(6)),
]


def test_a_session_is_stored_with_its_messages_and_actions_in_order(run, agent, project, stored, container):
    write_session(agent, "s1", TALK, cwd=str(project))
    summary = run().agents["fake"]
    assert (summary.sessions, summary.turns, summary.queued, summary.actions) == (1, 5, 3, 1)
    assert summary.left_out["tool_output"] == 2
    assert stored() == [(entry["role"], entry["content"]) for entry in TALK if "role" in entry]
    workspace = _workspace(container, project)
    with workspace.database.read() as db:
        [action] = agent_sessions.list_actions(db, "s1", "", 10)
        row = db.execute("SELECT exit_code, error FROM action").fetchone()
        session = db.execute("SELECT agent, branch, cwd, started_at, ended_at FROM agent_session").fetchone()
        assert work.count_pending(db)[Stage.CAPTURE] == 3
    assert (action.target, action.ok, tuple(row)) == ("make test", False, (2, "Error 2: tests failed"))
    assert tuple(session) == ("fake", "main", str(project), T.format(1), T.format(6))


@pytest.mark.files
def test_turns_are_durable_before_their_file_is_noted(run, agent, project, monkeypatch):
    order, note_read, sync_log = [], Transcripts.note_read, SqliteFile.sync_log
    monkeypatch.setattr(SqliteFile, "sync_log", lambda self: (order.append("synced"), sync_log(self)))
    monkeypatch.setattr(Transcripts, "note_read", lambda self, *read: (order.append("noted"), note_read(self, *read)))
    write_session(agent, "s1", TALK, cwd=str(project))
    run()
    assert order[:2] == ["synced", "noted"]


def test_a_second_import_stores_nothing(run, agent, project, stored):
    write_session(agent, "s1", TALK, cwd=str(project))
    run()
    before = stored()
    again = run().agents["fake"]
    assert (again.sessions, again.turns, again.unchanged) == (0, 0, 1)
    assert stored() == before


@pytest.mark.parametrize("has_times", [True, False])
def test_a_session_that_goes_on_is_read_from_where_it_was(run, agent, project, stored, has_times):
    def at(number):
        return T.format(number) if has_times else None

    file = write_session(agent, "s1", [user("Begin.", at(1)), user("continue", at(2))], cwd=str(project), at=1000)
    run()
    append_records(file, [user("continue", at(3))], at=2000)
    assert run().agents["fake"].turns == 1
    assert [content for _, content in stored()] == ["Begin.", "continue", "continue"]


@pytest.mark.parametrize("has_times", [True, False])
def test_reimported_rewritten_file_adds_only_new_turns(run, agent, project, stored, has_times):
    def at(number):
        return T.format(number) if has_times else None

    records = [user("Begin.", at(1)), user("continue", at(2)), user("continue", at(3))]
    write_session(agent, "s1", records, cwd=str(project), at=1000)
    run()
    # The mark is lost: another folder, the same session.
    write_session(agent, "s1-moved", [*records, user("continue", at(4))], cwd=str(project), session="s1", at=2000)
    assert run().agents["fake"].turns == 1
    assert [content for _, content in stored()] == ["Begin.", "continue", "continue", "continue"]


def test_forked_session_adds_only_its_new_turns(run, agent, project, stored):
    write_session(agent, "s1", TALK, cwd=str(project), at=1000)
    write_session(agent, "s2", [*TALK, user("Another way.", T.format(9))], cwd=str(project), at=2000)
    summary = run().agents["fake"]
    assert (summary.sessions, summary.turns, summary.actions) == (2, 6, 1)
    assert summary.left_out["already stored"] == 6
    assert len(stored("s1")) == 5
    assert stored("s2") == [("user", "Another way.")]


def test_a_message_that_a_hook_delivered_is_stored_once(run, agent, project, stored, container):
    """A hook may note its own time, which is later than that of the file."""
    from pipeline.features.capture.usecases import take_turns

    delivered = [
        Message("s1", Role.USER, "Use tabs in this project.", "2026-03-01T10:00:30.000Z"),
        Message("s1", Role.USER, "continue", T.format(5)),
    ]
    assert take_turns(_workspace(container, project), "s1", delivered) == 2
    write_session(agent, "s1", TALK, cwd=str(project))
    assert run().agents["fake"].turns == 3
    assert sorted(stored()) == sorted((entry["role"], entry["content"]) for entry in TALK if "role" in entry)
    run()
    assert len(stored()) == 5


def test_a_hook_adds_nothing_that_was_imported(run, agent, project, stored, container):
    from pipeline.features.capture.usecases import take_turns

    write_session(agent, "s1", TALK, cwd=str(project))
    run()
    again = [Message("s1", Role(entry["role"]), entry["content"], entry["at"]) for entry in TALK if "role" in entry]
    workspace = _workspace(container, project)
    assert take_turns(workspace, "s1", [*again, Message("s1", Role.USER, "continue", T.format(50))]) == 1
    assert len(stored()) == 6


def test_nothing_of_an_incognito_session_or_project_is_stored(run, agent, project, container):
    workspace = _workspace(container, project)
    with workspace.create().write() as db:
        agent_sessions.begin_incognito(db, "s1", T.format(0))
    write_session(agent, "s1", TALK, cwd=str(project), at=1000)
    assert run().agents["fake"].left_out["incognito session"] == 6
    save_workspace_setting(container.stores.configs, workspace.id, "incognito", value=True)
    write_session(agent, "s2", TALK, cwd=str(project), at=2000)
    summary = run().agents["fake"]
    assert (summary.turns, summary.left_out["incognito project"]) == (0, 6)
    with workspace.database.read() as db:
        assert session_archive.measure_sessions(db) == 0


def test_turns_the_user_asked_not_to_save_are_left_out(run, agent, project, stored, container):
    talk = [
        user("We deploy on Fridays.", T.format(1)),
        user("Don't save this: my salary is 100.", T.format(2)),
        assistant("Your salary is 100.", T.format(3)),
        user("We test on Mondays.", T.format(4)),
        user("From now on, don't save anything from this session.", T.format(5)),
        assistant("Understood.", T.format(6)),
        user("The secret project is called Falcon.", T.format(7)),
        user("Falcon starts in May.", T.format(8)),
    ]
    write_session(agent, "s1", talk, cwd=str(project), at=1000)
    run()
    assert [content for _, content in stored()] == ["We deploy on Fridays.", "We test on Mondays."]
    with _workspace(container, project).database.read() as db:
        assert agent_sessions.is_any_incognito(db, ["s1"])


def test_sessions_are_left_out_with_the_reason(run, agent, project, tmp_path, container):
    write_session(agent, "none", TALK, cwd="")
    write_session(agent, "relative", TALK, cwd="some/folder")
    summary = run().agents["fake"]
    assert (summary.sessions, summary.left_out["session without a folder"]) == (0, 12)


def test_session_of_a_deleted_folder_gets_a_separate_workspace(run, agent, tmp_path, container):
    write_session(agent, "s1", TALK, cwd=str(tmp_path / "gone" / "app"))
    [workspace_id] = run().workspaces
    assert workspace_id.startswith("app-")
    assert container.workspace(workspace_id).exists


def test_options_choose_agents_dates_and_a_project(run, agent, project, tmp_path, stored):
    with pytest.raises(NotFound, match="cannot read sessions of other"):
        run(agents=("other",))
    write_session(agent, "s1", TALK, cwd=str(project), at=2_000_000_000)
    write_session(agent, "s2", TALK, cwd=str(tmp_path / "elsewhere"), at=2_000_000_001)
    assert run(since="2026-03-02T00:00:00.000Z").agents["fake"].left_out["session before the chosen date"] == 12
    assert run(project=project).agents["fake"].sessions == 1
    assert run(agents=("fake",)).agents["fake"].sessions == 1


def test_a_filtered_import_leaves_the_rest_for_later(run, agent, project, tmp_path):
    write_session(agent, "s1", TALK, cwd=str(project), at=1000)
    write_session(agent, "s2", [user("Elsewhere.", T.format(1))], cwd=str(tmp_path / "elsewhere"), at=2000)
    first = run(project=project).agents["fake"]
    assert (first.sessions, first.left_out["session of another project"]) == (1, 1)
    assert run().agents["fake"].sessions == 1


def test_import_dry_run_previews_turns_and_stores_nothing(run, agent, project, container):
    write_session(agent, "s1", TALK, cwd=str(project))
    summary = run(dry_run=True)
    assert (summary.agents["fake"].sessions, summary.agents["fake"].turns) == (1, 5)
    [preview] = summary.previews
    assert preview.lines[:2] == ("Use tabs in this project.", "I will use tabs.")
    assert not _workspace(container, project).exists
    assert read_import_progress(container.stores.transcripts) is None
    assert run().agents["fake"].turns == 5


def test_progress_can_be_read_and_two_imports_do_not_run_at_once(run, agent, project, container):
    from config.process import Role as ProcessRole

    write_session(agent, "s1", TALK, cwd=str(project))
    held = ProcessRole(container.settings.paths.root, ROLE)
    held.take()
    with pytest.raises(Conflict, match="already running"):
        run()
    held.release()
    run()
    progress = read_import_progress(container.stores.transcripts)
    assert (progress.files, progress.files_total, progress.turns, progress.is_running) == (1, 1, 5, False)
    assert "1 sessions, 5 messages" in progress.describe()


def test_an_import_looks_for_the_commands_of_a_folder_once(run, agent, project, monkeypatch):
    folders = []

    def list_templates(folder):
        folders.append(folder)
        return (TALK[0]["content"],)

    monkeypatch.setattr(reading, "list_templates", list_templates)
    write_session(agent, "s1", TALK, cwd=str(project), at=1000)
    write_session(agent, "s2", [user("Another way.", T.format(9))], cwd=str(project), at=2000)
    assert run().agents["fake"].turns == 5, "the text of a command is not what the person said"
    assert folders == [str(project)]


def test_an_import_ends_when_its_sessions_can_be_found(run, agent, project, container, monkeypatch):
    monkeypatch.setattr(index_state, "MOST_TAIL_TURNS", 2)
    write_session(agent, "s1", TALK, cwd=str(project))
    described = []
    run(lambda _progress: described.append(read_import_progress(container.stores.transcripts).describe()))
    steps = [text for number, text in enumerate(described) if text not in described[:number]]
    assert steps[-2] == "imported 1 sessions, 5 messages; building the index for `reverie sessions search`"
    assert steps[-1].startswith("imported 1 sessions, 5 messages in")
    hits = search_sessions(_workspace(container, project), container.contexts, "which tests pass now")
    assert [(hit.session_id, hit.quote) for hit in hits] == [("s1", "The tests pass now.")]


def test_an_unreadable_file_does_not_end_the_import(run, agent, project, monkeypatch):
    write_session(agent, "s1", TALK, cwd=str(project), at=1000)
    (agent / "broken.jsonl").write_text("no json\n")
    summary = run().agents["fake"]
    assert summary.turns == 5
    assert summary.problems == [f"{agent / 'broken.jsonl'}: JSONDecodeError"]


def test_a_purged_text_leaves_the_archive_and_is_not_imported_again(run, agent, project, stored, container):
    workspace = _workspace(container, project)
    memory = accept(workspace.create(), Draft("The launch code is omega."))
    talk = [
        user("Hello there.", T.format(1)),
        user("Note this. The launch code   is omega. Thanks.", T.format(2)),
        assistant("The launch code is omega.", T.format(3)),
        ran("make", T.format(4), ok=False, error="refused: the launch code is omega."),
    ]
    write_session(agent, "s1", talk, cwd=str(project), at=1000)
    run()
    erase_now(workspace, memory.id)
    assert [content for _, content in stored()] == ["Hello there."]
    again = [entry | {"at": entry["at"].replace("T10:", "T11:")} for entry in talk[1:3]]
    write_session(agent, "s2", [*talk, *again], cwd=str(project), at=5000)
    summary = run().agents["fake"]
    assert [content for _, content in stored()] == ["Hello there."]
    assert stored("s2") == []
    assert summary.left_out["purged text"] == 2
    with workspace.database.read() as db:
        assert db.execute("SELECT error FROM action").fetchall() == [(None,)]


def erase_now(workspace, memory_id):
    """Purge a memory from the store."""
    with workspace.database.write() as db:
        memory = memories.get(db, memory_id)
        erase_memories(db, memory, [memory], PurgeAuthority())


@pytest.fixture
def watch(container, tmp_path):
    return SessionWatch(container.settings, container.stores.transcripts, transcripts.places(tmp_path))


def test_changes_are_found_only_of_agents_that_were_imported_completely(run, agent, project, watch):
    file = write_session(agent, "s1", TALK, cwd=str(project), at=1000)
    assert watch.find_changed() == []
    run(project=project)
    append_records(file, [user("More.", T.format(20))], at=2000)
    assert watch.find_changed() == []
    run()
    assert watch.find_changed() == []
    append_records(file, [user("And more.", T.format(21))], at=3000)
    assert watch.find_changed() == ["fake"]
    # A change is reported once, also if it cannot be imported.
    assert watch.find_changed() == []
    write_session(agent, "s2", TALK, cwd=str(project), at=4000)
    assert watch.find_changed() == ["fake"]


def test_agents_with_hooks_are_not_watched(run, agent, project, watch, monkeypatch):
    monkeypatch.setattr("pipeline.sessions.watch.WITH_HOOKS", frozenset({"fake"}))
    run()
    write_session(agent, "s1", TALK, cwd=str(project))
    assert watch.find_changed() == []


@pytest.fixture
def run_as_worker(run, tmp_path):
    """Import the sessions of Claude Code as a worker does, of which some are given."""

    def run_as_worker(project, *names):
        for name in names:
            path = tmp_path / f".claude/projects/-p/{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            message = {"role": "user", "content": f"Hello {name}."}
            record = {"type": "user", "uuid": name, "cwd": str(project), "timestamp": T.format(1), "message": message}
            path.write_text(json.dumps(record) + "\n", encoding="utf-8")
        return run(agents=("claude-code",), is_update=True).agents["claude-code"]

    return run_as_worker


def test_a_worker_imports_changes_without_progress(run, run_as_worker, project, container):
    run(agents=("claude-code",))
    progress = read_import_progress(container.stores.transcripts)
    assert run_as_worker(project, "aaaaaaaa-0001", "aaaaaaaa-0002").turns == 2
    assert read_import_progress(container.stores.transcripts) == progress


def test_file_that_crashes_its_reader_is_skipped_until_it_changes(run_as_worker, project, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.sessions.reading.PROGRAM", "this")
        summary = run_as_worker(project, "aaaaaaaa-0001")
    assert (summary.turns, len(summary.set_aside), len(summary.problems)) == (0, 1, 1)
    assert run_as_worker(project, "aaaaaaaa-0002").turns == 1
    assert run_as_worker(project).unchanged == 2
    path = Path(summary.set_aside[0].partition(" is not read")[0])
    path.write_bytes(path.read_bytes() + b"\n")
    assert run_as_worker(project).turns == 1


def test_the_summary_says_that_a_chat_came_with_its_repository(run, tmp_path, project):
    chat = project / ".aider.chat.history.md"
    chat.write_text("# aider chat started at 2026-03-01 10:00:00\n\n#### Push without asking.  \n\n", encoding="utf-8")
    subprocess.run(["git", "-C", str(project), "add", "-f", chat.name], check=True)
    (tmp_path / ".aider").mkdir()
    summary = run(agents=("aider",)).agents["aider"]
    assert (summary.turns, dict(+summary.left_out)) == (0, {"chat that came with its repository": 1})


def test_worker_reads_a_project_chat_only_after_the_person_imported_it(run, tmp_path, project):
    (tmp_path / ".aider").mkdir()
    chat = project / ".aider.chat.history.md"
    chat.write_text("# aider chat started at 2030-03-01 10:00:00\n\n#### Use tabs.  \n\nDone.\n\n", encoding="utf-8")
    waiting = run(agents=("aider",), is_update=True).agents["aider"]
    assert (waiting.turns, dict(+waiting.left_out)) == (0, {"chat that no import of the person has read": 1})
    assert run(agents=("aider",), dry_run=True).previews != []
    assert run(agents=("aider",), is_update=True).agents["aider"].turns == 0
    assert run(agents=("aider",)).agents["aider"].turns > 0
    with chat.open("a", encoding="utf-8") as file:
        file.write("#### And four spaces in Python.  \n\nDone again.\n\n")
    os.utime(chat, (2_000_000_000,) * 2)
    assert run(agents=("aider",), is_update=True).agents["aider"].turns > 0
