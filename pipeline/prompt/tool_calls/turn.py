"""Summarize a finished turn, and find which lessons it followed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.features.lessons.advice import names, read_touched, text_names
from pipeline.features.lessons.command_rules import Verdict, judge, list_environments
from pipeline.features.lessons.prohibitions import CLAUSE, CONDITION, EDITS, FORBIDS, forbids_command
from pipeline.kernel.kinds import render_text
from pipeline.kernel.records import Memory
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.text.quoting import quote
from pipeline.write.tool_actions import ToolTarget, find_commit_subject, repeats_action, shorten_command

FILES_TOLD = 5
COMMITS_TOLD = 3
FAILURES_TOLD = 2


@dataclass(frozen=True, slots=True)
class ShownLesson:
    """A shown lesson with its impression id and time; `agent_id` is None for the main agent."""

    id: str
    at: str
    lesson: Memory
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class LessonOutcome:
    """A lesson that a turn followed or ignored, according to its actions."""

    impression_id: str
    followed: bool


def summarize_turn(did: Sequence[Action]) -> str | None:
    """Return a turn's result in a sentence: a fixed failure, a commit or a deployment; None if there is none."""
    told_of = [part for part in (_describe_fix(did), _describe_commits(did)) if part]
    deployed = [action.target for action in did if action.type is ActionType.DEPLOY and action.ok]
    told_of += [f"Deployed with `{shorten_command(target)}`." for target in deployed[-1:]]
    if not told_of:
        return None
    files = list(dict.fromkeys(action.target for action in did if action.type is ActionType.EDIT and action.ok))
    edited = (
        f" Edited {', '.join(files[:FILES_TOLD])}{' and others' if len(files) > FILES_TOLD else ''}." if files else ""
    )
    return " ".join(told_of) + edited


def list_done(did: Sequence[Action]) -> list[str]:
    """Return what a session did: its commits, its last successful tests, its deployments, and the files it edited."""
    ok = [action for action in did if action.ok]
    commits = [find_commit_subject(action.target) for action in ok if action.type is ActionType.COMMIT]
    tests = [action.target for action in ok if action.type is ActionType.TEST][-1:]
    deployments = [action.target for action in ok if action.type is ActionType.DEPLOY][-1:]
    files = list(dict.fromkeys(action.target for action in ok if action.type is ActionType.EDIT))
    done = [f"committed {quote(subject)}" for subject in dict.fromkeys(commits) if subject][-COMMITS_TOLD:]
    done += [f"deployed with {quote(shorten_command(target))}" for target in deployments]
    done += [f"tests passed: {quote(shorten_command(target))}" for target in tests]
    more = " and others" if len(files) > FILES_TOLD else ""
    return done + ([f"edited {', '.join(map(quote, files[-FILES_TOLD:]))}{more}"] if files else [])


def list_failing(did: Sequence[Action]) -> list[str]:
    """Return the tests and commands of a session that failed and did not succeed afterwards."""
    failing, _ = _follow_failures(did)
    return [f"{quote(shorten_command(target))} failed" for target in list(failing)[-FAILURES_TOLD:]]


def find_followed(shown: Sequence[ShownLesson], did: Sequence[Action]) -> list[LessonOutcome]:
    """Return which shown lessons were followed, or ignored if the actions did what they forbid.

    Other lessons stay open: without a matching action, nothing is proved. Only the actions of the
    agent that was shown a lesson count: not those of a subagent for a lesson of the main agent, nor vice versa.
    """
    outcomes = []
    for shown_lesson in shown:
        mine = [
            action
            for action in did
            if action.agent_id == shown_lesson.agent_id
            and action.at >= shown_lesson.at
            and action.type is not ActionType.READ
        ]
        # Failed tests were run anyway; other failed actions may never have happened.
        since = [action for action in mine if action.ok or action.type is ActionType.TEST]
        proofs = {proof for action in since for proof in _proofs(shown_lesson.lesson, action)}
        # A forbidden action outweighs other actions that followed the lesson.
        if proofs:
            outcomes.append(LessonOutcome(shown_lesson.id, False not in proofs))
    return outcomes


def forbids(lesson: Memory, target: ToolTarget) -> bool:
    """Return whether a lesson clearly forbids a target."""
    return False in _proofs(lesson, target)


def concerns(lesson: Memory, target: ToolTarget, branch: str | None = None, *, is_whole: bool = True) -> bool:
    """Return whether a lesson is about a target: it forbids it, or it names it without forbidding another one.

    `branch` is the branch that is checked out. A target that was read in part may also be in another environment.
    """
    text, touched = render_text(lesson), read_touched(target.type, target.target)
    if target.type is not ActionType.EDIT:
        verdict = judge(text, target.target, branch)
        if verdict is not None:
            return verdict is not Verdict.PERMITTED or not is_whole
        if forbids_command(text):
            # Another command than the forbidden one may still change a forbidden file.
            touched = replace(touched, commands=())
    return names(lesson, touched) and not (is_whole and is_about_other_environment(lesson, target))


def is_about_other_environment(lesson: Memory, target: ToolTarget) -> bool:
    """Return whether a lesson is about an environment, such as production, and a target names only others."""
    named = list_environments(target.target)
    clauses = [list_environments(clause) for clause in _list_clauses(lesson, target)]
    return bool(named and clauses) and all(clause and not clause & named for clause in clauses)


def _list_clauses(lesson: Memory, action: Action | ToolTarget) -> list[str]:
    """Return the clauses of a lesson that name the target of an action."""
    text, touched = render_text(lesson), read_touched(action.type, action.target)
    clauses = [clause for clause in CLAUSE.split(text) if text_names(clause, touched)]
    # Without such a clause, the anchor names the file, or the name is spread over clauses.
    return clauses if clauses or not names(lesson, touched) else [text]


def _proofs(lesson: Memory, action: Action | ToolTarget) -> Iterator[bool]:
    """Yield what an action proves of a lesson: that it was followed (True) or ignored (False)."""
    touched = read_touched(action.type, action.target)
    if action.type is not ActionType.EDIT and judge(render_text(lesson), action.target) is Verdict.FORBIDDEN:
        yield False
    for clause in _list_clauses(lesson, action):
        if FORBIDS.search(clause) is None:
            yield True
            continue
        condition = CONDITION.search(clause)
        if condition is not None:
            # "Never push without running the tests": to run them is to follow it, to push proves nothing.
            if text_names(clause[condition.end() :], touched):
                yield True
        elif EDITS.search(clause) is not None and text_names(clause, replace(touched, commands=())):
            # A file that may be edited, though not anyhow, was rightly edited for all that is known.
            yield False


def _describe_fix(did: Sequence[Action]) -> str | None:
    """Describe the last command or test that first failed and later succeeded."""
    _, mended = _follow_failures(did)
    if mended is None:
        return None
    state = "passes" if mended.type is ActionType.TEST else "works"
    return f"Fixed: `{shorten_command(mended.target)}` failed and {state} now."


def _follow_failures(did: Sequence[Action]) -> tuple[dict[str, Action], Action | None]:
    """Return the tests and commands that failed and did not succeed afterwards, and the last that did."""
    failing: dict[str, Action] = {}
    mended: Action | None = None
    for action in did:
        if action.type not in (ActionType.TEST, ActionType.COMMAND):
            continue
        if not action.ok:
            failing[action.target] = action
            continue
        for target in [target for target, before in failing.items() if repeats_action(action, before)]:
            mended = failing.pop(target)
    return failing, mended


def _describe_commits(did: Sequence[Action]) -> str | None:
    done = [action.target for action in did if action.type is ActionType.COMMIT and action.ok]
    if not done:
        return None
    subjects = [subject for target in done if (subject := find_commit_subject(target))]
    if not subjects:
        return f"Committed with `{shorten_command(done[-1])}`."
    return f"Committed: {'; '.join(dict.fromkeys(subjects))}."
