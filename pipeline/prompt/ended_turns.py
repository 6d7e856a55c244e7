"""Begin and close a session's turn: which lessons it followed, and its result if no agent stored it."""

from datetime import timedelta
from pathlib import Path
from sqlite3 import Connection

from pipeline.kernel.anchors import find_checkout
from pipeline.kernel.git.repository import head_of_folder
from pipeline.kernel.records import Draft, Kind, Source
from pipeline.kernel.store import agent_sessions, impressions, memories, meta, runs
from pipeline.kernel.store.database import Database
from pipeline.kernel.times import parse, utc_text
from pipeline.kernel.workspace import Workspace
from pipeline.prompt.render import BY_JOURNAL
from pipeline.prompt.tool_calls.turn import ShownLesson, find_followed, summarize_turn
from pipeline.write.accept import accept
from pipeline.write.tool_actions import mentions_action

TURN_ACTIONS = 200
TURN_MEMORIES = 50
AMBIENT_TAG = "ambient"
AMBIENT_IMPORTANCE = 0.5
# A session that was idle for longer may be shown everything again.
SESSION_REST = timedelta(days=90)


def begin_turn(db: Connection, session_id: str, cwd: str, at: str) -> None:
    """Begin a turn in a folder; forget sessions that were idle for long."""
    if agent_sessions.find_turn_start(db, session_id) is None:
        agent_sessions.forget_rested_sessions(db, utc_text(parse(at) - SESSION_REST))
    agent_sessions.begin_turn(db, session_id, cwd, at)
    note_checkout(db, cwd, at)


def close_turn(workspace: Workspace, session_id: str, at: str) -> None:
    """Record which of its lessons a turn followed, and its result unless an agent stored that."""
    database = workspace.database
    with database.read() as db:
        began = agent_sessions.find_turn_start(db, session_id) or ""
        did = agent_sessions.list_actions(db, session_id, began, TURN_ACTIONS)
        shown = _list_unanswered(db, session_id)
        stored = memories.list_written_by_agents(db, began, TURN_MEMORIES)
    answers = find_followed(shown, did)
    with database.write() as db:
        for answer in answers:
            impressions.answer(db, answer.impression_id, BY_JOURNAL, at, followed=answer.followed)
        # A turn may stop more than once; summarize its actions only once.
        agent_sessions.end_turn(db, session_id, utc_text(parse(at) + timedelta(milliseconds=1)))
    # An agent stored something of the turn itself: in its session, in none, or naming an action.
    is_stored = any(
        session in (None, session_id) or any(mentions_action(action, text) for action in did if action.ok)
        for session, text in stored
    )
    result = None if is_stored else summarize_turn(did)
    if result is not None:
        _keep(workspace, database, session_id, result)


def _list_unanswered(db: Connection, session_id: str) -> list[ShownLesson]:
    """List the lessons that a session's agents were shown and that have no answer yet."""
    unanswered = impressions.list_unanswered(db, session_id)
    memories_by_seq = memories.by_seqs(db, {impression.memory_seq for impression in unanswered})
    lessons = ((impression, memories_by_seq.get(impression.memory_seq)) for impression in unanswered)
    return [
        ShownLesson(impression.id, impression.at, lesson, impression.agent_id)
        for impression, lesson in lessons
        if lesson and lesson.kind is Kind.LESSON
    ]


def _keep(workspace: Workspace, database: Database, session_id: str, result: str) -> None:
    draft = Draft(
        content=result,
        kind=Kind.ACTIVITY,
        source=Source.AMBIENT,
        importance=AMBIENT_IMPORTANCE,
        session_id=session_id,
        tags=(AMBIENT_TAG,),
    )
    accept(database, draft, workspace.write_policy())


CHECK_JOB = "check"


def note_checkout(db: Connection, folder: str, at: str) -> None:
    """Record the checkout that contains a folder; at a new commit, request the jobs that read the repository."""
    checkout = find_checkout(folder)
    if checkout is None:
        return
    meta.note(db, meta.CHECKOUT, checkout)
    head = head_of_folder(Path(checkout))
    if head is not None and head != meta.get(db, meta.SEEN_HEAD):
        meta.put(db, meta.SEEN_HEAD, head)
        runs.request(db, CHECK_JOB, at)
