"""What is purged takes with it what the journal says of it, and nothing else."""

import pytest

from pipeline.kernel.records import Draft, Kind, Revision, Source
from pipeline.kernel.store import agent_sessions
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.prompt.tool_calls.turn import summarize_turn
from pipeline.write.accept import accept
from pipeline.write.revise import edit, purge
from pipeline.write.tool_actions import mentions_action, recognize_action
from tests.fakes.in_process import folder_of, scratch_database

AT = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def run(command, session="s1", *, ok=True):
    return recognize_action(session, None, AT, "Bash", {"command": command}, ok=ok)


def make_edit(path, session="s1"):
    return Action(AT, session, None, "Edit", ActionType.EDIT, path, ok=True)


def journal(database, did):
    with database.write() as db:
        for action in did:
            agent_sessions.add_action(db, action)


def ambient(database, content, session="s1"):
    return accept(
        database, Draft(content, kind=Kind.ACTIVITY, source=Source.AMBIENT, importance=0.5, session_id=session)
    )


def list_left(database, session="s1"):
    with database.read() as db:
        return [one.target for one in agent_sessions.list_actions(db, session, "", 100)]


def traces(database, word):
    database.erase_deleted_data()
    folder = folder_of(database)
    return [file.name for file in folder.rglob("*") if file.is_file() and word.encode() in file.read_bytes()]


TURN = [
    run("pytest tests/zubrowk.py -x", ok=False),
    make_edit("src/zubrowk.py"),
    make_edit("src/other_zubrowka.txt"),
    run("make lint"),
    run("pytest tests/zubrowk.py -x"),
    run("git commit -qm 'Mend the zubrowk race.' && git push"),
    run(f"./deploy.sh zubrowk {'--flag ' * 30}"),
]


@pytest.mark.files
def test_purged_result_is_erased_from_the_journal(database):
    journal(database, [*TURN, make_edit("src/zubrowk.py", "s2")])
    kept = ambient(database, summarize_turn([*TURN[:2], *TURN[3:]]))
    assert traces(database, "zubrowk race")
    purge(database, kept.id)
    # What was not told is another's, and so is another session.
    assert list_left(database) == ["src/other_zubrowka.txt", "make lint"]
    assert list_left(database, "s2") == ["src/zubrowk.py"]
    assert traces(database, "zubrowk race") == traces(database, "tests/zubrowk.py") == []


def test_purge_of_a_merged_or_edited_result_erases_its_actions(database):
    did = [run("git commit -m 'Mend the pool'"), make_edit("pool.py")]
    journal(database, did)
    journal(database, [make_edit("pool.py", "s2"), run("git commit -m 'Mend the pool'", "s2")])
    kept = ambient(database, summarize_turn(did))
    assert ambient(database, summarize_turn(did), "s2").duplicate_of == kept.id
    edit(database, kept.id, Revision(content="Something else was done that day, in the harbour"))
    purge(database, kept.id)
    assert list_left(database) == list_left(database, "s2") == []


def test_a_memory_that_was_not_made_of_the_journal_leaves_it_alone(database):
    journal(database, [make_edit("pool.py")])
    written = accept(database, Draft("Edited pool.py.", source=Source.AGENT, session_id="s1"))
    purge(database, written.id)
    assert list_left(database) == ["pool.py"]


@pytest.mark.parametrize(
    ("action", "text", "told"),
    [
        (make_edit("pool.py"), "Edited pool.py.", True),
        (make_edit("pool.py"), "Edited src/pool.py, a.py.", False),
        (make_edit("pool.py"), "Edited pool.pyi.", False),
        (make_edit("pool"), "Edited pool.py.", False),
        (run("make test", ok=False), "Fixed: `make test` failed and passes now.", True),
        (run("make"), "Fixed: `make test` failed and passes now.", False),
        (run("git commit --amend --no-edit"), "Committed with `git commit --amend --no-edit`.", True),
        (run("git commit -m 'Two'"), "Committed: One; Two.", True),
        (run("git commit -m 'Three'"), "Committed: One; Two.", False),
    ],
)
def test_action_mention_in_a_text_is_recognized(action, text, told):
    assert mentions_action(action, text) is told
