"""Advise before an act: at most two lines about what concerns it, from indexes in memory; silence otherwise."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from sqlite3 import Connection
from typing import Any

from pipeline.features.acts.act_index import ActIndex, list_words, may_concern
from pipeline.features.obedience.acts import Act
from pipeline.features.obedience.judge import judge_act
from pipeline.kernel.kinds import render_text
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import SHORT_ID, Filter, Memory, Trust
from pipeline.kernel.records.hooks import ActWarning, AgentSession
from pipeline.kernel.store import agent_sessions, memories
from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.kernel.store.database import Database
from pipeline.kernel.workspace import Workspace
from pipeline.recall.annotations import drop_superseded
from pipeline.recall.deadline import Deadline
from pipeline.text.excerpts import find_excerpt
from pipeline.text.quoting import find_speaker
from pipeline.text.tokens import search_tokens

log = logging.getLogger(__name__)

# Seconds that a call waits for an index that is being built.
PATIENCE_S = 0.1
# Seconds after which the building of an index that failed is tried again.
RETRY_S = 60.0
# Workspaces whose indexes are kept.
MOST_INDEXES = 8
# The part of a memory that is shown.
EXCERPT_CHARS = 150
# Words of an act that are looked up.
MOST_WORDS = 1500
# Actions of the session in which a requirement is sought.
RECENT_ACTIONS = 40


class ActAdvisor:
    """Find what concerns an act, with an index for each workspace that is built in the background."""

    def __init__(self) -> None:
        self._indexes: LruCache[str, tuple[Database, ActIndex]] = LruCache(MOST_INDEXES)
        # By workspace: the building that runs, and when another may start after one that failed.
        self._buildings: dict[str, tuple[threading.Event, float]] = {}
        self._lock = threading.Lock()

    def prepare(self, workspace: Workspace, *, with_rules: bool) -> threading.Event:
        """Bring the index of a workspace up to date in the background; the event is set when it is."""
        with self._lock:
            built, next_at = self._buildings.get(workspace.id, (threading.Event(), 0.0))
            if time.monotonic() >= next_at:
                built = threading.Event()
                self._buildings[workspace.id] = built, time.monotonic() + RETRY_S
                work = (workspace.id, workspace.database, self._get(workspace), with_rules, built)
                threading.Thread(target=self._build, args=work, name="acts", daemon=True).start()
            return built

    def advise(
        self,
        workspace: Workspace,
        session: AgentSession,
        tool: str,
        arguments: Mapping[str, Any],
        deadline: Deadline,
        *,
        shows_rules: bool,
        shows_past: bool,
    ) -> Iterator[ActWarning]:
        """Yield what happened before a tool call, and the rules that it breaks; nothing if the index is not ready."""
        act = Act.of_call(tool, arguments, session.cwd)
        if not (act.changes_anything and workspace.exists):
            return
        index, database = self._get(workspace), workspace.database
        is_ready = index.refresh(database, with_rules=shows_rules, patience_s=PATIENCE_S)
        # To read the rest takes longer than a call may wait.
        if not (is_ready or self.prepare(workspace, with_rules=shows_rules).wait(PATIENCE_S)):
            return
        with database.read() as db:
            before = _list_before(db, session)
            if shows_past:
                did = _list_since_edit(before)
                yield from (
                    ActWarning(event.key, event.text, event.source)
                    for event in index.history.list_past(db, act, did, workspace.person_id)
                )
            if shows_rules and deadline.remaining_s:
                broken = _list_broken(db, session, act, index.find(_list_words(act)), before, deadline)
                yield from (_warn(act, rule) for rule in broken)

    def _get(self, workspace: Workspace) -> ActIndex:
        database = workspace.database
        return self._indexes.get(workspace.id, lambda known: known[0] is database, lambda: (database, ActIndex()))[1]

    def _build(
        self, workspace_id: str, database: Database, index: ActIndex, with_rules: bool, built: threading.Event
    ) -> None:
        try:
            index.refresh(database, with_rules=with_rules)
            with self._lock:
                self._buildings.pop(workspace_id, None)
            built.set()
        except Exception:
            # No call waits for it. A later call tries again.
            log.exception("the index of acts cannot be built")


def _list_broken(
    db: Connection,
    session: AgentSession,
    act: Act,
    rules: Sequence[tuple[int, str]],
    before: Sequence[agent_sessions.Action],
    deadline: Deadline,
) -> list[Memory]:
    """Return the visible rules that an act breaks, the most important first."""
    earlier = [Act.of_action(action) for action in before if action.ok or action.type is ActionType.TEST]
    judged = takewhile(lambda _: deadline.remaining_s, rules)
    broken = [seq for seq, text in judged if judge_act(text, act, earlier) is False]
    # The index may be behind the store.
    shown = memories.filter_showable(db, broken, Filter(viewer=session.viewer, current=True)) if broken else {}
    current = drop_superseded(db, [memory for memory in shown.values() if may_concern(memory)])
    return sorted(current, key=lambda memory: (-memory.importance, -memory.seq))


def _list_words(act: Act) -> Iterator[str]:
    texts = (act.line, act.path, *(change.added for change in act.changes))
    return islice((word for text in texts for word in list_words(text)), MOST_WORDS)


def _list_before(db: Connection, session: AgentSession) -> list[agent_sessions.Action]:
    """Return the latest actions of the agent in the session, in order."""
    latest = [] if session.id is None else agent_sessions.list_actions(db, session.id, "", RECENT_ACTIONS)
    return [action for action in latest if action.agent_id == session.agent_id]


def _list_since_edit(did: Sequence[agent_sessions.Action]) -> Sequence[agent_sessions.Action]:
    last = max((n for n, action in enumerate(did) if action.type is ActionType.EDIT), default=-1)
    return did[last + 1 :]


def _warn(act: Act, memory: Memory) -> ActWarning:
    return ActWarning(f"{memory.id} {act.key}", _render(act, memory), "rule", memory)


def _render(act: Act, memory: Memory) -> str:
    kind = "rule" if memory.trust is Trust.TRUSTED else memory.kind
    speaker = find_speaker(memory.source, memory.trust, instructs=memory.instructs, said_by=memory.said_by)
    asked = frozenset(search_tokens(f"{act.line} {' '.join(act.changed_files)}"))
    text = find_excerpt(" ".join(render_text(memory).split()), asked, EXCERPT_CHARS)
    return f"[{memory.id[-SHORT_ID:]} · {kind}] {speaker.say(text)}"
