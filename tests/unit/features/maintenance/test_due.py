"""A look that is skipped would have found nothing: the rule that lets the scheduler leave resting stores alone."""

import time
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from config.paths import HomePaths
from config.process import process_owner
from config.settings import Settings
from pipeline.features.maintenance import schedule_scan
from pipeline.features.maintenance.schedule_scan import DueFinder, list_clocked_jobs
from pipeline.kernel.records import Draft, Stage
from pipeline.kernel.store import changes, runs, work
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.sqlite import SqliteDatabases
from pipeline.kernel.times import utc_text
from pipeline.write.accept import accept
from tests.fakes.in_process import PROFILE, scratch_folder
from tests.fakes.properties import examples

JOBS = list_clocked_jobs(Settings())
NAMES = list(JOBS)


class Home:
    """A home with one workspace, a clock that is turned by hand, and a finder that remembers its looks."""

    def __init__(self, folder):
        self.paths = HomePaths(folder)
        self.paths.ensure()
        self.databases = SqliteDatabases(self.paths, PROFILE)
        self.operations = Operations(HomeFile(self.paths.home), str)
        # Past the moment in which a file's time says nothing.
        self.now = time.time() + 60
        self.database = self.databases.get("alpha", create=True)
        self.finder = self.new_finder()

    def new_finder(self):
        return DueFinder(self.paths, self.databases, self.operations, JOBS, lambda: self.now)

    def close(self):
        self.databases.close()

    def find(self):
        return list(self.finder.find(NAMES))

    def find_anew(self):
        return list(self.new_finder().find(NAMES))


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path / "home")
    yield home
    home.close()


@pytest.fixture
def looks(home, monkeypatch):
    """The workspaces whose stores were looked into, in order."""
    found, get = [], home.databases.get
    monkeypatch.setattr(home.databases, "get", lambda name, **how: found.append(name) or get(name, **how))
    return found


def write(home, number):
    accept(home.database, Draft(f"The port of number {number} is {number}"))


def ask(home, number):
    with home.database.write() as db:
        runs.request(db, NAMES[number % len(NAMES)], utc_text(_moment(home)))


def begin(home, number):
    with home.database.write() as db:
        runs.begin(db, NAMES[number % len(NAMES)], utc_text(_moment(home)), changes.generation(db))


def run(home, number):
    with home.database.write() as db:
        run_id = runs.begin(db, NAMES[number % len(NAMES)], utc_text(_moment(home)), changes.last_written(db))
        runs.end(db, run_id, utc_text(_moment(home)), {}, None if number % 2 else "broken")


def claim(home, number):
    with home.database.write() as db:
        work.claim(db, Stage.EMBED, process_owner(), limit=1 + number % 2, lease_s=number % 90, now=home.now)


def fail(home, number):
    with home.database.write() as db:
        for item in work.claim(db, Stage.ENTITIES, "x:1:1.00", limit=1, lease_s=60, now=home.now):
            work.fail(db, item, "x:1:1.00", "broken", backoff_s=number % 50, now=home.now)


def drop(home, _number):
    with home.database.write() as db:
        for stage in Stage:
            work.complete(db, work.claim(db, stage, "x:1:1.00", limit=99, lease_s=9, now=home.now), "x:1:1.00")


def wait(home, number):
    home.now += number**2


def set_back(home, number):
    home.now -= number


def _moment(home):
    return schedule_scan.datetime.fromtimestamp(home.now, schedule_scan.UTC)


STEPS = st.lists(
    st.tuples(st.sampled_from([write, ask, begin, run, claim, fail, drop, wait, wait, set_back]), st.integers(0, 300)),
    max_size=25,
)


@examples(25)
@given(STEPS)
def test_remembered_due_work_equals_a_fresh_scan(steps):
    with scratch_folder() as folder:
        home = Home(folder / "home")
        for step, number in steps:
            step(home, number)
            assert home.find() == home.find_anew(), step.__name__
        home.close()


def test_a_resting_store_is_looked_into_once(home, looks):
    write(home, 1)
    for _ in range(5):
        home.find()
        home.now += 30
    assert looks == ["alpha"]


def test_a_store_that_was_written_to_is_looked_into_again(home, looks):
    home.find()
    write(home, 1)
    assert home.find()[0].work_waits
    with home.database.write() as db:
        runs.request(db, "arcs", utc_text(_moment(home)))
    assert home.find()[0].unfinished == ["arcs"]
    assert looks == ["alpha"] * 3


def test_work_due_by_the_clock_is_found_without_opening_the_store(home, looks):
    for number in range(len(NAMES)):
        run(home, 2 * number + 1)
        run(home, 2 * number)
    quiet = home.find()[0].jobs
    home.now += 26 * 3600
    assert set(home.find()[0].jobs) > set(quiet)
    assert looks == ["alpha"]


def test_recently_changed_store_file_is_scanned_again(home, looks):
    # A second write in the same moment may leave it the same time and the same size.
    home.now = time.time()
    home.find()
    home.find()
    assert looks == ["alpha"] * 2


def test_whether_an_owner_lives_is_asked_once_a_tick_for_all_workspaces(home, monkeypatch):
    owner = process_owner()
    for name in ("alpha", "beta", "gamma"):
        database = home.databases.get(name, create=True)
        accept(database, Draft("The port is 8123"))
        with database.write() as db:
            work.claim(db, Stage.EMBED, owner, limit=9, lease_s=9000, now=home.now)
            work.complete(db, work.claim(db, Stage.ENTITIES, "x", limit=9, lease_s=9, now=home.now), "x")
    asked, living = [], {owner}
    monkeypatch.setattr(schedule_scan, "is_alive", lambda name: asked.append(name) or name in living)
    assert not any(found.work_waits for found in home.find())
    assert asked == [owner]
    # Nothing was written when it ended.
    living.clear()
    assert all(found.work_waits for found in home.find())


def test_the_next_scheduler_opens_no_store_of_which_nothing_changed(home, looks):
    run(home, 0)
    before = home.find()
    assert not before[0].is_known
    home.finder.keep()
    home.finder = home.new_finder()
    (after,) = home.find()
    assert after == replace(before[0], is_known=True)
    assert looks == ["alpha"]
    write(home, 1)
    assert not home.find()[0].is_known
    assert looks == ["alpha"] * 2


@pytest.mark.parametrize("lost", ["vectors", "lexical"])
def test_lost_index_causes_a_new_scan_by_the_next_scheduler(home, looks, lost):
    place = getattr(home.paths.workspace("alpha"), lost)
    place.mkdir()
    home.find()
    home.finder.keep()
    place.rmdir()
    home.finder = home.new_finder()
    assert not home.find()[0].is_known
    assert looks == ["alpha"] * 2


@pytest.mark.parametrize(
    "kept", ["", "[]", "{", '{"rules": 1}', '{"stores": {"alpha": {}}}', '{"stores": {"alpha": null}, "rules": null}']
)
def test_damaged_due_file_causes_a_new_scan(home, looks, kept):
    home.paths.outlooks.write_text(kept)
    home.finder = home.new_finder()
    assert [found.workspace_id for found in home.find()] == ["alpha"]
    assert looks == ["alpha"]


def test_unsaved_due_times_are_reported(home):
    home.find()
    home.paths.outlooks.mkdir()
    home.finder.keep()
    (error,) = home.operations.errors(workspace=None, limit=5)
    assert "Cannot save the due times" in error.message


def test_changed_schedules_invalidate_saved_due_times(home, looks):
    home.find()
    home.finder.keep()
    settings = Settings(segment_interval_s=7)
    finder = DueFinder(home.paths, home.databases, home.operations, list_clocked_jobs(settings), lambda: home.now)
    assert not next(finder.find(NAMES)).is_known
    assert looks == ["alpha"] * 2


def test_deleted_workspace_is_removed_from_due_times(home):
    home.databases.get("beta", create=True).close()
    assert [found.workspace_id for found in home.find()] == ["alpha", "beta"]
    home.paths.workspace("beta").events.unlink()
    assert [found.workspace_id for found in home.find()] == ["alpha"]
    assert set(home.finder._outlooks) == {"alpha"}
