"""What a worker merges, links or lets wait; and that nothing else, nor doing it twice, changes anything."""

import threading

import pytest

from pipeline.index.dense import DenseIndex
from pipeline.records import (
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
from pipeline.store import duplicates, ingested, memories, work
from pipeline.store.database import Database
from pipeline.times import utc_now
from pipeline.write import revise
from pipeline.write.accept import WritePolicy
from pipeline.write.facts import set_fact
from pipeline.write.revise import add_edge
from tests.fakes.angles import Doubles
from tests.fakes.in_process import PROFILE, scratch_database
from tests.fakes.sources import keep_in_step

ONE = "The build runs nightly on the small server."
SAME = "the build runs nightly on the small server"
THIRD = "The build runs nightly on the small server!"
MORE = "The build runs nightly on the small server and mails a report."
DENIAL = "The build does not run nightly on the small server."
CLOSE, BETWEEN, FAR = 0.97, 0.85, 0.5


@pytest.fixture
def doubles():
    with scratch_database() as database:
        doubles = Doubles(database)
        yield doubles
        doubles.close()


@pytest.mark.parametrize("newest_first", [False, True])
def test_the_newer_goes_into_the_older_whichever_is_looked_at_first(doubles, newest_first):
    older = doubles.write(ONE, tags=("a",), importance=0.4)
    newer = doubles.write(SAME, CLOSE, tags=("b", "a"), importance=0.9)
    doubles.digest(newest_first=newest_first)
    assert doubles.active() == {older}
    survivor = doubles.get(older)
    assert (survivor.content, survivor.tags, survivor.importance, survivor.merge_count) == (ONE, ("a", "b"), 0.9, 1)
    assert doubles.told(older) == [("merged", SAME)]
    assert doubles.get(newer).content == SAME
    assert doubles.merges() == [(newer, older)]
    assert doubles.edges() == [(older, "supersedes", newer)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_three_doubles_become_the_oldest(doubles, newest_first):
    oldest = doubles.write(ONE)
    others = {doubles.write(SAME, CLOSE), doubles.write(THIRD)}
    doubles.digest(newest_first=newest_first)
    assert doubles.active() == {oldest}
    assert {absorbed for absorbed, _ in doubles.merges()} == others
    assert {text for _, text in doubles.told(oldest)} == {SAME, THIRD}


@pytest.mark.parametrize(
    ("text", "cosine"), [(SAME, BETWEEN), (MORE, CLOSE), (MORE, BETWEEN), ("We celebrate birthdays with cake.", CLOSE)]
)
def test_a_doubt_waits(doubles, text, cosine):
    older, newer = doubles.write(ONE), doubles.write(text, cosine)
    doubles.digest()
    assert doubles.active() == {older, newer}
    [(first, second, reasons)] = doubles.pairs()
    assert (first, second) == (older, newer)
    assert reasons
    assert not any(word in " ".join(reasons) for word in ("nightly", "birthdays"))


def test_what_is_far_apart_is_left_alone(doubles):
    both = {doubles.write(ONE), doubles.write(SAME, FAR)}
    doubles.digest()
    assert doubles.active() == both
    assert (doubles.pairs(), doubles.edges(), doubles.merges()) == ([], [], [])


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
def test_a_number_a_date_a_path_a_negation_or_a_role_is_never_merged(doubles, text, other):
    both = {doubles.write(text), doubles.write(other)}
    doubles.digest()
    assert doubles.active() == both
    assert doubles.merges() == []


@pytest.mark.parametrize(
    ("fields", "others"),
    [
        ({"kind": Kind.FACT}, {"kind": Kind.LESSON}),
        ({}, {"scope": Scope(ScopeKind.USER)}),
        ({"scope": Scope(ScopeKind.AGENT, "a")}, {"scope": Scope(ScopeKind.AGENT, "b")}),
        ({"scope": Scope(ScopeKind.SESSION, "a")}, {"scope": Scope(ScopeKind.TASK, "a")}),
    ],
)
def test_kinds_and_scopes_stay_apart(doubles, fields, others):
    both = {doubles.write(ONE, **fields), doubles.write(SAME, CLOSE, **others)}
    doubles.digest()
    assert doubles.active() == both
    assert doubles.pairs() == []


@pytest.mark.parametrize("text", [SAME, MORE, DENIAL])
@pytest.mark.parametrize("other_source", ["project:shop-0d1a25a8", "project:copy-1234abcd"])
def test_what_sources_hold_is_never_compared_with_its_like(doubles, text, other_source):
    older, newer = doubles.write(ONE, kind=Kind.CODE), doubles.write(text, CLOSE, kind=Kind.CODE)
    keep_in_step(doubles.database, older)
    keep_in_step(doubles.database, newer, source=other_source)
    doubles.digest()
    assert doubles.active() == {older, newer}
    assert (doubles.pairs(), doubles.edges(), doubles.merges()) == ([], [], [])


def test_hundreds_of_similar_files_leave_nothing_to_review(doubles):
    written = [doubles.write(f"Package marker of module {chr(97 + n)}", CLOSE, kind=Kind.CODE) for n in range(20)]
    keep_in_step(doubles.database, *written)
    doubles.digest()
    assert (doubles.pairs(), doubles.merges()) == ([], [])


def test_what_a_source_holds_is_compared_with_what_people_said(doubles):
    said = doubles.write(ONE)
    # More of them than a memory is compared with: they do not stand before what was said.
    crowd = [doubles.write(f"{MORE} {n}", CLOSE) for n in range(12)]
    held = doubles.write(SAME, CLOSE)
    keep_in_step(doubles.database, held, *crowd)
    doubles.digest()
    assert (held, said) in doubles.merges()


def test_what_its_source_dropped_and_somebody_keeps_is_compared_again(doubles):
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    keep_in_step(doubles.database, older, newer)
    with doubles.database.write() as db:
        ingested.release(db, 1, ())
    doubles.digest()
    assert doubles.merges() == [(newer, older)]


def test_a_denial_crosses_no_scope(doubles):
    doubles.write(ONE, scope=Scope(ScopeKind.AGENT, "a"))
    doubles.write(DENIAL, scope=Scope(ScopeKind.AGENT, "b"))
    doubles.digest()
    assert doubles.edges() == []


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
def test_doubles_that_stand_for_different_things_wait(doubles, fields, others, reason):
    older, newer = doubles.write(ONE, **fields), doubles.write(SAME, CLOSE, **others)
    doubles.digest()
    assert doubles.active() == {older, newer}
    assert doubles.pairs() == [(older, newer, (reason,))]


def test_what_speaks_of_its_own_day_waits(doubles):
    older = doubles.write("The build failed yesterday.", occurred_at="2026-01-01T00:00:00.000Z")
    newer = doubles.write("the build failed yesterday", occurred_at="2026-02-01T00:00:00.000Z")
    doubles.digest()
    assert doubles.pairs() == [(older, newer, ("each speaks of its own day",))]


def test_a_pinned_memory_is_not_merged_into_an_older_one(doubles):
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    revise.edit(doubles.database, newer, Revision(pinned=True))
    doubles.digest()
    assert doubles.pairs() == [(older, newer, ("the newer one is pinned",))]


def test_a_memory_is_not_merged_into_one_that_waits_for_review(doubles):
    text = "Deploys of the shop wait for the tests"
    older = doubles.write(text, source=Source.AMBIENT, policy=WritePolicy(review=True))
    assert doubles.get(older).candidate
    newer = doubles.write(text.lower())
    doubles.digest()
    assert newer in doubles.active()
    assert doubles.pairs() == [(older, newer, ("the older one waits for review",))]


def test_what_a_person_kept_apart_is_not_merged(doubles):
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    with doubles.database.write() as db:
        duplicates.keep(db, doubles.get(older).seq, doubles.get(newer).seq, utc_now())
    doubles.digest()
    assert doubles.active() == {older, newer}


def test_facts_with_a_key_are_not_compared(doubles):
    key = FactKey("build", "runs")
    one = set_fact(doubles.database, key, "nightly", Draft(""), WritePolicy()).id
    doubles.digest()
    two = doubles.write("Build runs: nightly")
    three = set_fact(doubles.database, FactKey("build", "run"), "nightly", Draft(""), WritePolicy()).id
    doubles.digest()
    assert doubles.active() == {one, two, three}
    assert (doubles.pairs(), doubles.edges()) == ([], [])


def test_the_archived_is_left_alone(doubles):
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    revise.archive(doubles.database, older)
    doubles.digest()
    assert doubles.active() == {newer}
    assert doubles.merges() == []


def test_what_came_while_a_memory_was_archived_is_compared_when_it_is_back(doubles):
    older = doubles.write(ONE)
    revise.archive(doubles.database, older)
    newer = doubles.write(SAME, CLOSE)
    doubles.digest()
    revise.restore(doubles.database, older)
    doubles.digest()
    assert doubles.merges() == [(newer, older)]


def test_archived_doubles_and_those_of_other_scopes_hide_no_double(doubles):
    older = doubles.write(ONE, CLOSE)
    for number in range(12):
        doubles.write(SAME, scope=Scope(ScopeKind.AGENT, f"a{number}"))
        revise.archive(doubles.database, doubles.write(THIRD, tags=(f"t{number}",)))
    doubles.digest()
    newer = doubles.write(SAME)
    doubles.digest()
    assert (newer, older) in doubles.merges()


def test_doubles_of_one_moment_are_found_however_slow_the_index_is(doubles):
    doubles.write("We celebrate birthdays with cake.", FAR)
    doubles.digest()
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    # As if the index were slower than any search waits for it.
    doubles.dense._await_refresh = lambda _: None
    doubles.digest()
    assert doubles.merges() == [(newer, older)]


def test_beyond_what_is_held_in_memory_doubles_are_found_too():
    with scratch_database() as database:
        doubles = Doubles(database, exact_rows=0)
        older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
        doubles.digest()
        assert doubles.merges() == [(newer, older)]
        doubles.close()


@pytest.mark.parametrize("cosine", [CLOSE, BETWEEN, 0.7])
@pytest.mark.parametrize("kind", [Kind.FACT, Kind.DECISION])
def test_a_denial_is_linked_once(doubles, cosine, kind):
    older, newer = doubles.write(ONE), doubles.write(DENIAL, cosine, kind=kind)
    doubles.digest()
    doubles.digest_again()
    assert doubles.edges() == [(newer, "contradicts", older)]
    assert doubles.active() == {older, newer}
    with doubles.database.read() as db:
        assert db.execute("SELECT count(*) FROM change WHERE op = 'relate'").fetchone() == (2,)


def test_a_denial_that_was_edited_away_is_linked_no_longer(doubles):
    older, newer = doubles.write(ONE), doubles.write(DENIAL, CLOSE)
    doubles.digest()
    revise.edit(doubles.database, newer, Revision(content="We celebrate birthdays with cake."))
    assert doubles.edges() == []
    doubles.encoder.point("We celebrate birthdays with cake.", FAR)
    doubles.digest()
    assert doubles.edges() == []
    assert doubles.active() == {older, newer}


def test_a_denial_that_a_person_drew_stays_when_a_text_is_edited(doubles):
    one, other = doubles.write(ONE), doubles.write("We celebrate birthdays with cake.", FAR)
    add_edge(doubles.database, other, EdgeDraft(EdgeKind.CONTRADICTS, one))
    revise.edit(doubles.database, other, Revision(content="We celebrate birthdays with tea."))
    assert doubles.edges() == [(other, "contradicts", one)]


def test_a_pair_is_judged_anew_when_a_text_of_it_is_edited(doubles):
    older, newer = doubles.write(ONE), doubles.write(MORE, CLOSE)
    doubles.digest()
    assert len(doubles.pairs()) == 1
    revise.edit(doubles.database, newer, Revision(content=SAME))
    assert doubles.pairs() == []
    doubles.digest()
    assert doubles.merges() == [(newer, older)]


def test_comparing_again_changes_nothing(doubles):
    for text, cosine in ((ONE, 1.0), (SAME, CLOSE), (MORE, CLOSE), (DENIAL, CLOSE), (THIRD, BETWEEN)):
        doubles.write(text, cosine)
    doubles.digest()
    before = doubles.state()
    doubles.digest_again()
    assert doubles.state() == before


def test_a_worker_that_dies_before_it_is_done_leaves_nothing_half_merged(doubles, monkeypatch):
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    doubles.embed()
    items = doubles.claim(Stage.DEDUP)
    before = doubles.state()

    def killed(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.store.audit.add", killed)
        with pytest.raises(KeyboardInterrupt):
            doubles.stage.run(items, "test")
    assert doubles.state() == before
    doubles.stage.run(items, "test")
    after = doubles.state()
    assert doubles.merges() == [(newer, older)]
    doubles.stage.run(items, "test")
    assert doubles.state() == after


def test_who_lost_the_lease_changes_nothing(doubles):
    doubles.write(ONE)
    doubles.write(SAME, CLOSE)
    doubles.embed()
    items = doubles.claim(Stage.DEDUP, "gone")
    before = doubles.state()
    doubles.stage.run(items, "another")
    assert doubles.state() == before


def test_two_workers_merge_a_double_once(doubles):
    texts = [f"The {name} build runs nightly" for name in ("red", "green", "blue", "white", "black", "grey")]
    for number, text in enumerate(texts):
        for twin in (text, text.lower(), f"{text}!"):
            doubles.write(twin)
            doubles.encoder.angles[twin] = number
    doubles.embed()
    items = doubles.claim(Stage.DEDUP)
    start = threading.Barrier(2)
    failures = []

    def compare(part):
        database = Database(doubles.database.file, PROFILE, create=False)
        dense = DenseIndex(doubles.stage.table(), 10_000, doubles.encoder.background)
        stage = type(doubles.stage)(database, doubles.stage.table, lambda: dense)
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
    assert {doubles.get(memory_id).content for memory_id in doubles.active()} == set(texts)
    assert len(doubles.merges()) == len({absorbed for absorbed, _ in doubles.merges()}) == 12


def test_long_memories_are_one_only_if_every_passage_has_its_like(doubles):
    for line, cosine in (("alpha", 1.0), ("beta", 0.2), ("Alpha", 1.0), ("Beta", 0.2), ("ALPHA", 1.0), ("BETA", -0.5)):
        doubles.encoder.point(line, cosine)
    older, newer = doubles.write("alpha\nbeta", CLOSE), doubles.write("Alpha\nBeta", CLOSE)
    other = doubles.write("ALPHA\nBETA", CLOSE)
    doubles.digest()
    assert doubles.active() == {older, other}
    assert doubles.merges() == [(newer, older)]
    assert doubles.pairs() == []


@pytest.mark.parametrize("edited", [0, 1])
def test_a_memory_that_is_edited_meanwhile_is_not_merged_by_what_it_said(doubles, edited, monkeypatch):
    both = [doubles.write(ONE), doubles.write(SAME, CLOSE)]
    doubles.embed()
    items = doubles.claim(Stage.DEDUP)
    complete = work.complete

    def edit_first(db, claimed, owner):
        seq = doubles.get(both[edited]).seq
        db.execute("UPDATE memory SET content = 'The build is gone.', content_hash = 'x' WHERE seq = ?", (seq,))
        return complete(db, claimed, owner)

    monkeypatch.setattr(work, "complete", edit_first)
    doubles.stage.run(items, "test")
    assert doubles.active() == set(both)
    assert (doubles.pairs(), doubles.merges()) == ([], [])


def test_a_text_is_not_judged_by_the_vectors_of_the_one_before(doubles):
    older, newer = doubles.write(ONE), doubles.write("We celebrate birthdays with cake.", FAR)
    doubles.digest()
    revise.edit(doubles.database, older, Revision(content="We celebrate birthdays with cake and tea."))
    doubles.encoder.point("We celebrate birthdays with cake and tea.", FAR)
    third = doubles.write(SAME)
    with doubles.database.write() as db:
        late = work.claim(db, Stage.EMBED, "test", limit=10, lease_s=1e9, now=1e10)
        old = [item for item in late if item.seq == doubles.get(older).seq]
        work.release(db, old, "test")
    doubles.embedding.run([item for item in late if item not in old], "test")
    for item in doubles.claim(Stage.DEDUP):
        doubles.stage.run([item], "test")
    assert doubles.pairs() == []
    doubles.digest()
    assert [(first, second) for first, second, _ in doubles.pairs()] == [(older, newer)]
    assert third in doubles.active()


def test_what_is_purged_meanwhile_is_gone(doubles):
    older, newer = doubles.write(ONE), doubles.write(SAME, CLOSE)
    doubles.embed()
    items = doubles.claim(Stage.DEDUP)
    revise.purge(doubles.database, older)
    doubles.stage.run(items, "test")
    assert doubles.active() == {newer}


def test_a_double_that_a_person_vouches_for_makes_evidence_trusted(doubles):
    evidence = doubles.write(ONE, source=Source.IMPORT)
    doubles.write(SAME, CLOSE, source=Source.AGENT)
    doubles.digest()
    assert doubles.get(evidence).trust is Trust.EVIDENCE
    doubles.write(THIRD)
    doubles.digest()
    assert doubles.get(evidence).trust is Trust.TRUSTED


def test_what_a_person_derived_from_evidence_makes_no_evidence_trusted(doubles):
    evidence = doubles.write(ONE, source=Source.IMPORT)
    doubles.write(SAME, CLOSE, edges=(EdgeDraft(EdgeKind.DERIVED_FROM, evidence),))
    doubles.digest()
    assert doubles.get(evidence).trust is Trust.EVIDENCE
    assert doubles.get(evidence).merge_count == 1


def test_an_import_that_a_person_confirmed_confirms_what_it_goes_into(doubles):
    older, newer = doubles.write(ONE, source=Source.IMPORT), doubles.write(SAME, CLOSE, source=Source.IMPORT)
    revise.edit(doubles.database, newer, Revision(trust=Trust.TRUSTED))
    doubles.digest()
    assert doubles.get(older).trust is Trust.TRUSTED


def test_every_memory_is_done_even_one_without_vectors(doubles):
    memory_id = doubles.write(ONE)
    with doubles.database.write() as db:
        work.drop(db, doubles.get(memory_id).seq)
        work.add(db, memories.all_seqs(db), [Stage.DEDUP], 0.0)
    doubles.digest()
    with doubles.database.read() as db:
        assert work.count_pending(db)[Stage.DEDUP] == 0
