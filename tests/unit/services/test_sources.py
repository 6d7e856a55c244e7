"""A source that is read again: what it brings, keeps, changes and takes away; and what is somebody else's by then."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InvalidField
from pipeline.records import (
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
from pipeline.services.sources import ForgottenItems, ItemOutcome, OfferedItem, SourceUpdate, forget_items, take_items
from pipeline.services.workspace import Workspace
from pipeline.store import agent_sessions, changes, history, ingested, memories, work
from pipeline.store.database import Database
from pipeline.times import utc_now
from pipeline.write.accept import accept
from pipeline.write.revise import archive, edit, purge, restore
from tests.fakes.house import scratch_database, workspace_over

SOURCE = "project:shop-0d1a25a8"


@dataclass
class Shelf:
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

    def offered(self, key: str, *drafts: Draft | str, digest: str) -> OfferedItem:
        made = (Draft(one) if isinstance(one, str) else one for one in drafts)
        return OfferedItem(key, digest, tuple(import_draft(one) for one in made))

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
def shelf():
    with scratch_database() as database:
        yield Shelf(database)


def test_items_come_change_and_stay(shelf):
    first = shelf.put("a.py", "Opens the shop", "Closes the shop", digest="1")
    assert first.taken[0].outcome is ItemOutcome.CREATED
    assert [receipt.outcome for receipt in first.taken[0].receipts] == [Outcome.CREATED, Outcome.CREATED]
    same = shelf.put("a.py", "Opens the shop", "Closes the shop", digest="1")
    assert (same.taken[0].outcome, same.taken[0].receipts) == (ItemOutcome.UNCHANGED, ())
    second = shelf.put("a.py", "Opens the shop", "Sweeps the floor", digest="2")
    assert second.taken[0].outcome is ItemOutcome.REPLACED
    assert shelf.active() == ["Opens the shop", "Sweeps the floor"]
    assert shelf.archived() == ["Closes the shop"]
    assert second.archived == (first.taken[0].receipts[1].id,)
    assert shelf.known() == {"a.py": "2"}


def test_a_text_that_stays_keeps_its_memory_as_it_is(shelf):
    kept = shelf.put("a.py", "Opens the shop", "Closes the shop").taken[0].receipts[0].id
    edit(shelf.database, kept, Revision(importance=0.9, tags=("mine",)))
    before, generation = shelf.memory(kept), shelf.generation()
    again = shelf.put("a.py", "Opens the shop", "Sweeps the floor").taken[0].receipts[0]
    assert (again.id, again.outcome, again.duplicate_of) == (kept, Outcome.MERGED, kept)
    assert shelf.memory(kept) == before
    assert shelf.log(generation) == ["create", "archive"]
    with shelf.database.read() as db:
        assert history.of(db, before.seq) == []


def test_what_another_item_also_brought_stays(shelf):
    for key in ("a.py", "b.py"):
        shelf.put(key, "Licensed under Apache 2.0")
    assert shelf.put("a.py").archived == ()
    assert shelf.active() == ["Licensed under Apache 2.0"]
    assert len(shelf.forget("b.py").archived) == 1
    assert shelf.active() == []


def test_the_same_text_of_many_items_reinforces_nothing(shelf):
    memory_id = shelf.put("a.py", "Licensed under Apache 2.0").taken[0].receipts[0].id
    shelf.put("b.py", "Licensed under Apache 2.0", "Licensed  under Apache 2.0")
    assert shelf.memory(memory_id).merge_count == 0


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
def test_what_somebody_made_theirs_stays(shelf, claim):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    claim(shelf.database, shelf.memory(memory_id))
    assert shelf.put("a.py", "Sweeps the floor").archived == ()
    assert shelf.forget("a.py").archived != (memory_id,)
    assert shelf.memory(memory_id).archived_at is None


def test_what_a_person_wrote_first_is_repeated_once_and_stays(shelf):
    written = accept(shelf.database, Draft("Opens the shop")).id
    receipt = shelf.put("a.py", "Opens the shop").taken[0].receipts[0]
    assert (receipt.id, receipt.outcome) == (written, Outcome.MERGED)
    shelf.put("a.py", "Opens the shop", "Sweeps the floor")
    assert shelf.memory(written).merge_count == 1
    shelf.forget("a.py")
    assert shelf.active() == ["Opens the shop"]
    assert shelf.memory(written).trust is Trust.TRUSTED


def test_an_edited_memory_still_stands_for_its_text(shelf):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    edit(shelf.database, memory_id, Revision(content="Opens the shop at nine"))
    shelf.put("a.py", "Opens the shop", "Sweeps the floor")
    assert shelf.active() == ["Opens the shop at nine", "Sweeps the floor"]


def test_what_comes_back_is_the_memory_that_went(shelf, monkeypatch):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    assert shelf.forget("a.py").keys == ("a.py",)
    assert (shelf.active(), shelf.known()) == ([], {})
    assert shelf.forget("a.py", "unknown.py") == ForgottenItems((), ())
    generation = shelf.generation()
    worker = shelf.put("a.py", "Opens the shop", digest="digest-1")
    assert worker.taken[0].outcome is ItemOutcome.CREATED
    assert worker.restored == (memory_id,)
    assert shelf.active() == ["Opens the shop"]
    assert shelf.log(generation) == ["restore"]


@pytest.mark.parametrize("leaves_first", [True, False])
def test_a_text_that_moves_keeps_its_memory(shelf, leaves_first):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    if leaves_first:
        shelf.forget("a.py")
    receipt = shelf.put("b.py", "Opens the shop").taken[0].receipts[0]
    shelf.forget("a.py")
    assert receipt.id == memory_id
    assert shelf.memory(memory_id).archived_at is None


def test_a_text_that_moves_within_one_transaction_leaves_no_trace_in_the_log(shelf):
    shelf.put("a.py", "Opens the shop")
    generation = shelf.generation()
    offered = [shelf.offered("a.py", digest="x"), shelf.offered("b.py", "Opens the shop", digest="y")]
    take_items(shelf.workspace, SOURCE, offered)
    assert shelf.active() == ["Opens the shop"]
    assert shelf.log(generation) == []


def test_what_a_person_archived_stays_so(shelf):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    archive(shelf.database, memory_id)
    for key in ("a.py", "b.py"):
        receipt = shelf.put(key, "Opens the shop").taken[0].receipts[0]
        assert (receipt.id, receipt.outcome) == (memory_id, Outcome.REJECTED)
    assert shelf.active() == []
    restore(shelf.database, memory_id)
    assert shelf.forget("a.py").archived == ()
    assert shelf.forget("b.py").archived == (memory_id,)
    # It went for want of an item; who archives what was brought back means it.
    restore(shelf.database, memory_id)
    archive(shelf.database, memory_id)
    shelf.put("a.py", "Opens the shop")
    assert shelf.active() == []


def test_what_somebody_said_while_it_was_away_is_theirs(shelf):
    shelf.put("a.py", "Opens the shop")
    shelf.forget("a.py")
    written = accept(shelf.database, Draft("Opens the shop")).id
    assert shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id == written
    shelf.forget("a.py")
    assert shelf.active() == ["Opens the shop"]


def test_what_was_purged_stays_purged(shelf):
    memory_id = shelf.put("a.py", "Opens the shop", digest="1").taken[0].receipts[0].id
    purge(shelf.database, memory_id)
    assert shelf.put("a.py", "Opens the shop", digest="1").taken[0].outcome is ItemOutcome.UNCHANGED
    for key in ("a.py", "b.py"):
        receipt = shelf.put(key, "Opens the shop", f"Sweeps {key}").taken[0].receipts[0]
        assert (receipt.outcome, receipt.reason) == (Outcome.REJECTED, "was purged")
    shelf.forget("a.py")
    shelf.put("a.py", "Opens the shop")
    assert shelf.active() == ["Sweeps b.py"]
    # Whoever writes it down again has it.
    accept(shelf.database, Draft("Opens the shop"))
    assert "Opens the shop" in shelf.active()


def test_what_was_edited_and_purged_stays_purged(shelf):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    edit(shelf.database, memory_id, Revision(content="Opens the shop at nine"))
    purge(shelf.database, memory_id)
    shelf.put("a.py", "Opens the shop")
    assert shelf.active() == []


def test_nothing_of_a_purged_text_is_left_in_what_is_known_of_an_item(shelf):
    memory_id = shelf.put("a.py", "Opens the shop").taken[0].receipts[0].id
    content_hash = shelf.memory(memory_id).content_hash
    purge(shelf.database, memory_id)
    with shelf.database.read() as db:
        assert db.execute("SELECT count(*) FROM ingest_memory").fetchone() == (0,)
        [(mark,)] = db.execute("SELECT mark FROM ingest_purged").fetchall()
    assert mark not in content_hash


def test_nothing_is_kept_in_an_incognito_workspace(shelf):
    shelf.incognito = True
    sweep = shelf.put("a.py", "Opens the shop")
    assert sweep.taken[0].outcome is ItemOutcome.REJECTED
    assert sweep.taken[0].receipts[0].reason == "incognito"
    assert shelf.put("empty.py").taken[0].outcome is ItemOutcome.REJECTED
    with shelf.database.read() as db:
        assert db.execute("SELECT count(*) FROM ingest_item").fetchone() == (0,)
    assert (shelf.active(), shelf.log()) == ([], [])


def set_incognito(database, *, on):
    with database.write() as db:
        if on:
            agent_sessions.begin_incognito(db, "s1", utc_now())
        else:
            agent_sessions.end_incognito(db, "s1")


def test_nothing_is_kept_of_an_incognito_session(shelf):
    shelf.put("chat", Draft("We open at nine", session_id="s1"))
    set_incognito(shelf.database, on=True)
    changed = shelf.put("chat", Draft("We open at ten", session_id="s1"), digest="later")
    assert changed.taken[0].outcome is ItemOutcome.REJECTED
    assert shelf.active() == ["We open at nine"]
    assert shelf.put("other", Draft("We close at six", session_id="s1")).taken[0].outcome is ItemOutcome.REJECTED
    assert "other" not in shelf.known()
    set_incognito(shelf.database, on=False)
    shelf.put("chat", Draft("We open at ten", session_id="s1"), digest="later")
    assert shelf.active() == ["We open at ten"]


def test_of_an_item_partly_incognito_the_rest_is_kept(shelf):
    shelf.put("chat", Draft("We open at nine", session_id="s1"), "We close at six")
    set_incognito(shelf.database, on=True)
    sweep = shelf.put("chat", Draft("We open at nine", session_id="s1"), Draft("Lunch at one", session_id="s1"), "Tea")
    assert [receipt.reason for receipt in sweep.taken[0].receipts] == ["incognito", "incognito", None]
    assert shelf.active() == ["Tea", "We open at nine"]


def test_all_or_none(shelf):
    shelf.put("a.py", "Opens the shop", digest="1")
    generation = shelf.generation()
    nowhere = Draft("Sweeps the floor", edges=(EdgeDraft(EdgeKind.SUPPORTS, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),))
    offered = [shelf.offered("a.py", digest="2"), shelf.offered("b.py", nowhere, digest="2")]
    with pytest.raises(InvalidField):
        take_items(shelf.workspace, SOURCE, offered)
    assert (shelf.active(), shelf.known(), shelf.generation()) == (["Opens the shop"], {"a.py": "1"}, generation)


def test_a_text_that_moved_in_its_file_says_where_it_stands_now(shelf):
    def draft(first: int) -> Draft:
        where = Anchor("src/shop.py", first, first + 3, "0" * 64)
        return Draft("def open_shop()", kind=Kind.CODE, anchor=where, metadata={"line": first})

    memory_id = shelf.put("src/shop.py", draft(1)).taken[0].receipts[0].id
    edit(shelf.database, memory_id, Revision(metadata={"line": 1, "mine": True}, pinned=True))
    generation = shelf.generation()
    shelf.put("src/shop.py", draft(11))
    memory = shelf.memory(memory_id)
    assert memory.anchor.first_line == 11
    assert memory.metadata == {"line": 11, "mine": True}
    assert shelf.log(generation) == ["edit"]
    with shelf.database.read() as db:
        # The text is the same, so nothing is digested again.
        assert work.count_pending(db)[Stage.EMBED] == 1


def test_a_twin_of_another_item_or_person_is_not_moved(shelf):
    def draft(path: str) -> Draft:
        return Draft("def main()", kind=Kind.CODE, anchor=Anchor(path, content_hash="0" * 64))

    theirs = accept(shelf.database, draft("theirs.py")).id
    shelf.put("a.py", draft("a.py"))
    assert shelf.memory(theirs).anchor.path == "theirs.py"


def test_a_text_of_another_scope_is_another_memory(shelf):
    shelf.put("a.md", "Opens at nine")
    shelf.put("a.md", Draft("Opens at nine", scope=Scope(ScopeKind.USER)))
    with shelf.database.read() as db:
        [memory] = memories.page(db, Filter(), 10, None)
    assert memory.scope.kind is ScopeKind.USER


def test_facts_that_hold_again_are_told_again(shelf):
    def port(value: int, day: str) -> Draft:
        details = {"subject": "staging", "attribute": "port", "value": value}
        return Draft("told", kind=Kind.KEYED_FACT, details=details, occurred_at=f"2026-{day}T00:00:00.000Z")

    told = [port(5433, "01-01"), port(6543, "03-01"), port(5433, "05-01")]
    shelf.put("facts", *told)
    with shelf.database.read() as db:
        rows = db.execute("SELECT valid_from, valid_to FROM memory ORDER BY valid_from").fetchall()
    assert [(begins[:10], ends and ends[:10]) for begins, ends in rows] == [
        ("2026-01-01", "2026-03-01"),
        ("2026-03-01", "2026-05-01"),
        ("2026-05-01", None),
    ]
    generation = shelf.generation()
    shelf.put("facts", *told)
    assert shelf.log(generation) == []


def test_what_only_repeats_what_was_shown_stands_for_nothing(shelf):
    shown = accept(shelf.database, Draft("The gateway listens on port 8443 behind the proxy")).id
    line = f"- [{shown[-8:]} · fact · 2026-05-27] The gateway listens on port 8443 behind the proxy"
    receipt = shelf.put("chat", line).taken[0].receipts[0]
    assert (receipt.outcome, receipt.duplicate_of) == (Outcome.MERGED, shown)
    with shelf.database.read() as db:
        assert ingested.in_step(db, [shelf.memory(shown).seq]) == set()


def test_sources_are_counted_and_known_apart(shelf):
    shelf.put("a.py", "Opens the shop", "Licensed under Apache 2.0")
    shelf.put("b.py", "Licensed under Apache 2.0")
    other = Shelf(shelf.database, source="git:shop-0d1a25a8")
    other.put("0123abcd", "Open the shop earlier")
    other.put("4567cdef", "Close it later")
    other.forget("4567cdef")
    with shelf.database.read() as db:
        found = [(one.source, one.items, one.memories) for one in ingested.sources(db, 10, None)]
    assert found == [("git:shop-0d1a25a8", 1, 1), (SOURCE, 2, 2)]
    assert set(other.known()) == {"0123abcd"}
    for key in ("a.py", "b.py"):
        shelf.forget(key)
    with shelf.database.read() as db:
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


@given(st.lists(puts | forgets | acts, max_size=25))
def test_random_readings_and_acts_leave_what_plain_rules_say(script):
    with scratch_database() as database:
        shelf, oracle = Shelf(database), Oracle()
        ids: dict[str, str] = {}
        for step, (act, what, *rest) in enumerate(script):
            if act == "put":
                for receipt, text in zip(
                    shelf.put(what, *sorted(rest[0])).taken[0].receipts, sorted(rest[0]), strict=True
                ):
                    if receipt.outcome is not Outcome.REJECTED:
                        ids[text] = receipt.id
                oracle.put(what, rest[0])
            elif act == "forget":
                shelf.forget(what)
                oracle.put(what, frozenset())
            else:
                _act(database, oracle, ids, act, what, step)
            expected = sorted(text for text, state in oracle.state.items() if state == "active")
            assert [text.split()[0] for text in shelf.active()] == expected


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
