"""Keep a memory for the git branch on which it is written.

Such a memory has the scope `branch`. Decisions and corrections of a user, keyed facts, imports, and memories with
another scope concern the repository at once.
"""

from dataclasses import replace
from sqlite3 import Connection

from pipeline.records import CAPTURED_TAG, Kind, Memory, Scope, Source
from pipeline.records.write_policy import WritePolicy
from pipeline.store import branches, memories, runs
from pipeline.write.prepare import Prepared

# What a user decides or corrects.
_DECIDED = frozenset({Kind.DECISION, Kind.LESSON})


def keep_for_branch(db: Connection, item: Prepared, policy: WritePolicy) -> Prepared:
    """Return a memory with the scope of the branch on which it is written, if it may concern only that branch."""
    memory = item.memory
    if not (policy.branch or policy.follows_sessions) or concerns_repository(memory):
        return item
    branch = policy.branch or branches.find_session_branch(db, memory.session_id)
    if branch is None or memory.branch not in (None, branch.name):
        return item
    # A repetition of what the repository has is no memory of the branch.
    if memories.find_active_text(db, Scope(), memory.content_hash) is not None:
        return item
    if branches.note_branch(db, branch):
        runs.request(db, branches.JOB, memory.created_at)
    scope = branches.scope_of_branch(branch.name)
    return replace(item, memory=replace(memory, scope=scope, branch=branch.name))


def concerns_repository(memory: Memory) -> bool:
    """Return whether a memory concerns the repository, or a narrower reach than a branch, wherever it is written."""
    is_by_user = memory.source is Source.USER or CAPTURED_TAG in memory.tags
    return (
        memory.scope != Scope()
        or memory.kind is Kind.KEYED_FACT
        or memory.source in (Source.IMPORT, Source.SYNC)
        or (is_by_user and memory.kind in _DECIDED)
    )
