"""Advise before an act: at most two lines about what concerns it, from indexes in memory; silence otherwise."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from pipeline.features.acts.act import ProposedAct, read_act
from pipeline.features.acts.act_index import ActIndex, may_concern
from pipeline.features.acts.judgement import BREAKS, Circumstances, Evidence, find_evidence
from pipeline.features.acts.keys import list_act_keys
from pipeline.kernel.errors import ReverieError
from pipeline.kernel.git.repository import branch_of_folder
from pipeline.kernel.kinds import render_text
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import SHORT_ID, Filter, Kind, Memory, Trust
from pipeline.kernel.records.hooks import ActWarning, AgentSession
from pipeline.kernel.store import agent_sessions, memories
from pipeline.kernel.store.database import Database
from pipeline.kernel.workspace import Workspace
from pipeline.recall.annotations import drop_superseded
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
# Actions of the session in which a requirement is sought.
RECENT_ACTIONS = 40


class ActAdvisor:
    """Find what concerns an act, with an index for each workspace that is built in the background."""

    def __init__(self) -> None:
        self._indexes: LruCache[str, tuple[Database, ActIndex]] = LruCache(MOST_INDEXES)
        self._next_build: dict[str, float] = {}
        self._lock = threading.Lock()

    def prepare(self, workspace: Workspace) -> None:
        """Build the index of a workspace in the background, unless it is ready."""
        index = self._get(workspace)
        with self._lock:
            if index.ready.is_set() or time.monotonic() < self._next_build.get(workspace.id, 0.0):
                return
            self._next_build[workspace.id] = time.monotonic() + RETRY_S
        threading.Thread(target=self._build, args=(workspace, index), name="acts", daemon=True).start()

    def advise(
        self, workspace: Workspace, session: AgentSession, tool: str, arguments: Mapping[str, Any], *, rules_only: bool
    ) -> Iterator[ActWarning]:
        """Yield what concerns a tool call, the most important first; nothing while the index is not ready."""
        act = read_act(tool, arguments, session.cwd)
        if act is None or not workspace.exists:
            return
        index = self._get(workspace)
        if not index.ready.is_set():
            self.prepare(workspace)
            if not index.ready.wait(PATIENCE_S):
                return
        with workspace.database.read() as db:
            if index.is_far_behind(db):
                # Reading it takes longer than a call may wait.
                self.prepare(workspace)
                return
            index.refresh(db)
            did = _list_recent(db, session)
            around = Circumstances(partial(_find_branch, session), did)
            found = _judge(db, session, act, index, around)
            breaking = [item for item in found if item[0] in BREAKS]
            yield from (_warn(act, *item) for item in breaking)
            if rules_only:
                return
            yield from (
                ActWarning(event.key, event.text, event.source)
                for event in index.history.list_past(db, act, did, workspace.person_id)
            )
            yield from (_warn(act, *item) for item in found if item[0] not in BREAKS)

    def _get(self, workspace: Workspace) -> ActIndex:
        database = workspace.database
        return self._indexes.get(workspace.id, lambda known: known[0] is database, lambda: (database, ActIndex()))[1]

    def _build(self, workspace: Workspace, index: ActIndex) -> None:
        try:
            with workspace.database.read() as db:
                index.refresh(db)
            self._next_build.pop(workspace.id, None)
        except Exception:
            # No call waits for it. A later call tries again.
            log.exception("the index of acts cannot be built")


def _judge(
    db: Connection, session: AgentSession, act: ProposedAct, index: ActIndex, around: Circumstances
) -> list[tuple[Evidence, Memory]]:
    """Return the visible memories that concern an act, the strongest evidence first."""
    evidence = {
        seq: found
        for seq in index.find(list_act_keys(act))
        if seq in index.statements
        if (found := find_evidence(index.statements[seq], act, around)) is not None
    }
    # The index may be behind the store.
    shown = (
        memories.filter_showable(db, list(evidence), Filter(viewer=session.viewer, current=True)) if evidence else {}
    )
    current = drop_superseded(db, [memory for memory in shown.values() if may_concern(memory)])
    concerning = [(evidence[memory.seq], memory) for memory in current]
    return sorted(
        concerning, key=lambda item: (-item[0], item[1].kind is not Kind.LESSON, -item[1].importance, -item[1].seq)
    )


def _list_recent(db: Connection, session: AgentSession) -> list[agent_sessions.Action]:
    """Return what the session did, in order."""
    return [] if session.id is None else agent_sessions.list_actions(db, session.id, "", RECENT_ACTIONS)


def _find_branch(session: AgentSession) -> str | None:
    try:
        return branch_of_folder(Path(session.cwd)) if session.cwd else None
    except ReverieError:
        return None


def _warn(act: ProposedAct, evidence: Evidence, memory: Memory) -> ActWarning:
    return ActWarning(
        f"{memory.id} {act.key}", _render(act, memory), evidence.name.lower(), memory, breaks=evidence in BREAKS
    )


def _render(act: ProposedAct, memory: Memory) -> str:
    kind = "rule" if memory.kind is Kind.LESSON and memory.trust is Trust.TRUSTED else memory.kind
    speaker = find_speaker(memory.source, memory.trust, instructs=memory.instructs, said_by=memory.said_by)
    asked = frozenset(search_tokens(f"{act.line} {' '.join(act.files)}"))
    text = find_excerpt(" ".join(render_text(memory).split()), asked, EXCERPT_CHARS)
    return f"[{memory.id[-SHORT_ID:]} · {kind}] {speaker.say(text)}"
