"""Conflicts by precedence: which memory leads, and what settling one does."""

import hashlib
from itertools import pairwise

import pytest

from pipeline.features.review.conflicts import ConflictAction, Standing, list_conflicts, settle_conflict
from pipeline.features.review.usecases import undo_act
from pipeline.kernel.errors import Conflict, NotFound
from pipeline.kernel.records import RULE_FILE_TAG, Anchor, Draft, EdgeKind, Kind, Source
from pipeline.kernel.store import edges, memories
from pipeline.kernel.times import utc_now
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database, workspace_over

JUNE, MARCH = "2025-06-15T00:00:00.000Z", "2026-03-01T00:00:00.000Z"


@pytest.fixture
def workspace():
    with scratch_database() as database:
        yield workspace_over(database)


@pytest.fixture
def contradict(workspace):
    """Store memories, of which each contradicts the one before; return their ids."""

    def store(*drafts):
        ids = [accept(workspace.database, draft).id for draft in drafts]
        with workspace.database.write() as db:
            stored = [memories.get(db, memory_id) for memory_id in ids]
            for earlier, later in pairwise(stored):
                edges.add(db, later.seq, EdgeKind.CONTRADICTS, earlier.seq, "dedup", utc_now())
        return ids

    return store


def imported(text, at=JUNE, **fields):
    return Draft(text, source=Source.IMPORT, occurred_at=at, **fields)


def lead(workspace):
    (conflict,) = list_conflicts(workspace, 10, None).items
    return (conflict.leading.memory.content, conflict.leading.standing), conflict.other.standing


def test_among_equals_the_newer_leads(workspace, contradict):
    contradict(imported("Use npm"), imported("Use pnpm", MARCH))
    assert lead(workspace) == (("Use pnpm", Standing.UNVERIFIED), Standing.UNVERIFIED)


def test_a_rule_file_leads_over_a_statement_of_the_user(workspace, contradict):
    rule = imported("Use npm", kind=Kind.DOCUMENT, tags=(RULE_FILE_TAG,))
    contradict(rule, Draft("Use pnpm", occurred_at=MARCH))
    assert lead(workspace) == (("Use npm", Standing.RULE_FILE), Standing.USER)


def test_user_statement_leads_over_code_and_code_over_unverified(workspace, contradict, tmp_path):
    file = tmp_path / "package.json"
    file.write_text("{}")
    anchor = Anchor(str(file), content_hash=hashlib.sha256(b"{}").hexdigest())
    ids = contradict(Draft("Use npm", occurred_at=JUNE), imported("Use pnpm", MARCH, anchor=anchor))
    assert lead(workspace) == (("Use npm", Standing.USER), Standing.VERIFIED)
    settle_conflict(workspace, ids[1], ids[0], ConflictAction.KEEP)
    contradict(imported("Use yarn", anchor=anchor), imported("Use bun", MARCH))
    assert lead(workspace) == (("Use yarn", Standing.VERIFIED), Standing.UNVERIFIED)
    file.write_text("{} ")
    assert lead(workspace) == (("Use bun", Standing.UNVERIFIED), Standing.UNVERIFIED)


@pytest.mark.parametrize("kept", [0, 1])
def test_one_is_kept_the_other_archived_in_the_audit_trail_and_undone(workspace, contradict, kept):
    ids = contradict(imported("Use npm"), imported("Use pnpm", MARCH))
    settlement = settle_conflict(workspace, ids[kept], ids[1 - kept], ConflictAction.KEEP)
    assert settlement.archived == ids[1 - kept]
    assert list_conflicts(workspace, 10, None).items == []
    with pytest.raises(Conflict):
        settle_conflict(workspace, ids[kept], ids[1 - kept], ConflictAction.KEEP)
    undo_act(workspace, settlement.audit_id)
    assert len(list_conflicts(workspace, 10, None).items) == 1


def test_both_are_kept(workspace, contradict):
    ids = contradict(imported("Use npm"), imported("Use pnpm", MARCH))
    assert settle_conflict(workspace, *ids, ConflictAction.BOTH).archived is None
    assert list_conflicts(workspace, 10, None).items == []
    with pytest.raises(NotFound):
        settle_conflict(workspace, *ids, ConflictAction.BOTH)
