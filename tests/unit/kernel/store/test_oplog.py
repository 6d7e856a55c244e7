import pytest

from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, Kind, Revision, Scope, ScopeKind
from pipeline.kernel.store import impressions, meta, oplog, replicated_records
from pipeline.kernel.store.impressions import Impression
from pipeline.kernel.store.log_start import list_differences, start_log
from pipeline.kernel.store.replicated_records import GONE, MEMORY, Key
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import dump, scratch_database

SCOPES = ("workspace", "user")


@pytest.fixture
def database():
    with scratch_database() as opened:
        start_log(opened)
        yield opened


def logged(database, kind=None):
    with database.read() as db:
        rows = oplog.after(db, 0, 1000, oplog.ALL_SCOPES)
    return [one for _, one in rows if kind in (None, one.key.kind)]


def test_a_memory_is_logged_with_all_that_it_says(database):
    receipt = accept(database, Draft("The build uses make", tags=("build",), metadata={"of": 1}))
    [one] = logged(database)
    assert one.key == Key(MEMORY, receipt.id)
    assert one.fields["content"] == "The build uses make"
    assert (one.fields["tag:build"], one.fields["metadata"]) == (True, {"of": 1})


def test_logged_edit_contains_changed_fields_and_its_predecessor(database):
    receipt = accept(database, Draft("The build uses make", tags=("build", "old")))
    first = logged(database, MEMORY)[0]
    revise.edit(database, receipt.id, Revision(content="The build uses just", tags=("build", "new")))
    edit = logged(database, MEMORY)[1]
    changed = {"content": "The build uses just", "tag:old": None, "tag:new": True}
    assert {name: value for name, value in edit.fields.items() if name != "updated_at"} == changed
    assert edit.after == (first.id,)


WRITES = {
    "archive": lambda database, one, _: revise.archive(database, one),
    "pin": lambda database, one, _: revise.edit(database, one, Revision(pinned=True)),
    "importance": lambda database, one, _: revise.edit(database, one, Revision(importance=0.9)),
    "edge": lambda database, one, other: revise.add_edge(database, one, EdgeDraft(EdgeKind.SUPPORTS, other)),
    "told again": lambda database, *_: accept(database, Draft("one thing", tags=("again",))),
    "purge": lambda database, one, _: revise.purge(database, one),
}


@pytest.mark.parametrize("name", WRITES)
def test_the_log_says_everything_that_was_written(database, name):
    one, other = accept(database, Draft("one thing")).id, accept(database, Draft("another thing")).id
    before = {operation.id for operation in logged(database)}
    WRITES[name](database, one, other)
    assert {operation.id for operation in logged(database)} - before
    with database.read() as db:
        assert list_differences(db) == []
        assert db.execute("SELECT count(*) FROM touched").fetchone() == (0,)


def test_whether_a_lesson_was_followed_is_logged(database):
    receipt = accept(database, Draft("Run the tests first", kind=Kind.LESSON))
    with database.write() as db:
        impressions.add(db, [Impression("I1", 1, "s", "2026-01-01T00:00:00.000Z")])
    assert logged(database, replicated_records.ANSWER) == []
    with database.write() as db:
        impressions.answer(db, "I1", "yes", "2026-01-02T00:00:00.000Z", followed=True)
    [one] = logged(database, replicated_records.ANSWER)
    assert one.key == Key(replicated_records.ANSWER, receipt.id, "", "I1")
    assert (one.fields["followed"], one.fields["note"]) == (1, "yes")


def test_a_purge_leaves_nothing_of_the_text_in_the_log(database):
    receipt = accept(database, Draft("the flumadiddle is secret"))
    revise.edit(database, receipt.id, Revision(content="the flumadiddle is open"))
    revise.purge(database, receipt.id)
    with database.read() as db:
        assert "flumadiddle" not in "\n".join(dump(db))
        assert oplog.list_purged(db, [receipt.id])
    assert [one.key for one in logged(database)] == [Key(replicated_records.PURGE, receipt.id)]


def test_session_memories_are_logged_but_not_sent(database):
    accept(database, Draft("only here", scope=None, session_id="s1"))
    accept(database, Draft("a thought of this session", scope=Scope(ScopeKind.SESSION, "s1"), session_id="s1"))
    with database.read() as db:
        travels = [one.fields["content"] for _, one in oplog.after(db, 0, 10, SCOPES)]
        assert oplog.count_after(db, 0, SCOPES) == 1
    assert travels == ["only here"]
    assert len(logged(database)) == 2


def test_remote_operation_is_sent_only_to_other_remotes(database):
    accept(database, Draft("mine"))
    with database.write() as db:
        db.execute("UPDATE operation SET via = 'disk', signature = 'x'")
    with database.read() as db:
        assert oplog.after(db, 0, 10, SCOPES, "disk") == []
        assert len(oplog.after(db, 0, 10, SCOPES, "bucket")) == 1


def test_damaged_row_does_not_block_writes(database):
    accept(database, Draft("one thing"))
    with database.write() as db:
        db.execute("UPDATE memory SET tags = '[unclosed'")
    accept(database, Draft("another thing"))
    assert [one.fields["content"] for one in logged(database)] == ["one thing", "another thing"]


def test_new_node_name_replaces_the_name_in_unsigned_operations(database):
    receipt = accept(database, Draft("one thing"))
    revise.edit(database, receipt.id, Revision(importance=0.9))
    before = logged(database)
    with database.write() as db:
        oplog.take_node(db, "ab" * 8, [])
        assert meta.get(db, meta.NODE) == "ab" * 8
    after = logged(database)
    assert [one.node for one in after] == ["ab" * 8] * 2
    assert [one.fields for one in after] == [one.fields for one in before]
    assert after[1].after == (after[0].id,)
    accept(database, Draft("later"))
    assert logged(database)[-1].node == "ab" * 8


def test_of_a_relation_all_is_logged_whenever_any_of_it_changes(database):
    one, other = accept(database, Draft("one thing")).id, accept(database, Draft("another thing")).id
    revise.add_edge(database, one, EdgeDraft(EdgeKind.SUPPORTS, other))
    with database.write() as db:
        db.execute("DELETE FROM edge")
    revise.add_edge(database, one, EdgeDraft(EdgeKind.SUPPORTS, other))
    made, gone, again = logged(database, replicated_records.EDGE)
    assert gone.fields["gone"] is True
    assert set(made.fields) <= set(again.fields)
    assert again.fields["gone"] is None
    with database.read() as db:
        assert oplog.fold(db, [made.key])[made.key].says != GONE
