"""A source that is read again: what it brings, keeps, changes and takes away; and what is somebody else's by then."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, strategies as st

from pipeline.features.ingest.fields import Item
from pipeline.features.ingest.sources import ForgottenItems, ItemOutcome, SourceUpdate, forget_items, take_items
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import (
    Anchor,
    Draft,
    EdgeDraft,
    EdgeKind,
    Filter,
    Kind,
    Outcome,
    Revision,
    Scope,
    ScopeKind,
    Source,
    Stage,
    Trust,
)
from pipeline.kernel.store import agent_sessions, changes, history, ingested, memories, work
from pipeline.kernel.store.database import Database
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace
from pipeline.write.accept import accept
from pipeline.write.revise import archive, edit, purge, restore
from tests.fakes.in_process import scratch_database, workspace_over
from tests.fakes.properties import opens_stores

SOURCE = "project:shop-0d1a25a8"


@dataclass
class SourceStore:
    """A source over a real store; an item is known by its key, its memories by their texts."""

    database: Database
    incognito: bool = False
    source: str = SOURCE
    rounds: int = field(default=0)

    @property
    def workspace(self) -> Workspace:
        return workspace_over(self.database, incognito=self.incognito)

    def put(self, key: str, *drafts: Draft | str, digest: str | None = None) -> SourceUpdate:
        self.rounds += 1
        offered = [self.offered(key, *drafts, digest=digest or f"digest-{self.rounds}")]
        return take_items(self.workspace, self.source, offered)

    def offered(self, key: str, *drafts: Draft | str, digest: str) -> Item:
        made = (Draft(one) if isinstance(one, str) else one for one in drafts)
        return Item(key, digest, tuple(import_draft(one) for one in made))

    def forget(self, *keys: str) -> ForgottenItems:
        return forget_items(self.workspace, self.source, keys)

    def active(self) -> list[str]:
        with self.database.read() as db:
            return sorted(one.content for one in memories.page(db, Filter(), 1000, None))

    def archived(self) -> list[str]:
        with self.database.read() as db:
            return sorted(one.content for one in memories.page(db, Filter(archived=True), 1000, None))

    def memory(self, memory_id: str):
        with self.database.read() as db:
            return memories.get(db, memory_id)

    def known(self) -> dict[str, str]:
        with self.database.read() as db:
            return {item.key: item.digest for item in ingested.items(db, self.source, 1000, None)}

    def log(self, after: int = 0) -> list[str]:
        with self.database.read() as db:
            return [row[0] for row in db.execute("SELECT op FROM change WHERE seq > ? ORDER BY seq", (after,))]

    def generation(self) -> int:
        with self.database.read() as db:
            return changes.generation(db)


def import_draft(draft: Draft) -> Draft:
    values = {name: getattr(draft, name) for name in Draft.__dataclass_fields__}
    return Draft(**values | {"source": Source.IMPORT})


@pytest.fixture
def source():
    with scratch_database() as database:
        yield SourceStore(database)


def test_items_come_change_and_stay(source):
    first = source.put("a.py", "Opens the shop", "Closes the shop", digest="1")
    assert first.taken[0].outcome is ItemOutcome.CREATED
    assert [receipt.outcome for receipt in first.taken[0].receipts] == [Outcome.CREATED, Outcome.CREATED]
    same = source.put("a.py", "Opens the shop", "Closes the shop", digest="1")
    assert (same.taken[0].outcome, same.taken[0].receipts) == (ItemOutcome.UNCHANGED, ())
    second = source.put("a.py", "Opens the shop", "Sweeps the floor", digest="2")
    assert second.taken[0].outcome is ItemOutcome.REPLACED
    assert source.active() == ["Opens the shop", "Sweeps the floor"]
    assert source.archived() == ["Closes the shop"]
    assert second.archived == (first.taken[0].receipts[1].id,)
    assert source.known() == {"a.py": "2"}


def test_a_text_that_stays_keeps_its_memory_as_it_is(source):
    kept = source.put("a.py", "Opens the shop", "Closes the shop").taken[0].receipts[0].id
    edit(source.database, kept, Revision(importance=0.9, tags=("mine",)))
    before, generation = source.memory(kept), source.generation()
    again = source.put("a.py", "Opens the shop", "Sweeps the floor").taken[0].receipts[0]
    assert (again.id, again.outcome, again.duplicate_of) == (kept, Outcome.MERGED, kept)
    assert source.memory(kept) == before
    assert source.log(generation) == ["create", "archive"]
    with source.database.read() as db:
        assert [entry.event for entry in history.of(db, before.seq)] == ["labels_changed"]


def test_memory_also_brought_by_another_item_stays(source):
    for key in ("a.py", "b.py"):
        source.put(key, "Licensed under Apache 2.0")
    assert source.put("a.py").archived == ()
    assert source.active() == ["Licensed under Apache 2.0"]
    assert len(source.forget("b.py").archived) == 1
    assert source.active() == []


def test_the_same_text_of_many_items_reinforces_nothing(source):
    memory_id = source.put("a.py", "Licensed under Apache 2.0").taken[0].receipts[0].id
    source.put("b.py", "Licensed under Apache 2.0", "Licensed  under Apache 2.0")
    assert source.memory(memory_id).merge_count == 0


@pytest.mark.parametrize(
    "claim",
    [
        lambda database, memory: edit(database, memory.id, Revision(pinned=True)),
        lambda database, memory: edit(database, memory.id, Revision(content="Opens the shop at nine")),
        lambda database, memory: edit(database, memory.id, Revision(trust=Trust.TRUSTED)),
        lambda database, memory: accept(database, Draft(memory.content)),
        lambda database, memory: accept(database, Draft(memory.content, source=Source.AGENT)),
    ],
    ids=["pinned", "edited", "confirmed", "said by a person", "said by an agent"],
)
def test_memory_claimed_by_a_person_stays(source, claim):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    claim(source.database, source.memory(memory_id))
    assert source.put("a.py", "Sweeps the floor").archived == ()
    assert source.forget("a.py").archived != (memory_id,)
    assert source.memory(memory_id).archived_at is None


def test_memory_a_person_wrote_first_is_merged_once_and_stays(source):
    written = accept(source.database, Draft("Opens the shop")).id
    receipt = source.put("a.py", "Opens the shop").taken[0].receipts[0]
    assert (receipt.id, receipt.outcome) == (written, Outcome.MERGED)
    source.put("a.py", "Opens the shop", "Sweeps the floor")
    assert source.memory(written).merge_count == 1
    source.forget("a.py")
    assert source.active() == ["Opens the shop"]
    assert source.memory(written).trust is Trust.TRUSTED


def test_edited_memory_still_represents_its_item_text(source):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    edit(source.database, memory_id, Revision(content="Opens the shop at nine"))
    source.put("a.py", "Opens the shop", "Sweeps the floor")
    assert source.active() == ["Opens the shop at nine", "Sweeps the floor"]


def test_returning_item_restores_its_memory(source, monkeypatch):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    assert source.forget("a.py").keys == ("a.py",)
    assert (source.active(), source.known()) == ([], {})
    assert source.forget("a.py", "unknown.py") == ForgottenItems((), ())
    generation = source.generation()
    worker = source.put("a.py", "Opens the shop", digest="digest-1")
    assert worker.taken[0].outcome is ItemOutcome.CREATED
    assert worker.restored == (memory_id,)
    assert source.active() == ["Opens the shop"]
    assert source.log(generation) == ["restore"]


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_text_that_moves_keeps_its_memory(source, leaves_first):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    if leaves_first:
        source.forget("a.py")
    receipt = source.put("b.py", "Opens the shop").taken[0].receipts[0]
    source.forget("a.py")
    assert receipt.id == memory_id
    assert source.memory(memory_id).archived_at is None


def test_text_moved_within_a_transaction_leaves_no_log_entry(source):
    source.put("a.py", "Opens the shop")
    generation = source.generation()
    offered = [source.offered("a.py", digest="x"), source.offered("b.py", "Opens the shop", digest="y")]
    take_items(source.workspace, SOURCE, offered)
    assert source.active() == ["Opens the shop"]
    assert source.log(generation) == []


def test_memory_archived_by_a_person_is_not_restored_by_its_source(source):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    archive(source.database, memory_id)
    for key in ("a.py", "b.py"):
        receipt = source.put(key, "Opens the shop").taken[0].receipts[0]
        assert (receipt.id, receipt.outcome) == (memory_id, Outcome.REJECTED)
    assert source.active() == []
    restore(source.database, memory_id)
    assert source.forget("a.py").archived == ()
    assert source.forget("b.py").archived == (memory_id,)
    # It went for want of an item; who archives what was brought back means it.
    restore(source.database, memory_id)
    archive(source.database, memory_id)
    source.put("a.py", "Opens the shop")
    assert source.active() == []


def test_memory_rewritten_by_a_person_is_kept_after_its_item_is_forgotten(source):
    source.put("a.py", "Opens the shop")
    source.forget("a.py")
    written = accept(source.database, Draft("Opens the shop")).id
    assert source.put("a.py", "Opens the shop").taken[0].receipts[0].id == written
    source.forget("a.py")
    assert source.active() == ["Opens the shop"]


def test_purged_memory_is_not_recreated_by_its_source(source):
    memory_id = source.put("a.py", "Opens the shop", digest="1").taken[0].receipts[0].id
    purge(source.database, memory_id)
    assert source.put("a.py", "Opens the shop", digest="1").taken[0].outcome is ItemOutcome.UNCHANGED
    for key in ("a.py", "b.py"):
        receipt = source.put(key, "Opens the shop", f"Sweeps {key}").taken[0].receipts[0]
        assert (receipt.outcome, receipt.reason) == (Outcome.REJECTED, "was purged")
    source.forget("a.py")
    source.put("a.py", "Opens the shop")
    assert source.active() == ["Sweeps b.py"]
    # Whoever writes it down again has it.
    accept(source.database, Draft("Opens the shop"))
    assert "Opens the shop" in source.active()


def test_edited_and_purged_memory_is_not_recreated_by_its_source(source):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    edit(source.database, memory_id, Revision(content="Opens the shop at nine"))
    purge(source.database, memory_id)
    source.put("a.py", "Opens the shop")
    assert source.active() == []


def test_purged_text_leaves_no_recoverable_hash_in_its_item(source):
    memory_id = source.put("a.py", "Opens the shop").taken[0].receipts[0].id
    content_hash = source.memory(memory_id).content_hash
    purge(source.database, memory_id)
    with source.database.read() as db:
        assert db.execute("SELECT count(*) FROM ingest_memory").fetchone() == (0,)
        [(mark,)] = db.execute("SELECT mark FROM ingest_purged").fetchall()
    assert mark not in content_hash


def test_nothing_is_kept_in_an_incognito_workspace(source):
    source.incognito = True
    sweep = source.put("a.py", "Opens the shop")
    assert sweep.taken[0].outcome is ItemOutcome.REJECTED
    assert sweep.taken[0].receipts[0].reason == "incognito"
    assert source.put("empty.py").taken[0].outcome is ItemOutcome.REJECTED
    with source.database.read() as db:
        assert db.execute("SELECT count(*) FROM ingest_item").fetchone() == (0,)
    assert (source.active(), source.log()) == ([], [])


def set_incognito(database, *, on):
    with database.write() as db:
        if on:
            agent_sessions.begin_incognito(db, "s1", utc_now())
        else:
            agent_sessions.end_incognito(db, "s1")


def test_nothing_is_kept_of_an_incognito_session(source):
    source.put("chat", Draft("We open at nine", session_id="s1"))
    set_incognito(source.database, on=True)
    changed = source.put("chat", Draft("We open at ten", session_id="s1"), digest="later")
    assert changed.taken[0].outcome is ItemOutcome.REJECTED
    assert source.active() == ["We open at nine"]
    assert source.put("other", Draft("We close at six", session_id="s1")).taken[0].outcome is ItemOutcome.REJECTED
    assert "other" not in source.known()
    set_incognito(source.database, on=False)
    source.put("chat", Draft("We open at ten", session_id="s1"), digest="later")
    assert source.active() == ["We open at ten"]


def test_of_an_item_partly_incognito_the_rest_is_kept(source):
    source.put("chat", Draft("We open at nine", session_id="s1"), "We close at six")
    set_incognito(source.database, on=True)
    sweep = source.put("chat", Draft("We open at nine", session_id="s1"), Draft("Lunch at one", session_id="s1"), "Tea")
    assert [receipt.reason for receipt in sweep.taken[0].receipts] == ["incognito", "incognito", None]
    assert source.active() == ["Tea", "We open at nine"]


def test_all_or_none(source):
    source.put("a.py", "Opens the shop", digest="1")
    generation = source.generation()
    nowhere = Draft("Sweeps the floor", edges=(EdgeDraft(EdgeKind.SUPPORTS, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),))
    offered = [source.offered("a.py", digest="2"), source.offered("b.py", nowhere, digest="2")]
    with pytest.raises(InvalidField):
        take_items(source.workspace, SOURCE, offered)
    assert (source.active(), source.known(), source.generation()) == (["Opens the shop"], {"a.py": "1"}, generation)


def test_moved_text_updates_its_anchor_without_new_digestion(source):
    def draft(first: int) -> Draft:
        where = Anchor("src/shop.py", first, first + 3, "0" * 64)
        return Draft("def open_shop()", kind=Kind.CODE, anchor=where, metadata={"line": first})

    memory_id = source.put("src/shop.py", draft(1)).taken[0].receipts[0].id
    edit(source.database, memory_id, Revision(metadata={"line": 1, "mine": True}, pinned=True))
    generation = source.generation()
    source.put("src/shop.py", draft(11))
    memory = source.memory(memory_id)
    assert memory.anchor.first_line == 11
    assert memory.metadata == {"line": 11, "mine": True}
    assert source.log(generation) == ["edit"]
    with source.database.read() as db:
        # The text is the same, so nothing is digested again.
        assert work.count_pending(db)[Stage.EMBED] == 1


def test_a_twin_of_another_item_or_person_is_not_moved(source):
    def draft(path: str) -> Draft:
        return Draft("def main()", kind=Kind.CODE, anchor=Anchor(path, content_hash="0" * 64))

    theirs = accept(source.database, draft("theirs.py")).id
    source.put("a.py", draft("a.py"))
    assert source.memory(theirs).anchor.path == "theirs.py"


def test_a_text_of_another_scope_is_another_memory(source):
    source.put("a.md", "Opens at nine")
    source.put("a.md", Draft("Opens at nine", scope=Scope(ScopeKind.USER)))
    with source.database.read() as db:
        [memory] = memories.page(db, Filter(), 10, None)
    assert memory.scope.kind is ScopeKind.USER


def test_repeated_fact_values_get_consecutive_intervals(source):
    def port(value: int, day: str) -> Draft:
        details = {"subject": "staging", "attribute": "port", "value": value}
        return Draft("told", kind=Kind.KEYED_FACT, details=details, occurred_at=f"2026-{day}T00:00:00.000Z")

    told = [port(5433, "01-01"), port(6543, "03-01"), port(5433, "05-01")]
    source.put("facts", *told)
    with source.database.read() as db:
        rows = db.execute("SELECT valid_from, valid_to FROM memory ORDER BY valid_from").fetchall()
    assert [(begins[:10], ends and ends[:10]) for begins, ends in rows] == [
        ("2026-01-01", "2026-03-01"),
        ("2026-03-01", "2026-05-01"),
        ("2026-05-01", None),
    ]
    generation = source.generation()
    source.put("facts", *told)
    assert source.log(generation) == []


def test_echo_of_a_shown_memory_links_no_item(source):
    shown = accept(source.database, Draft("The gateway listens on port 8443 behind the proxy")).id
    line = f"- [{shown[-8:]} · fact · 2026-05-27] The gateway listens on port 8443 behind the proxy"
    receipt = source.put("chat", line).taken[0].receipts[0]
    assert (receipt.outcome, receipt.duplicate_of) == (Outcome.MERGED, shown)
    with source.database.read() as db:
        assert ingested.list_synced(db, [source.memory(shown).seq]) == set()


def test_sources_are_counted_and_known_apart(source):
    source.put("a.py", "Opens the shop", "Licensed under Apache 2.0")
    source.put("b.py", "Licensed under Apache 2.0")
    other = SourceStore(source.database, source="git:shop-0d1a25a8")
    other.put("0123abcd", "Open the shop earlier")
    other.put("4567cdef", "Close it later")
    other.forget("4567cdef")
    with source.database.read() as db:
        found = [(one.source, one.items, one.memories) for one in ingested.sources(db, 10, None)]
    assert found == [("git:shop-0d1a25a8", 1, 1), (SOURCE, 2, 2)]
    assert set(other.known()) == {"0123abcd"}
    for key in ("a.py", "b.py"):
        source.forget(key)
    with source.database.read() as db:
        assert [one.source for one in ingested.sources(db, 10, None)] == ["git:shop-0d1a25a8"]


# Against an oracle

KEYS = ("a", "b", "c")
TEXTS = ("Opens", "Closes", "Sweeps", "Sells")


@dataclass
class Oracle:
    """What must be active, by plain rules on texts: each is none, active, away, archived or purged."""

    state: dict[str, str] = field(default_factory=dict)
    theirs: set[str] = field(default_factory=set)
    given: dict[str, frozenset[str]] = field(default_factory=dict)

    def put(self, key: str, texts: frozenset[str]) -> None:
        for text in texts:
            if self.state.get(text, "none") in ("none", "away"):
                self.state[text] = "active"
        self.given[key], before = texts, self.given.get(key, frozenset())
        for text in before - texts:
            held = any(text in others for others in self.given.values())
            if not held and self.state.get(text) == "active" and text not in self.theirs:
                self.state[text] = "away"


puts = st.tuples(st.just("put"), st.sampled_from(KEYS), st.frozensets(st.sampled_from(TEXTS)))
forgets = st.tuples(st.just("forget"), st.sampled_from(KEYS))
acts = st.tuples(st.sampled_from(["purge", "archive", "restore", "pin", "edit", "say"]), st.sampled_from(TEXTS))


@opens_stores
@given(st.lists(puts | forgets | acts, max_size=25))
def test_random_source_operations_match_the_reference_model(script):
    with scratch_database() as database:
        source, oracle = SourceStore(database), Oracle()
        ids: dict[str, str] = {}
        for step, (act, what, *rest) in enumerate(script):
            if act == "put":
                for receipt, text in zip(
                    source.put(what, *sorted(rest[0])).taken[0].receipts, sorted(rest[0]), strict=True
                ):
                    if receipt.outcome is not Outcome.REJECTED:
                        ids[text] = receipt.id
                oracle.put(what, rest[0])
            elif act == "forget":
                source.forget(what)
                oracle.put(what, frozenset())
            else:
                _act(database, oracle, ids, act, what, step)
            expected = sorted(text for text, state in oracle.state.items() if state == "active")
            assert [text.split()[0] for text in source.active()] == expected


def _act(database: Database, oracle: Oracle, ids: dict[str, str], act: str, text: str, step: int) -> None:
    state = oracle.state.get(text, "none")
    if act == "purge" and state in ("active", "away", "archived"):
        purge(database, ids[text])
        oracle.state[text] = "purged"
    elif act == "archive" and state == "active":
        archive(database, ids[text])
        oracle.state[text] = "archived"
    elif act == "restore" and state in ("away", "archived"):
        restore(database, ids[text])
        oracle.state[text] = "active"
    elif act in ("pin", "edit") and state == "active":
        revision = Revision(pinned=True) if act == "pin" else Revision(content=f"{text} {step}")
        edit(database, ids[text], revision)
        oracle.theirs.add(text)
    elif act == "say" and state == "active" and text not in oracle.theirs:
        accept(database, Draft(text))
        oracle.theirs.add(text)
