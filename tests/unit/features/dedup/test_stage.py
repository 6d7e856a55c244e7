"""What a worker merges, links or lets wait; and that nothing else, nor doing it twice, changes anything."""

import threading

import pytest

from pipeline.index.dense import DenseIndex
from pipeline.kernel.records import (
    CAPTURED_TAG,
    RULE_FILE_TAG,
    Anchor,
    Draft,
    EdgeDraft,
    EdgeKind,
    FactKey,
    Kind,
    Revision,
    Scope,
    ScopeKind,
    Source,
    Stage,
    Trust,
)
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.store import duplicates, ingested, memories, refusals, work
from pipeline.kernel.store.sqlite import SqliteDatabase
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from pipeline.write.facts import set_fact
from pipeline.write.revise import add_edge
from tests.fakes.angles import DedupStore
from tests.fakes.in_process import PROFILE, scratch_database
from tests.fakes.sources import keep_in_step

ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
THIRD = "The build runs nightly on the small server!"
MORE = "The build runs nightly on the small server and mails a report."
DENIAL = "The build does not run nightly on the small server."
CLOSE, BETWEEN, FAR = 0.97, 0.85, 0.5


@pytest.fixture
def dedup_store():
    with scratch_database() as database:
        dedup_store = DedupStore(database)
        yield dedup_store
        dedup_store.close()


@pytest.mark.parametrize("newest_first", [False, True])
def test_newer_duplicate_is_merged_into_the_older_in_any_order(dedup_store, newest_first):
    older = dedup_store.write(ONE, tags=("a",), importance=0.4)
    newer = dedup_store.write(SAME, CLOSE, tags=("b", "a"), importance=0.9)
    dedup_store.digest(newest_first=newest_first)
    assert dedup_store.active() == {older}
    survivor = dedup_store.get(older)
    assert (survivor.content, survivor.tags, survivor.importance, survivor.merge_count) == (ONE, ("a", "b"), 0.9, 1)
    assert dedup_store.list_history(older) == [("merged", SAME)]
    assert dedup_store.get(newer).content == SAME
    assert dedup_store.merges() == [(newer, older)]
    assert dedup_store.edges() == [(older, "supersedes", newer)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_three_doubles_become_the_oldest(dedup_store, newest_first):
    oldest = dedup_store.write(ONE)
    others = {dedup_store.write(SAME, CLOSE), dedup_store.write(THIRD)}
    dedup_store.digest(newest_first=newest_first)
    assert dedup_store.active() == {oldest}
    assert {absorbed for absorbed, _ in dedup_store.merges()} == others
    assert {text for _, text in dedup_store.list_history(oldest)} == {SAME, THIRD}


@pytest.mark.parametrize(
    ("text", "cosine"), [(SAME, BETWEEN), (MORE, CLOSE), (MORE, BETWEEN), ("We celebrate birthdays with cake.", CLOSE)]
)
def test_a_doubt_waits(dedup_store, text, cosine):
    older, newer = dedup_store.write(ONE), dedup_store.write(text, cosine)
    dedup_store.digest()
    assert dedup_store.active() == {older, newer}
    [(first, second, reasons)] = dedup_store.pairs()
    assert (first, second) == (older, newer)
    assert reasons
    assert not any(word in " ".join(reasons) for word in ("nightly", "birthdays"))


def test_distant_memories_are_not_compared(dedup_store):
    both = {dedup_store.write(ONE), dedup_store.write(SAME, FAR)}
    dedup_store.digest()
    assert dedup_store.active() == both
    assert (dedup_store.pairs(), dedup_store.edges(), dedup_store.merges()) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Staging listens on port 5433.", "Staging listens on port 6543."),
        ("The release was on 4 March 2026.", "The release was on 5 March 2026."),
        ("The door is in src/door.py.", "The door is in src/gate.py."),
        ("Backups are kept.", "Backups are not kept."),
        ("Alice reviews Bob.", "Bob reviews Alice."),
    ],
)
def test_a_number_a_date_a_path_a_negation_or_a_role_is_never_merged(dedup_store, text, other):
    both = {dedup_store.write(text), dedup_store.write(other)}
    dedup_store.digest()
    assert dedup_store.active() == both
    assert dedup_store.merges() == []


@pytest.mark.parametrize(
    ("fields", "others"),
    [
        ({"kind": Kind.FACT}, {"kind": Kind.LESSON}),
        ({}, {"scope": Scope(ScopeKind.USER)}),
        ({"scope": Scope(ScopeKind.AGENT, "a")}, {"scope": Scope(ScopeKind.AGENT, "b")}),
        ({"scope": Scope(ScopeKind.SESSION, "a")}, {"scope": Scope(ScopeKind.TASK, "a")}),
    ],
)
def test_kinds_and_scopes_stay_apart(dedup_store, fields, others):
    both = {dedup_store.write(ONE, **fields), dedup_store.write(SAME, CLOSE, **others)}
    dedup_store.digest()
    assert dedup_store.active() == both
    assert dedup_store.pairs() == []


@pytest.mark.parametrize("text", [SAME, MORE, DENIAL])
@pytest.mark.parametrize("other_source", ["project:shop-0d1a25a8", "project:copy-1234abcd"])
def test_memories_held_by_sources_are_not_compared_with_each_other(dedup_store, text, other_source):
    older, newer = dedup_store.write(ONE, kind=Kind.CODE), dedup_store.write(text, CLOSE, kind=Kind.CODE)
    keep_in_step(dedup_store.database, older)
    keep_in_step(dedup_store.database, newer, source=other_source)
    dedup_store.digest()
    assert dedup_store.active() == {older, newer}
    assert (dedup_store.pairs(), dedup_store.edges(), dedup_store.merges()) == ([], [], [])


def test_hundreds_of_similar_files_leave_nothing_to_review(dedup_store):
    written = [dedup_store.write(f"Package marker of module {chr(97 + n)}", CLOSE, kind=Kind.CODE) for n in range(20)]
    keep_in_step(dedup_store.database, *written)
    dedup_store.digest()
    assert (dedup_store.pairs(), dedup_store.merges()) == ([], [])


def test_memory_held_by_a_source_is_compared_with_a_persons_memory(dedup_store):
    said = dedup_store.write(ONE)
    # More of them than a memory is compared with: they do not stand before what was said.
    crowd = [dedup_store.write(f"{MORE} {n}", CLOSE) for n in range(12)]
    held = dedup_store.write(SAME, CLOSE)
    keep_in_step(dedup_store.database, held, *crowd)
    dedup_store.digest()
    assert (held, said) in dedup_store.merges()


def test_memory_released_by_its_source_is_compared_again(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    keep_in_step(dedup_store.database, older, newer)
    with dedup_store.database.write() as db:
        ingested.release(db, 1, ())
    dedup_store.digest()
    assert dedup_store.merges() == [(newer, older)]


def test_a_denial_crosses_no_scope(dedup_store):
    dedup_store.write(ONE, scope=Scope(ScopeKind.AGENT, "a"))
    dedup_store.write(DENIAL, scope=Scope(ScopeKind.AGENT, "b"))
    dedup_store.digest()
    assert dedup_store.edges() == []


@pytest.mark.parametrize(
    ("fields", "others", "reason"),
    [
        ({"kind": Kind.ACTIVITY}, {"kind": Kind.ACTIVITY}, "events may happen twice"),
        ({"kind": Kind.EPISODE}, {"kind": Kind.EPISODE}, "events may happen twice"),
        ({"kind": Kind.MILESTONE}, {"kind": Kind.MILESTONE}, "events may happen twice"),
        (
            {"kind": Kind.DECISION, "details": {"reason": "it is cheap"}},
            {"kind": Kind.DECISION, "details": {"reason": "it is quiet"}},
            "their fields differ",
        ),
        ({"anchor": Anchor("src/a.py")}, {"anchor": Anchor("src/b.py")}, "they are about different code"),
        ({}, {"branch": "next"}, "they belong to different branches"),
    ],
)
def test_duplicates_with_different_fields_wait_for_review(dedup_store, fields, others, reason):
    older, newer = dedup_store.write(ONE, **fields), dedup_store.write(SAME, CLOSE, **others)
    dedup_store.digest()
    assert dedup_store.active() == {older, newer}
    assert dedup_store.pairs() == [(older, newer, (reason,))]


def test_duplicates_with_relative_dates_of_different_days_wait_for_review(dedup_store):
    older = dedup_store.write("The build failed yesterday.", occurred_at="2026-01-01T00:00:00.000Z")
    newer = dedup_store.write("the build failed yesterday", occurred_at="2026-02-01T00:00:00.000Z")
    dedup_store.digest()
    assert dedup_store.pairs() == [(older, newer, ("they are about different days",))]


def test_a_pinned_memory_is_not_merged_into_an_older_one(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    revise.edit(dedup_store.database, newer, Revision(pinned=True))
    dedup_store.digest()
    assert dedup_store.pairs() == [(older, newer, ("the newer one is pinned",))]


def test_a_memory_is_not_merged_into_one_that_waits_for_review(dedup_store):
    text = "Deploys of the shop wait for the tests"
    older = dedup_store.write(text, source=Source.AMBIENT, policy=WritePolicy(review=True))
    assert dedup_store.get(older).candidate
    newer = dedup_store.write(text.lower())
    dedup_store.digest()
    assert newer in dedup_store.active()
    assert dedup_store.pairs() == [(older, newer, ("the older one is waiting for review",))]


def test_pair_kept_apart_by_a_person_is_not_merged(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    with dedup_store.database.write() as db:
        duplicates.keep(db, dedup_store.get(older).seq, dedup_store.get(newer).seq, utc_now())
    dedup_store.digest()
    assert dedup_store.active() == {older, newer}


def test_facts_with_a_key_are_not_compared(dedup_store):
    key = FactKey("build", "runs")
    one = set_fact(dedup_store.database, key, "nightly", Draft(""), WritePolicy()).id
    dedup_store.digest()
    two = dedup_store.write("Build runs: nightly")
    three = set_fact(dedup_store.database, FactKey("build", "run"), "nightly", Draft(""), WritePolicy()).id
    dedup_store.digest()
    assert dedup_store.active() == {one, two, three}
    assert (dedup_store.pairs(), dedup_store.edges()) == ([], [])


def test_the_archived_is_left_alone(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    revise.archive(dedup_store.database, older)
    dedup_store.digest()
    assert dedup_store.active() == {newer}
    assert dedup_store.merges() == []


def test_restored_memory_is_compared_with_newer_memories(dedup_store):
    older = dedup_store.write(ONE)
    revise.archive(dedup_store.database, older)
    newer = dedup_store.write(SAME, CLOSE)
    dedup_store.digest()
    revise.restore(dedup_store.database, older)
    dedup_store.digest()
    assert dedup_store.merges() == [(newer, older)]


def test_archived_doubles_and_those_of_other_scopes_hide_no_double(dedup_store):
    older = dedup_store.write(ONE, CLOSE)
    for number in range(12):
        dedup_store.write(SAME, scope=Scope(ScopeKind.AGENT, f"a{number}"))
        revise.archive(dedup_store.database, dedup_store.write(THIRD, tags=(f"t{number}",)))
    dedup_store.digest()
    newer = dedup_store.write(SAME)
    dedup_store.digest()
    assert (newer, older) in dedup_store.merges()


def test_simultaneous_duplicates_are_found_with_a_slow_index(dedup_store):
    dedup_store.write("We celebrate birthdays with cake.", FAR)
    dedup_store.digest()
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    # As if the index were slower than any search waits for it.
    dedup_store.dense._await_refresh = lambda _: None
    dedup_store.digest()
    assert dedup_store.merges() == [(newer, older)]


def test_duplicates_are_found_beyond_the_in_memory_rows():
    with scratch_database() as database:
        dedup_store = DedupStore(database, exact_rows=0)
        older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
        dedup_store.digest()
        assert dedup_store.merges() == [(newer, older)]
        dedup_store.close()


@pytest.mark.parametrize("cosine", [CLOSE, BETWEEN, 0.7])
@pytest.mark.parametrize("kind", [Kind.FACT, Kind.DECISION])
def test_a_denial_is_linked_once(dedup_store, cosine, kind):
    older, newer = dedup_store.write(ONE), dedup_store.write(DENIAL, cosine, kind=kind)
    dedup_store.digest()
    dedup_store.digest_again()
    assert dedup_store.edges() == [(newer, "contradicts", older)]
    assert dedup_store.active() == {older, newer}
    with dedup_store.database.read() as db:
        assert db.execute("SELECT count(*) FROM change WHERE op = 'relate'").fetchone() == (2,)


def test_contradiction_edge_is_removed_by_an_edit(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(DENIAL, CLOSE)
    dedup_store.digest()
    revise.edit(dedup_store.database, newer, Revision(content="We celebrate birthdays with cake."))
    assert dedup_store.edges() == []
    dedup_store.encoder.point("We celebrate birthdays with cake.", FAR)
    dedup_store.digest()
    assert dedup_store.edges() == []
    assert dedup_store.active() == {older, newer}


def test_a_denial_that_a_person_drew_stays_when_a_text_is_edited(dedup_store):
    one, other = dedup_store.write(ONE), dedup_store.write("We celebrate birthdays with cake.", FAR)
    add_edge(dedup_store.database, other, EdgeDraft(EdgeKind.CONTRADICTS, one))
    revise.edit(dedup_store.database, other, Revision(content="We celebrate birthdays with tea."))
    assert dedup_store.edges() == [(other, "contradicts", one)]


def test_edited_pair_is_judged_again(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(MORE, CLOSE)
    dedup_store.digest()
    assert len(dedup_store.pairs()) == 1
    revise.edit(dedup_store.database, newer, Revision(content=SAME))
    assert dedup_store.pairs() == []
    dedup_store.digest()
    assert dedup_store.merges() == [(newer, older)]


def test_comparing_again_changes_nothing(dedup_store):
    for text, cosine in ((ONE, 1.0), (SAME, CLOSE), (MORE, CLOSE), (DENIAL, CLOSE), (THIRD, BETWEEN)):
        dedup_store.write(text, cosine)
    dedup_store.digest()
    before = dedup_store.state()
    dedup_store.digest_again()
    assert dedup_store.state() == before


def test_a_worker_that_dies_before_it_is_done_leaves_nothing_half_merged(dedup_store, monkeypatch):
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    dedup_store.embed()
    items = dedup_store.claim(Stage.DEDUP)
    before = dedup_store.state()

    def killed(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.kernel.store.audit.add", killed)
        with pytest.raises(KeyboardInterrupt):
            dedup_store.stage.run(items, "test")
    assert dedup_store.state() == before
    dedup_store.stage.run(items, "test")
    after = dedup_store.state()
    assert dedup_store.merges() == [(newer, older)]
    dedup_store.stage.run(items, "test")
    assert dedup_store.state() == after


def test_dedup_without_the_lease_changes_nothing(dedup_store):
    dedup_store.write(ONE)
    dedup_store.write(SAME, CLOSE)
    dedup_store.embed()
    items = dedup_store.claim(Stage.DEDUP, "gone")
    before = dedup_store.state()
    dedup_store.stage.run(items, "another")
    assert dedup_store.state() == before


@pytest.mark.files
def test_two_workers_merge_a_double_once(dedup_store):
    texts = [f"The {name} build runs nightly" for name in ("red", "green", "blue", "white", "black", "grey")]
    for number, text in enumerate(texts):
        for twin in (text, text.lower(), f"{text}!"):
            dedup_store.write(twin)
            dedup_store.encoder.angles[twin] = number
    dedup_store.embed()
    items = dedup_store.claim(Stage.DEDUP)
    start = threading.Barrier(2)
    failures = []

    def compare(part):
        database = SqliteDatabase(dedup_store.database.file, PROFILE, create=False)
        dense = DenseIndex(dedup_store.stage.table(), 10_000, dedup_store.encoder.background)
        stage = type(dedup_store.stage)(database, dedup_store.stage.table, lambda: dense)
        try:
            start.wait()
            for item in part:
                stage.run([item], "test")
        except Exception as error:  # noqa: BLE001
            failures.append(error)
        finally:
            dense.close()
            database.close()

    threads = [threading.Thread(target=compare, args=(part,)) for part in (items[::2], items[1::2])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {dedup_store.get(memory_id).content for memory_id in dedup_store.active()} == set(texts)
    assert len(dedup_store.merges()) == len({absorbed for absorbed, _ in dedup_store.merges()}) == 12


def test_long_memories_are_one_only_if_every_passage_has_its_like(dedup_store):
    for line, cosine in (("alpha", 1.0), ("beta", 0.2), ("Alpha", 1.0), ("Beta", 0.2), ("ALPHA", 1.0), ("BETA", -0.5)):
        dedup_store.encoder.point(line, cosine)
    older, newer = dedup_store.write("alpha\nbeta", CLOSE), dedup_store.write("Alpha\nBeta", CLOSE)
    other = dedup_store.write("ALPHA\nBETA", CLOSE)
    dedup_store.digest()
    assert dedup_store.active() == {older, other}
    assert dedup_store.merges() == [(newer, older)]
    assert dedup_store.pairs() == []


@pytest.mark.parametrize("edited", [0, 1])
def test_concurrently_edited_memory_is_not_merged(dedup_store, edited, monkeypatch):
    both = [dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)]
    dedup_store.embed()
    items = dedup_store.claim(Stage.DEDUP)
    complete = work.complete

    def edit_first(db, claimed, owner):
        seq = dedup_store.get(both[edited]).seq
        db.execute("UPDATE memory SET content = 'The build is gone.', content_hash = 'x' WHERE seq = ?", (seq,))
        return complete(db, claimed, owner)

    monkeypatch.setattr(work, "complete", edit_first)
    dedup_store.stage.run(items, "test")
    assert dedup_store.active() == set(both)
    assert (dedup_store.pairs(), dedup_store.merges()) == ([], [])


def test_edited_text_is_not_judged_by_its_old_vectors(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write("We celebrate birthdays with cake.", FAR)
    dedup_store.digest()
    revise.edit(dedup_store.database, older, Revision(content="We celebrate birthdays with cake and tea."))
    dedup_store.encoder.point("We celebrate birthdays with cake and tea.", FAR)
    third = dedup_store.write(SAME)
    with dedup_store.database.write() as db:
        late = work.claim(db, Stage.EMBED, "test", limit=10, lease_s=1e9, now=1e10)
        old = [item for item in late if item.seq == dedup_store.get(older).seq]
        work.release(db, old, "test")
    dedup_store.embedding.run([item for item in late if item not in old], "test")
    for item in dedup_store.claim(Stage.DEDUP):
        dedup_store.stage.run([item], "test")
    assert dedup_store.pairs() == []
    dedup_store.digest()
    assert [(first, second) for first, second, _ in dedup_store.pairs()] == [(older, newer)]
    assert third in dedup_store.active()


def test_concurrently_purged_memory_is_not_merged(dedup_store):
    older, newer = dedup_store.write(ONE), dedup_store.write(SAME, CLOSE)
    dedup_store.embed()
    items = dedup_store.claim(Stage.DEDUP)
    revise.purge(dedup_store.database, older)
    dedup_store.stage.run(items, "test")
    assert dedup_store.active() == {newer}


def test_a_double_that_a_person_vouches_for_makes_evidence_trusted(dedup_store):
    evidence = dedup_store.write(ONE, source=Source.IMPORT)
    dedup_store.write(SAME, CLOSE, source=Source.AGENT)
    dedup_store.digest()
    assert dedup_store.get(evidence).trust is Trust.EVIDENCE
    dedup_store.write(THIRD)
    dedup_store.digest()
    assert dedup_store.get(evidence).trust is Trust.TRUSTED


def test_merging_a_derived_memory_leaves_the_evidence_untrusted(dedup_store):
    evidence = dedup_store.write(ONE, source=Source.IMPORT)
    dedup_store.write(SAME, CLOSE, edges=(EdgeDraft(EdgeKind.DERIVED_FROM, evidence),))
    dedup_store.digest()
    assert dedup_store.get(evidence).trust is Trust.EVIDENCE
    assert dedup_store.get(evidence).merge_count == 1


def test_merging_a_confirmed_import_makes_the_survivor_trusted(dedup_store):
    older, newer = dedup_store.write(ONE, source=Source.IMPORT), dedup_store.write(SAME, CLOSE, source=Source.IMPORT)
    revise.edit(dedup_store.database, newer, Revision(trust=Trust.TRUSTED))
    dedup_store.digest()
    assert dedup_store.get(older).trust is Trust.TRUSTED


def capture(dedup_store, content, session, kind=Kind.DECISION, **fields):
    details = {"rule": content} if kind is Kind.LESSON else {}
    return dedup_store.write(
        content,
        CLOSE,
        source=Source.AMBIENT,
        tags=(CAPTURED_TAG,),
        session_id=session,
        kind=kind,
        details=details,
        **fields,
    )


@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.LESSON])
@pytest.mark.parametrize(
    ("second", "session", "trust"),
    [
        ("We use large servers for the build.", "s2", Trust.TRUSTED),
        ("We use large servers for the build.", "s1", Trust.EVIDENCE),
        # A copy confirms nothing, nor does one that was changed a little.
        ("We use big servers for the build.", "s2", Trust.EVIDENCE),
        ("we  use BIG servers for the build!", "s2", Trust.EVIDENCE),
        ("We use big servers for our build.", "s2", Trust.EVIDENCE),
    ],
)
def test_captured_memory_is_trusted_after_a_rewording_in_another_session(dedup_store, kind, second, session, trust):
    first = capture(dedup_store, "We use big servers for the build.", "s1", kind)
    capture(dedup_store, second, session, kind)
    dedup_store.digest()
    assert dedup_store.active() == {first}
    assert dedup_store.get(first).trust is trust


def test_every_memory_is_done_even_one_without_vectors(dedup_store):
    memory_id = dedup_store.write(ONE)
    with dedup_store.database.write() as db:
        work.drop(db, dedup_store.get(memory_id).seq)
        work.add(db, memories.all_seqs(db), [Stage.DEDUP], 0.0)
    dedup_store.digest()
    with dedup_store.database.read() as db:
        assert work.count_pending(db)[Stage.DEDUP] == 0


RULE, NEW_RULE = "Start test names with `it_`", "From now on, start test names with `should_`."


@pytest.mark.parametrize("newest_first", [False, True])
def test_rule_with_another_value_supersedes_the_earlier_rule(dedup_store, newest_first):
    later = dedup_store.write(NEW_RULE, CLOSE, occurred_at="2026-02-01T00:00:00Z")
    earlier = dedup_store.write(RULE, occurred_at="2026-01-01T00:00:00Z")
    dedup_store.digest(newest_first=newest_first)
    assert dedup_store.edges() == [(later, "supersedes", earlier)]
    assert dedup_store.active() == {earlier, later}


@pytest.mark.parametrize("fields", [{"kind": Kind.EPISODE}, {"source": Source.AMBIENT, "importance": 0.9}])
def test_episode_or_less_trusted_statement_only_contradicts_a_rule(dedup_store, fields):
    earlier = dedup_store.write(RULE, source=Source.USER)
    later = dedup_store.write(NEW_RULE, CLOSE, **fields)
    dedup_store.digest()
    assert dedup_store.edges() == [(later, "contradicts", earlier)]


@pytest.mark.parametrize("cosine", [BETWEEN, FAR])
def test_reworded_preference_supersedes_the_earlier_preference(dedup_store, cosine):
    later = dedup_store.write("I would rather have spaces in Go", cosine, occurred_at="2026-02-01T00:00:00Z")
    earlier = dedup_store.write("I prefer tabs in Go", occurred_at="2026-01-01T00:00:00Z")
    dedup_store.digest()
    assert dedup_store.edges() == [(later, "supersedes", earlier)]
    assert dedup_store.pairs() == []


def test_a_preference_is_found_among_many_of_its_like(dedup_store):
    earlier = dedup_store.write("I prefer tabs in Go", 0.9)
    for number in range(20):
        dedup_store.write(f"I prefer tabs in language number {number}", 0.99)
    dedup_store.digest()
    later = dedup_store.write("I would rather have spaces in Go")
    dedup_store.digest()
    assert [edge for edge in dedup_store.edges() if edge[0] == later] == [(later, "supersedes", earlier)]


def test_removed_supersedes_edge_is_not_added_again(dedup_store):
    earlier, later = dedup_store.write(RULE), dedup_store.write(NEW_RULE, CLOSE)
    dedup_store.digest()
    revise.remove_edge(dedup_store.database, later, EdgeKind.SUPERSEDES, earlier)
    dedup_store.digest_again()
    assert dedup_store.edges() == []


def test_a_rule_is_found_among_many_of_its_like(dedup_store):
    earlier = dedup_store.write(RULE, 0.9)
    for number in range(20):
        dedup_store.write(f"Start test class names with `T{number}x`", 0.99)
    dedup_store.digest()
    later = dedup_store.write(NEW_RULE)
    dedup_store.digest()
    assert (later, "supersedes", earlier) in dedup_store.edges()


HERE, THERE = "The gateway listens on port 8080.", "From now on, the gateway listens on port 9090."


@pytest.mark.parametrize("newest_first", [False, True])
def test_statement_with_another_value_supersedes_the_earlier_statement(dedup_store, newest_first):
    older, newer = dedup_store.write(HERE), dedup_store.write(THERE, BETWEEN, kind=Kind.DECISION)
    dedup_store.digest(newest_first=newest_first)
    dedup_store.digest_again()
    assert dedup_store.edges() == [(newer, "supersedes", older)]
    assert dedup_store.active() == {older, newer}
    assert dedup_store.pairs() == []


def test_which_is_newer_follows_when_it_was_said(dedup_store):
    later = dedup_store.write(HERE, occurred_at="2026-03-02T00:00:00.000Z")
    earlier = dedup_store.write(THERE, BETWEEN, occurred_at="2026-03-01T00:00:00.000Z")
    dedup_store.digest()
    assert dedup_store.edges() == [(later, "supersedes", earlier)]


@pytest.mark.parametrize(
    ("fields", "others"),
    [
        ({"branch": "main"}, {"branch": "try-it"}),
        ({}, {"anchor": Anchor("/src/door.py")}),
    ],
)
def test_statement_about_another_branch_or_file_supersedes_nothing(dedup_store, fields, others):
    dedup_store.write(HERE, **fields)
    dedup_store.write(THERE, BETWEEN, **others)
    dedup_store.digest()
    assert "supersedes" not in [kind for _, kind, _ in dedup_store.edges()]


def test_pinned_memory_is_not_superseded(dedup_store):
    revise.edit(dedup_store.database, dedup_store.write(HERE), Revision(pinned=True))
    dedup_store.write(THERE, BETWEEN)
    dedup_store.digest()
    assert "supersedes" not in [kind for _, kind, _ in dedup_store.edges()]


@pytest.mark.parametrize("again", [HERE, "the gateway listens on port 8080"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_repeated_old_value_supersedes_the_newer_value(dedup_store, again, newest_first):
    here = dedup_store.write(HERE, occurred_at="2026-03-01T00:00:00.000Z")
    there = dedup_store.write(THERE, BETWEEN, occurred_at="2026-03-02T00:00:00.000Z")
    dedup_store.digest()
    assert dedup_store.edges() == [(there, "supersedes", here)]
    dedup_store.write(again, occurred_at="2026-03-03T00:00:00.000Z")
    dedup_store.digest(newest_first=newest_first)
    dedup_store.digest()
    assert (here, "supersedes", there) in dedup_store.edges()
    assert (there, "supersedes", here) not in dedup_store.edges()


def test_a_slot_that_changed_often_is_one_chain(dedup_store):
    ports = [dedup_store.write(f"The gateway listens on port {port}.", CLOSE) for port in range(8000, 8009)]
    dedup_store.digest()
    found = {(newer, older) for newer, kind, older in dedup_store.edges() if kind == "supersedes"}
    assert found == {(newer, older) for number, newer in enumerate(ports) for older in ports[:number]}


@pytest.mark.parametrize(("source", "stays"), [(Source.AGENT, False), (Source.AMBIENT, False), (Source.USER, True)])
def test_reworded_refused_memory_is_archived_again(dedup_store, source, stays):
    refused = dedup_store.write(ONE)
    dedup_store.digest()
    revise.archive(dedup_store.database, refused)
    offered = dedup_store.write(SAME, CLOSE, source=source, importance=0.9)
    unlike = dedup_store.write(MORE, FAR, source=source, importance=0.9)
    dedup_store.digest()
    assert dedup_store.active() == ({offered, unlike} if stays else {unlike})
    with dedup_store.database.read() as db:
        assert [one.offers for one in refusals.list_offered(db, 5)] == ([] if stays else [1])


def test_restored_memory_is_not_treated_as_refused(dedup_store):
    refused = dedup_store.write(ONE)
    dedup_store.digest()
    revise.archive(dedup_store.database, refused)
    revise.restore(dedup_store.database, refused)
    offered = dedup_store.write(SAME, CLOSE, source=Source.AGENT)
    dedup_store.digest()
    assert dedup_store.merges() == [(offered, refused)]


CLAUDE, CODEX, RULES = "memory:claude-code:a-0d1a25a8", "memory:codex:a-0d1a25a8", "memory:rules:a-0d1a25a8"
NPM, PNPM = "Install packages with npm.", "Install packages with pnpm."
JUNE, MARCH = "2025-06-15T00:00:00.000Z", "2026-03-01T00:00:00.000Z"


def import_pair(dedup_store, first, second, sources, **fields):
    """Store two memories of different stores, the later statement first."""
    later = dedup_store.write(first, 0.7, source=Source.IMPORT, occurred_at=MARCH, **fields)
    earlier = dedup_store.write(second, source=Source.IMPORT, occurred_at=JUNE)
    for memory_id, source in zip((later, earlier), sources, strict=True):
        keep_in_step(dedup_store.database, memory_id, source=source)
    dedup_store.digest()
    return later, earlier


@pytest.mark.parametrize("sources", [(CODEX, CLAUDE), (CLAUDE, CODEX), (RULES, RULES)])
def test_contradicting_stores_of_different_tools_get_a_contradicts_edge(dedup_store, sources):
    later, earlier = import_pair(dedup_store, PNPM, NPM, sources)
    assert dedup_store.active() == {later, earlier}
    assert dedup_store.edges() == [(later, "contradicts", earlier)]
    assert (dedup_store.pairs(), dedup_store.merges()) == ([], [])
    before = dedup_store.state()
    dedup_store.digest_again()
    assert dedup_store.state() == before


def test_another_value_in_another_store_contradicts_but_supersedes_nothing(dedup_store):
    later, earlier = import_pair(
        dedup_store, "The shop listens on port 1", "The shop listens on port 2", (CODEX, CLAUDE)
    )
    assert dedup_store.edges() == [(later, "contradicts", earlier)]


def test_a_rule_file_leads_over_a_newer_memory(dedup_store):
    earlier = dedup_store.write(NPM, source=Source.IMPORT, occurred_at=JUNE, kind=Kind.DOCUMENT, tags=(RULE_FILE_TAG,))
    later = dedup_store.write(PNPM, 0.7, source=Source.IMPORT, occurred_at=MARCH)
    keep_in_step(dedup_store.database, earlier, source=RULES)
    keep_in_step(dedup_store.database, later, source=CODEX)
    dedup_store.digest()
    assert dedup_store.edges() == [(earlier, "contradicts", later)]


@pytest.mark.parametrize("sources", [(CODEX, CODEX), (CODEX, "project:shop-0d1a25a8"), ("mem0", "pmb")])
def test_other_sources_are_not_compared_with_each_other(dedup_store, sources):
    import_pair(dedup_store, PNPM, NPM, sources)
    assert dedup_store.edges() == []


def test_an_equal_statement_of_another_store_is_not_merged(dedup_store):
    both = import_pair(dedup_store, SAME, ONE, (CODEX, CLAUDE))
    assert dedup_store.active() == set(both)
    assert (dedup_store.edges(), dedup_store.pairs()) == ([], [])


def test_a_person_contradicts_a_store_of_a_tool(dedup_store):
    imported = dedup_store.write(NPM, source=Source.IMPORT, occurred_at=MARCH)
    keep_in_step(dedup_store.database, imported, source=CLAUDE)
    said = dedup_store.write("We use pnpm here, never npm.", 0.7, occurred_at=JUNE)
    dedup_store.digest()
    assert dedup_store.edges() == [(imported, "contradicts", said)]
