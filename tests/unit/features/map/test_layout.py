"""The map: what belongs together stands together, stays where it was, and holds nothing that is gone."""

from contextlib import contextmanager
from functools import cache
from itertools import combinations, count

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.features.entities import store as entities
from pipeline.features.map import job as module, placement, store as maps
from pipeline.features.map.graph import OWN_TIES, build_graph, measure_change, number_communities
from pipeline.features.map.job import layout
from pipeline.features.map.placement import push_apart, separate_discs
from pipeline.features.map.store import NO_COMMUNITY
from pipeline.kernel.records import EntityKind
from pipeline.write.revise import archive, purge
from tests.fakes.atlas import note
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import Killed, after, job_run_on
from tests.fakes.properties import examples

DAY = 400
# Four groups of names; those of a group are mentioned together.
GROUPS = {letter: [f"{letter}{number}" for number in range(8)] for letter in "abcd"}


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def fill(database, groups="abcd", rounds=10, first_day=0):
    """Mention two or three of a group in each memory, and now and then a name that everybody mentions."""
    chance = np.random.default_rng(3)
    ids = []
    for number in range(rounds):
        for letter in groups:
            for start in range(4):
                named = [GROUPS[letter][int(at)] for at in chance.permutation(8)[: 2 + start % 2]]
                named += ["everywhere"] if start == 0 else []
                ids.append(note(database, first_day + number + start / 10, named))
    return ids


def list_drawn(database):
    """What is shown: name → place."""
    with database.read() as db:
        names = dict(db.execute("SELECT seq, name FROM entity").fetchall())
        return {names[place.entity_seq]: place for place in maps.list_positions(db)}


def rows(database):
    """Every row of every drawing, and which of them is shown."""
    with database.read() as db:
        places = (
            "SELECT drawing, entity_seq, x, y, radius, community, centrality, mentions FROM entity_place ORDER BY 1, 2"
        )
        ties = "SELECT drawing, rank, low, high, memories FROM map_tie ORDER BY 1, 2"
        return db.execute(places).fetchall(), db.execute(ties).fetchall(), maps.get_shown_drawing(db)


def run(database, day=DAY, **options):
    return layout(job_run_on(database, day, **options))


def test_entities_mentioned_together_are_placed_together(database):
    fill(database)
    report = run(database)
    assert (report.counts["entities"], report.counts["redrawn"], report.more) == (33, 1, False)
    places = list_drawn(database)
    numbers = {letter: {places[name].community for name in names} for letter, names in GROUPS.items()}
    assert all(len(found) == 1 for found in numbers.values())
    assert len(set.union(*numbers.values())) == 4

    def away(one, other):
        return np.hypot(places[one].x - places[other].x, places[one].y - places[other].y)

    widest = max(away(*pair) for names in GROUPS.values() for pair in combinations(names, 2))
    nearest = min(away(one, other) for a, b in combinations("abcd", 2) for one in GROUPS[a] for other in GROUPS[b])
    assert nearest > 0
    centres = [np.mean([[places[n].x, places[n].y] for n in names], axis=0) for names in GROUPS.values()]
    assert min(np.hypot(*(one - other)) for one, other in combinations(centres, 2)) > widest / 2


def test_nothing_covers_anything_else(database):
    fill(database)
    run(database)
    places = list(list_drawn(database).values())
    for one, other in combinations(places, 2):
        assert np.hypot(one.x - other.x, one.y - other.y) > one.radius + other.radius


def test_frequently_mentioned_entity_is_tied_weakly(database):
    fill(database)
    run(database)
    with database.read() as db:
        names = dict(db.execute("SELECT seq, name FROM entity").fetchall())
        found = db.execute("SELECT low, high, rank FROM map_tie").fetchall()
    hub = [rank for low, high, rank in found if "everywhere" in (names[low], names[high])]
    others = [rank for low, high, rank in found if "everywhere" not in (names[low], names[high])]
    assert np.mean(hub) > 1.5 * np.mean(others)


def test_the_same_memories_make_the_same_map():
    made = []
    for _ in range(2):
        with scratch_database() as database:
            fill(database)
            run(database)
            made.append(rows(database))
    assert made[0] == made[1]


def test_a_map_of_which_little_changed_stays(database):
    fill(database)
    run(database)
    before = rows(database)
    assert run(database, DAY + 1).counts["redrawn"] == 0
    assert rows(database) == before


def test_redrawn_map_keeps_places_and_communities(database):
    fill(database)
    run(database)
    before = list_drawn(database)
    fill(database, "ab", rounds=2, first_day=100)
    for number in range(3):
        note(database, 120 + number, ["newcomer", "a0", "a1"])
    assert run(database, DAY + 1).counts["redrawn"] == 1
    now = list_drawn(database)
    assert set(now) == {*before, "newcomer"}
    moved = [np.hypot(now[name].x - place.x, now[name].y - place.y) for name, place in before.items()]
    extent = np.ptp([[place.x, place.y] for place in before.values()], axis=0).max()
    assert np.median(moved) < extent / 20
    assert sum(now[name].community == place.community for name, place in before.items()) >= len(before) - 1
    assert now["newcomer"].community == now["a0"].community


def test_archived_memories_are_removed_from_the_map(database):
    fill(database, "abc")
    gone = [note(database, 50 + number, GROUPS["d"]) for number in range(4)]
    run(database)
    assert set(GROUPS["d"]) <= set(list_drawn(database))
    for memory_id in gone:
        archive(database, memory_id)
    with database.read() as db:
        assert {spot.name for spot in maps.list_spots(db)}.isdisjoint(GROUPS["d"])
        assert {m.name for one in maps.list_communities(db, 50) for m in one.members}.isdisjoint(GROUPS["d"])
    run(database, DAY + 1)
    assert set(list_drawn(database)).isdisjoint(GROUPS["d"])


def test_days_are_not_on_the_map(database):
    fill(database, "ab")
    note(database, 60, ["2026-06-01", "2026-06-02"], EntityKind.DATE)
    run(database)
    assert not any(name.startswith("2026") for name in list_drawn(database))


def test_without_entities_there_is_nothing_to_draw(database):
    assert run(database).counts == {"entities": 0, "ties": 0, "redrawn": 0}
    [memory_id] = [note(database, 1, ["alone"])]
    assert run(database).counts["redrawn"] == 1
    assert list_drawn(database)["alone"].community == NO_COMMUNITY
    archive(database, memory_id)
    assert run(database, DAY + 1).counts == {"entities": 0, "ties": 0, "redrawn": 1}
    assert list_drawn(database) == {}


def test_only_the_most_mentioned_and_the_strongest_ties_are_drawn(database):
    fill(database)
    report = layout(job_run_on(database, DAY), most=20, most_ties=30)
    assert (report.counts["entities"], report.counts["ties"]) == (20, 30)
    assert "everywhere" in list_drawn(database)


@contextmanager
def half_way():
    """A workspace whose map is to be drawn anew."""
    with scratch_database() as database:
        fill(database, "abc")
        run(database)
        fill(database, "d", 6, first_day=50)
        yield database


@pytest.fixture
def short_runs(monkeypatch):
    """Few rounds and small pieces: where things come to stand is of no matter here, only that it is the same place."""
    monkeypatch.setattr(module, "PIECE", 10)
    monkeypatch.setattr(placement, "COLD_ROUNDS", 12)
    monkeypatch.setattr(placement, "WARM_ROUNDS", 8)
    monkeypatch.setattr(placement, "DISC_ROUNDS", 6)


def test_paused_map_run_keeps_the_old_map_and_ends_equal(short_runs):
    with half_way() as finished:
        calls = count()
        run(finished, DAY + 1, pausing=lambda: next(calls) < 0)
        total = next(calls)
        assert total > 20
        for stop in (0, total // 4, total // 2, total - 1):
            with half_way() as database:
                shown = list_drawn(database)
                assert run(database, DAY + 1, pausing=after(stop)).more
                assert list_drawn(database) in (shown, list_drawn(finished))
                assert not run(database, DAY + 1).more
                assert rows(database) == rows(finished), stop


@cache
def undisturbed():
    """Return the rows after a run with the settings of `short_runs` that nothing interrupted."""
    with half_way() as database:
        run(database, DAY + 1)
        return rows(database)


@pytest.mark.parametrize("verb", ["add_positions", "add_ties", "show", "discard"])
@pytest.mark.parametrize("fatal", [1, 3])
def test_a_killed_run_comes_to_the_same_end(monkeypatch, short_runs, verb, fatal):
    with half_way() as database:
        calls, act = iter(range(fatal)), getattr(maps, verb)

        def killed(*args):
            result = act(*args)
            if next(calls, None) == fatal - 1:
                raise Killed
            return result

        with monkeypatch.context() as patch:
            patch.setattr(module.maps, verb, killed)
            if verb == "show" and fatal > 1:
                run(database, DAY + 1)
            else:
                with pytest.raises(Killed):
                    run(database, DAY + 1)
        assert not run(database, DAY + 1).more
        assert rows(database) == undisturbed()


def test_purged_entities_are_removed_from_every_map(database):
    fill(database, "ab")
    doomed = note(database, 70, ["secret thing", "a0"])
    run(database)
    with database.read() as db:
        (seq,) = db.execute("SELECT seq FROM entity WHERE name = 'secret thing'").fetchone()
        number = maps.get_shown_drawing(db).number
    with database.write() as db:
        # A drawing that is just being made holds it too.
        db.execute("INSERT INTO entity_place SELECT entity_seq, ?, x, y, 1, 1, 1, 1 FROM entity_place", (number + 1,))
        db.execute("INSERT INTO map_tie SELECT ?, rank, low, high, memories FROM map_tie", (number + 1,))
    purge(database, doomed)
    with database.read() as db:
        assert db.execute("SELECT count(*) FROM entity_place WHERE entity_seq = ?", (seq,)).fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM map_tie WHERE ? IN (low, high)", (seq,)).fetchone() == (0,)


@pytest.mark.files
def test_purge_during_a_map_run_is_detected(database, monkeypatch):
    fill(database, "ab")
    doomed = note(database, 70, ["secret thing", "a0"])
    add_ties = maps.add_ties

    def purged_meanwhile(*args):
        add_ties(*args)
        monkeypatch.undo()
        args[0].execute("COMMIT")
        args[0].execute("BEGIN IMMEDIATE")
        entities.unlink(args[0], args[0].execute("SELECT seq FROM memory WHERE id = ?", (doomed,)).fetchone()[0])
        module.changes.append(args[0], module.changes.PURGE, [doomed])

    monkeypatch.setattr(module.maps, "add_ties", purged_meanwhile)
    assert run(database).more
    assert list_drawn(database) == {}
    assert not run(database).more
    assert "secret thing" not in list_drawn(database)


def test_a_row_number_that_is_given_out_again_brings_no_place_along(database):
    note(database, 1, ["first"])
    with database.read() as db:
        [(seq, old)] = db.execute("SELECT seq, id FROM entity").fetchall()
    with database.write() as db:
        entities.unlink(db, 1)
    note(database, 2, ["second"])
    with database.write() as db:
        assert db.execute("SELECT seq FROM entity WHERE name = 'second'").fetchone() == (seq,)
        maps.add_positions(db, 1, [(old, maps.MapPosition(seq, 0.0, 0.0, 3.0, 0, 1.0, 1))])
        maps.show(db, 1, "2026-06-01T00:00:00.000Z")
        assert maps.list_positions(db) == []


pairs = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=120, unique=True)


@given(pairs, st.integers(1, 12), st.integers(1, 40))
def test_a_graph_keeps_within_its_bounds(mentions, most, most_ties):
    table = np.array(sorted(mentions), np.int64)
    graph = build_graph(table[:, 0], table[:, 1], most, most_ties)
    counts = {entity: (table[:, 1] == entity).sum() for entity in table[:, 1].tolist()}
    assert graph.size == min(most, len(counts))
    left_out = set(counts) - set(graph.seqs.tolist())
    assert all(counts[gone] <= graph.mentions.min() for gone in left_out)
    assert len(graph.low) <= most_ties
    assert (graph.low < graph.high).all()
    assert (graph.weight > 0).all()
    assert (np.diff(graph.weight) <= 0).all()
    assert len({*zip(graph.low.tolist(), graph.high.tolist(), strict=True)}) == len(graph.low)
    together = [
        len(set(table[table[:, 1] == graph.seqs[a], 0]) & set(table[table[:, 1] == graph.seqs[b], 0]))
        for a, b in zip(graph.low, graph.high, strict=True)
    ]
    assert graph.memories.tolist() == together


def test_every_entity_keeps_its_strongest_ties_beyond_the_limit():
    memory, entity = [], []
    # A knot of twenty that are always mentioned together, and a chain of pairs that meet once among many.
    for number in range(40):
        memory += [number] * 20
        entity += list(range(20))
    for link in range(40):
        for number in (100 + 3 * link, 101 + 3 * link, 102 + 3 * link):
            memory += [number] * 2
            entity += [20 + link, 21 + link] if number % 3 == 1 else [20 + link, 200 + number]
    order = np.lexsort((entity, memory))
    graph = build_graph(np.array(memory)[order], np.array(entity)[order], 1000, 60 + 20 * OWN_TIES)
    assert len(graph.low) <= 60 + 20 * OWN_TIES
    assert set(np.concatenate((graph.low, graph.high)).tolist()) == set(range(graph.size))


def test_map_change_is_measured_as_the_larger_share():
    empty = build_graph(np.empty(0, np.int64), np.empty(0, np.int64), 10, 10)
    assert measure_change(empty, np.empty(0, np.int64), []) == 0
    assert measure_change(empty, np.array([4]), []) == 1
    graph = build_graph(np.array([1, 1, 2, 2, 3]), np.array([5, 6, 5, 6, 7]), 10, 10)
    assert measure_change(graph, np.array([5, 6, 7]), [(5, 6)]) == 0
    assert measure_change(graph, np.array([5, 6, 7]), [(5, 7)]) == 1
    assert measure_change(graph, np.array([5, 6]), [(5, 6)]) == pytest.approx(1 / 3)


partitions = st.lists(st.integers(-1, 6), min_size=1, max_size=40)


@given(partitions, st.data())
def test_every_community_has_a_distinct_number(before, data):
    places = data.draw(st.permutations(range(len(before))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(before)), max_size=5)))
    groups = [sorted(group.tolist()) for group in np.split(np.array(places), cuts) if len(group)]
    found = number_communities(groups, np.array(before))
    assert len(set(found)) == len(groups)
    assert min(found) >= 0
    for number, group in zip(found, groups, strict=True):
        shared = sum(before[place] == number for place in group)
        assert shared == 0 or 3 * shared >= min(before.count(number), len(group))


@given(partitions, st.randoms())
def test_communities_that_stay_the_same_keep_their_numbers(before, chance):
    numbers = sorted({*before} - {NO_COMMUNITY})
    chance.shuffle(numbers)
    groups = [np.flatnonzero(np.array(before) == number).tolist() for number in numbers]
    assert number_communities(groups, np.array(before)) == numbers


@examples(40)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_discs_part_without_leaving_their_middle(discs, seed):
    chance = np.random.default_rng(seed)
    radius = chance.uniform(1, 20, discs)
    place = chance.normal(0, 10, (discs, 2))
    place[: discs // 2] = place[0]
    parted = separate_discs(place, radius, 3.0, 2000)
    # No two discs overlap; in a crowd, the gap between them may be narrower for longer than so many rounds.
    assert push_apart(parted, radius, 3.0)[1] < 3.0
    assert np.hypot(*(parted.mean(axis=0) - place.mean(axis=0))) < np.sqrt((radius**2).sum()) * 3 + 20
