from pipeline.features.capture.distill import MOST_PROPOSED, propose_lessons
from pipeline.kernel.records import Kind, Source
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.turns import Role, Turn


def say(seq, role, text):
    return Turn("s1", role, text, f"2026-01-01T00:00:{seq:02}.000Z", seq)


def do(seq, action_type, target, *, ok=True):
    return Action(f"2026-01-01T00:00:{seq:02}.000Z", "s1", None, "Bash", action_type, target, ok)


def reasons(said, did=()):
    return {draft.content: draft.metadata["reason"] for draft in propose_lessons("s1", said, did)}


def test_correction_of_an_agents_action_is_a_lesson():
    said = [
        say(1, Role.USER, "No tests yet, just the parser please."),
        say(2, Role.ASSISTANT, "Installed with npm."),
        say(3, Role.USER, "No, use pnpm instead of npm. Then go on with the parser."),
    ]
    assert reasons(said) == {"No, use pnpm instead of npm.": "correction"}
    (lesson,) = propose_lessons("s1", said, ())
    assert (lesson.kind, lesson.source, lesson.metadata["turn"]) == (Kind.LESSON, Source.AMBIENT, 3)


def test_repeated_instruction_is_a_lesson():
    said = [
        say(1, Role.USER, "Please keep the migrations reversible."),
        say(2, Role.ASSISTANT, "Done."),
        say(3, Role.USER, "Again: keep all the migrations reversible."),
        say(4, Role.USER, "Are the migrations reversible?"),
    ]
    assert reasons(said) == {"Again: keep all the migrations reversible.": "said again"}


def test_failure_fixed_by_an_edit_is_a_lesson():
    did = [
        do(1, ActionType.TEST, "pytest tests/test_cart.py", ok=False),
        do(2, ActionType.EDIT, "cart.py"),
        do(3, ActionType.TEST, "pytest tests/test_cart.py"),
        do(4, ActionType.COMMAND, "make", ok=False),
        do(5, ActionType.COMMAND, "make"),
    ]
    assert reasons([], did) == {
        "When `pytest tests/test_cart.py` fails, look at cart.py: editing it helped.": "mended",
    }


def test_reverted_edit_is_a_lesson_with_the_persons_comment():
    said = [say(0, Role.ASSISTANT, "I changed the lock file."), say(3, Role.USER, "No, never edit the lock file.")]
    did = [do(2, ActionType.EDIT, "poetry.lock"), do(4, ActionType.COMMAND, "git checkout -- poetry.lock")]
    found = reasons(said, did)
    assert (
        found["An edit of poetry.lock was reverted (`git checkout -- poetry.lock`). No, never edit the lock file."]
        == "reverted"
    )


def test_session_lessons_are_limited_and_empty_without_corrections():
    assert propose_lessons("s1", [say(1, Role.USER, "No, that is fine.")], [do(2, ActionType.EDIT, "a.py")]) == []
    many = [
        say(0, Role.ASSISTANT, "ok"),
        *(say(n, Role.USER, f"No, never touch file{n}.py again.") for n in range(1, 30)),
    ]
    assert len(propose_lessons("s1", many, ())) == MOST_PROPOSED
