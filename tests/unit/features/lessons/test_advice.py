"""A lesson is told before a command or a file that it names, and before nothing else."""

import pytest

from pipeline.features.lessons.advice import lessons_about, names, read_touched
from pipeline.kernel.records import Anchor, Draft, Kind, Scope, ScopeKind, Source, Viewer
from pipeline.kernel.store import memories
from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.write.accept import accept

NOBODY = Viewer()


@pytest.fixture
def lesson(workspace):
    def make(text, **fields):
        receipt = accept(workspace.database, Draft(text, kind=Kind.LESSON, **fields))
        with workspace.database.read() as db:
            return memories.get(db, receipt.id)

    return make


def about(workspace, target, action_type=ActionType.COMMAND, viewer=NOBODY, limit=10):
    with workspace.database.read() as db:
        return [found.content for found in lessons_about(db, read_touched(action_type, target), viewer, limit)]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Run make migrate before the tests.", "cd api && make migrate"),
        ("Never run `npm install`; use pnpm.", "npm install --save x"),
        ("`npm run build` needs node 20.", "NODE_ENV=x npm run build"),
        ("Use docker compose, not docker-compose.", "sudo docker compose up -d"),
        ("pytest needs REDIS_URL here.", "uv run pytest -q tests/unit"),
        ("Start alembic from the api folder.", "alembic upgrade head"),
        ("Do not git push on a Friday.", "git add . && git push origin main"),
        ("seed.py deletes the table first.", "python scripts/seed.py --all"),
        ("When releasing: run make release.", "make release"),
    ],
)
def test_a_lesson_that_names_a_command(lesson, text, command):
    assert names(lesson(text), read_touched(ActionType.COMMAND, command))


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Run make migrate before the tests.", "make test"),
        ("Fix the build of the server by clearing the cache.", "git commit -m 'fix the build of the server'"),
        ("Fix the build of the server.", 'echo "the build" > x && ls of the'),
        ("Make sure that tests pass.", "make -j4"),
        ("Find the owner of a table first.", "find . -delete"),
        ("Keep the installer small.", "npm install"),
        ("npmx install is broken.", "npm install"),
        ("Our git history is linear.", "git stash pop"),
        ("config.yaml is generated.", "cat config.yaml.bak > x"),
    ],
)
def test_a_lesson_that_does_not(lesson, text, command):
    assert not names(lesson(text), read_touched(ActionType.COMMAND, command))


@pytest.mark.parametrize(
    ("text", "path", "named"),
    [
        ("Never edit schema.sql by hand.", "/home/ann/p/db/schema.sql", True),
        ("Never edit db/schema.sql by hand.", "db/schema.sql", True),
        ("Update CHANGELOG.md with each release.", "changelog.md", True),
        ("Never edit schema.sql by hand.", "schema.sql.j2", False),
        ("Never edit old-schema.sql by hand.", "schema.sql", False),
        ("Use tabs in all of it.", "x/all", False),
    ],
)
def test_a_file_is_named_by_its_name(lesson, text, path, named):
    assert names(lesson(text), read_touched(ActionType.EDIT, path)) is named


def test_an_anchor_names_its_file(lesson):
    anchored = lesson("Keep the order of these constants.", anchor=Anchor("src/limits.py"))
    assert names(anchored, read_touched(ActionType.EDIT, "/p/src/limits.py"))
    assert not names(anchored, read_touched(ActionType.EDIT, "/p/src/other.py"))


def test_only_trusted_lessons_are_shown_most_important_first(workspace, lesson):
    lesson("make release needs a tag.", importance=0.6)
    lesson("make release needs a clean tree.", importance=0.9)
    lesson("make release may be skipped, says a web page that was imported.", source=Source.IMPORT)
    accept(workspace.database, Draft("We ran make release today and it was fine.", kind=Kind.FACT))
    assert about(workspace, "make release") == ["make release needs a clean tree.", "make release needs a tag."]
    assert about(workspace, "make release", limit=1) == ["make release needs a clean tree."]


def test_lesson_owned_by_another_agent_is_not_shown(workspace, lesson):
    lesson("make release needs my key.", scope=Scope(ScopeKind.AGENT, "a1"))
    assert about(workspace, "make release") == []
    assert about(workspace, "make release", viewer=Viewer(agent="a1")) == ["make release needs my key."]


def test_case_and_other_scripts_hide_no_lesson(workspace, lesson):
    lesson("Never touch ÜBERSICHT.md by hand.")
    lesson("MAKE RELEASE needs a key.")
    lesson("Sign it.", details={"rule": "Make Release must be signed"})
    lesson("Keep the order.", anchor=Anchor("src/Limits.py"))
    assert about(workspace, "docs/übersicht.md", ActionType.EDIT) == ["Never touch ÜBERSICHT.md by hand."]
    assert len(about(workspace, "make release")) == 2
    assert about(workspace, "/p/src/limits.py", ActionType.EDIT) == ["Keep the order."]
    assert about(workspace, "FOO=1") == []


def test_archived_lesson_is_not_shown(workspace, lesson):
    kept = lesson("make release needs a tag.")
    with workspace.database.write() as db:
        memories.archive(db, kept.seq, "2026-01-01T00:00:00.000Z")
    assert about(workspace, "make release") == []
