"""A turn's result in a sentence that passes the door, and which lessons its actions prove followed or ignored."""

from dataclasses import replace

import pytest

from pipeline.kernel.records import Draft, Kind, Outcome, Source
from pipeline.kernel.store import memories
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.prompt.tool_calls.turn import ShownLesson, find_followed, summarize_turn
from pipeline.write.accept import accept
from pipeline.write.tool_actions import recognize_action

AT = "2026-01-01T00:00:01.000Z"
EARLIER = "2026-01-01T00:00:00.000Z"


def run(command, *, ok=True):
    return recognize_action("s1", None, AT, "Bash", {"command": command}, ok=ok)


def edit(path):
    return Action(AT, "s1", None, "Edit", ActionType.EDIT, path, ok=True)


RESULTS = [
    ([run("pytest -q", ok=False), edit("src/pool.py"), run("pytest -q")],
     "Fixed: `pytest -q` failed and passes now. Edited src/pool.py."),
    ([run("pytest tests/a.py -x", ok=False), run("pytest -q")], "Fixed: `pytest tests/a.py -x` failed and passes now."),
    ([run("make build", ok=False), run("make build")], "Fixed: `make build` failed and works now."),
    ([edit("a.py"), edit("a.py"), run("git commit -m 'Fix the race in the pool.'")],
     "Committed: Fix the race in the pool. Edited a.py."),
    ([run('git add -A && git commit -q -m "One" && git commit --message="Two"')], "Committed: One."),
    ([run("git commit --amend --no-edit")], "Committed with `git commit --amend --no-edit`."),
    ([run("./deploy.sh staging")], "Deployed with `./deploy.sh staging`."),
    ([*(edit(f"src/f{number}.py") for number in range(7)), run("make deploy")],
     "Deployed with `make deploy`. Edited src/f0.py, src/f1.py, src/f2.py, src/f3.py, src/f4.py and others."),
]  # fmt: skip


@pytest.mark.parametrize(("did", "told"), RESULTS)
def test_turn_with_a_result_is_summarized(did, told):
    assert summarize_turn(did) == told


@pytest.mark.parametrize("did", [did for did, _ in RESULTS])
def test_a_result_passes_the_door(workspace, did):
    draft = Draft(summarize_turn(did), kind=Kind.ACTIVITY, source=Source.AMBIENT, importance=0.5, tags=("ambient",))
    receipt = accept(workspace.database, draft)
    assert receipt.outcome is Outcome.CREATED, receipt
    with workspace.database.read() as db:
        assert memories.get(db, receipt.id).instructs is False


@pytest.mark.parametrize(
    "did",
    [
        [],
        [edit("a.py")],
        [run("pytest -q")],
        [run("pytest -q"), run("pytest -q")],
        [run("pytest -q", ok=False)],
        [run("pytest -q"), run("pytest -q", ok=False)],
        [run("pytest tests/a.py", ok=False), run("pytest tests/b.py")],
        [run("make build", ok=False), run("make other")],
        [run("git commit -m x", ok=False)],
        [run("make deploy", ok=False)],
        [run("git push")],
    ],
)
def test_turn_without_a_result_is_not_summarized(did):
    assert summarize_turn(did) is None


def test_a_long_command_is_cut():
    assert len(summarize_turn([run(f"make deploy {'x' * 1000}")])) < 160


@pytest.fixture
def verdict(workspace):
    """Say whether a surfaced lesson counts as followed (True), ignored (False) or open (None)."""

    def judge(text, *did, surfaced_at=EARLIER, agent=None):
        receipt = accept(workspace.database, Draft(text, kind=Kind.LESSON))
        with workspace.database.read() as db:
            lesson = memories.get(db, receipt.id)
        answers = find_followed([ShownLesson("u1", surfaced_at, lesson, agent)], did)
        return answers[0].followed if answers else None

    return judge


@pytest.mark.parametrize(
    ("text", "action", "followed"),
    [
        ("Run make migrate before the tests.", run("make migrate"), True),
        ("Run make migrate before the tests.", run("make test"), None),
        ("Never run npm install; use pnpm install.", run("npm install x"), False),
        ("Never run npm install; use pnpm install.", run("pnpm install x"), True),
        ("Use pnpm install, not npm install.", run("pnpm install x"), True),
        ("Use pnpm install, not npm install.", run("npm install x"), False),
        ("Never git push without running make check.", run("make check"), True),
        ("Never git push without running make check.", run("git push"), None),
        ("Don't run make clean.", run("make clean"), False),
        ("Führe make clean nicht aus.", run("make clean"), False),
        ("No ejecutes make clean.", run("make clean"), False),
        ("不要运行 make clean", run("make clean"), False),
        ("Never edit schema.sql by hand.", edit("db/schema.sql"), False),
        ("In limits.py never use magic numbers.", edit("src/limits.py"), None),
        ("Update CHANGELOG.md with each release.", edit("CHANGELOG.md"), True),
        ("Run pytest after each change.", run("pytest -q", ok=False), True),
        ("Run make migrate first.", run("make migrate", ok=False), None),
    ],
)
def test_lesson_verdict_follows_from_the_recorded_action(verdict, text, action, followed):
    assert verdict(text, action) is followed


def test_action_before_the_lesson_was_shown_gives_no_verdict(verdict):
    assert verdict("Run make migrate first.", run("make migrate"), surfaced_at="2026-01-01T00:00:02.000Z") is None


def test_a_breach_weighs_more(verdict):
    assert verdict("Never run npm install; use pnpm install.", run("pnpm install"), run("npm install")) is False
    assert verdict("Never run npm install; use pnpm install.") is None


def test_each_agent_answers_for_its_own_deeds(verdict):
    text = "Never run npm install; use pnpm install."
    by_main, by_helper = run("pnpm install x"), replace(run("npm install x"), agent_id="helper")
    assert verdict(text, by_main, by_helper) is True
    assert verdict(text, by_main, by_helper, agent="helper") is False
    assert verdict(text, by_main, by_helper, agent="another") is None
