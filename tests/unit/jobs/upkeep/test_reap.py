from pipeline.jobs.upkeep.reap import reap
from pipeline.records import Stage
from pipeline.store import work
from tests.fakes.house import scratch_database


def claim(database, owner, now):
    with database.write() as db:
        return work.claim(db, Stage.EMBED, owner, limit=10, lease_s=1e10, now=now)


def test_only_who_is_gone_loses_the_lease():
    with scratch_database() as database:
        with database.write() as db:
            work.add(db, [1], [Stage.EMBED], 0.0)
        claim(database, "gone", 1.0)
        with database.write() as db:
            work.add(db, [2], [Stage.EMBED], 0.0)
        claim(database, "alive", 1.0)
        assert reap(database, lambda owner: owner == "alive") == [Stage.EMBED]
        assert [item.seq for item in claim(database, "next", 2.0)] == [1]
        assert reap(database, lambda _owner: True) == []


def test_what_kills_its_worker_each_time_is_buried():
    with scratch_database() as database:
        with database.write() as db:
            work.add(db, [1], [Stage.EMBED], 0.0)
        for _ in range(work.MAX_ATTEMPTS):
            assert claim(database, "gone", 1.0)
            reap(database, lambda _owner: False)
        assert claim(database, "gone", 1.0) == []
        with database.read() as db:
            assert work.count_dead(db)[Stage.EMBED] == 1


def test_nothing_that_waits_is_nothing_due():
    with scratch_database() as database:
        assert reap(database, lambda _owner: True) == []
