"""Find the sessions and decisions behind a file, and the session of a commit."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePosixPath
from sqlite3 import Connection

from pipeline.kernel.records import Filter, Kind, Memory, Viewer
from pipeline.kernel.store import action_history, conclusions, memories
from pipeline.kernel.store.action_history import EditCount
from pipeline.kernel.times import parse, utc_text
from pipeline.write.tool_actions import find_commit_subject

MOST_DECISIONS = 4
MOST_ANCHORED = 10
# Memories of a session that are looked at.
MEMORIES_OF_SESSION = 50
DECIDING = frozenset({Kind.DECISION, Kind.LESSON})
# A commit is recorded when its command ends; a rebase keeps the author's time.
COMMIT_WITHIN = timedelta(minutes=15)
SAME_SUBJECT_WITHIN = timedelta(days=1)
EDITED_WITHIN = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Decision:
    """A conclusion of a session, or a memory of it with its id."""

    kind: str
    text: str
    at: str
    memory_id: str | None = None


@dataclass(frozen=True, slots=True)
class FileSession:
    """A session behind a file: its edits, and its decisions. `wrote_line` marks the session of a line's commit."""

    session_id: str
    edits: int
    first_at: str
    last_at: str
    decisions: tuple[Decision, ...] = ()
    wrote_line: bool = False


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The sessions behind a file, newest first, and the memories that are anchored to it."""

    sessions: tuple[FileSession, ...]
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class CommitTime:
    """The subject of a commit, and the time when it was written."""

    subject: str
    at: str


def find_file_history(
    db: Connection, path: str, viewer: Viewer, limit: int, commit: CommitTime | None = None
) -> FileHistory:
    """Return the sessions that edited a file or decided about it, and the memories anchored to it.

    With the commit of a line, the session that made it comes first.
    """
    person = viewer.person
    files = [file for file in action_history.list_edited_files(db, person) if _is_same_file(file, path)]
    edits = {edit.session_id: edit for edit in action_history.list_editing_sessions(db, files, person, limit)}
    for conclusion in conclusions.list_current_about(db, PurePosixPath(path).name, person, limit):
        edits.setdefault(conclusion.session_id, EditCount(conclusion.session_id, 0, conclusion.at, conclusion.at))
    author = None if commit is None else _find_author(db, commit, edits.values(), person)
    if author is not None and author not in edits and commit is not None:
        edits[author] = EditCount(author, 0, commit.at, commit.at)
    decisions = _list_decisions(db, list(edits), path, viewer)
    found = [
        FileSession(name, edit.edits, edit.first_at, edit.last_at, decisions[name], wrote_line=name == author)
        for name, edit in edits.items()
    ]
    found.sort(key=lambda session: (session.wrote_line, session.last_at), reverse=True)
    anchored = memories.list_anchored(db, Filter(viewer=viewer), path, MOST_ANCHORED)
    return FileHistory(tuple(found[:limit]), tuple(anchored))


def _is_same_file(file: str, path: str) -> bool:
    """Return whether two paths, relative to different folders, may name the same file."""
    one, other = f"/{file.lstrip('/')}", f"/{path.lstrip('/')}"
    return one.endswith(other) or other.endswith(one)


def _find_author(db: Connection, commit: CommitTime, edits: Iterable[EditCount], person: str | None) -> str | None:
    """Return the session that made a commit: by its subject, else the last one that edited the file before it."""
    since, until = _around(commit.at, SAME_SUBJECT_WITHIN)
    made = action_history.list_commits(db, person, since, until)
    named = [action for action in made if commit.subject and _has_subject(action.target, commit.subject)]
    if named:
        return min(named, key=lambda action: abs(parse(action.at) - parse(commit.at))).session_id
    earliest, latest = utc_text(parse(commit.at) - EDITED_WITHIN), utc_text(parse(commit.at) + COMMIT_WITHIN)
    before = [edit for edit in edits if edit.edits and edit.first_at <= latest and edit.last_at >= earliest]
    return max(before, key=lambda edit: edit.last_at).session_id if before else None


def _around(at: str, within: timedelta) -> tuple[str, str]:
    return utc_text(parse(at) - within), utc_text(parse(at) + within)


def _has_subject(command: str, subject: str) -> bool:
    said = find_commit_subject(command)
    return bool(said) and subject.rstrip(". ").startswith(said)


def _list_decisions(
    db: Connection, session_ids: Sequence[str], path: str, viewer: Viewer
) -> dict[str, tuple[Decision, ...]]:
    """Return the decisions of sessions: about the file first, then others."""
    decisions: dict[str, list[tuple[bool, Decision]]] = defaultdict(list)
    for conclusion in conclusions.list_current_of_sessions(db, session_ids):
        is_about = _mentions(path, conclusion.content, *conclusion.topic)
        decisions[conclusion.session_id].append(
            (is_about, Decision(conclusion.kind, conclusion.content, conclusion.at))
        )
    for session_id in session_ids:
        criteria = Filter(session_id=session_id, viewer=replace(viewer, only_normal=True))
        for memory in memories.page(db, criteria, MEMORIES_OF_SESSION, None):
            is_about = _mentions(path, memory.content, memory.anchor.path if memory.anchor else "")
            if is_about or memory.kind in DECIDING:
                decision = Decision(memory.kind, memory.content, memory.occurred_at, memory.id)
                decisions[session_id].append((is_about, decision))
    return {session_id: _choose(decisions[session_id]) for session_id in session_ids}


def _choose(found: Sequence[tuple[bool, Decision]]) -> tuple[Decision, ...]:
    unique = {decision.text: (is_about, decision) for is_about, decision in reversed(found)}
    ranked = sorted(unique.values(), key=lambda item: (item[0], item[1].at), reverse=True)
    return tuple(decision for _, decision in ranked[:MOST_DECISIONS])


def _mentions(path: str, *texts: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return any(name in text.lower() for text in texts)
