"""The check job finds what memories cite that is no longer true; recall shows and demotes it."""

import pytest

from pipeline.features.citations import store as broken_citations
from pipeline.features.citations.job import check
from pipeline.kernel.records import Kind, Revision
from pipeline.kernel.store import memories, meta, runs
from pipeline.prompt.ended_turns import note_checkout
from pipeline.recall.annotations import find_annotations
from pipeline.write.revise import edit
from tests.fakes.cited_repository import Repository
from tests.fakes.in_process import scratch_database
from tests.fakes.job_runs import job_run_on, write

pytestmark = pytest.mark.git

AT = "2026-11-01T00:00:00.000Z"


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def repository(tmp_path):
    repository = Repository(tmp_path)
    repository.commit(**{"shop/cart.py": "MAX_ITEMS = 50\n" * 3, "shop/keep.py": ""})
    return repository


def broken(database, memory_id):
    with database.read() as db:
        memory = memories.get(db, memory_id)
        found = find_annotations(db, [memory])
    return found[memory.seq].broken if memory.seq in found else ()


def note(database, repository):
    with database.write() as db:
        note_checkout(db, str(repository.root), AT)
        return runs.list_requested(db)


def test_a_memory_about_a_deleted_file_is_broken_since_its_commit(database, repository):
    stating = write(database, 0, "The cart is in `shop/cart.py`", kind=Kind.DECISION)
    event = write(database, 0, "The cart arrived in `shop/cart.py`", kind=Kind.MILESTONE)
    note(database, repository)
    assert not check(job_run_on(database, 1)).counts["broken"]
    deleted = repository.commit(**{"shop/cart.py": None})
    assert check(job_run_on(database, 1)).counts["broken"] == 1
    assert broken(database, stating) == (f"shop/cart.py: no longer true since {deleted[:10]}",)
    assert broken(database, event) == ()
    repository.git("revert", "--no-edit", "HEAD")
    check(job_run_on(database, 2))
    assert broken(database, stating) == ()


def test_an_edited_memory_is_not_judged_by_its_earlier_text(database, repository):
    memory_id = write(database, 0, "The cart is in `shop/cart.py`", kind=Kind.DECISION)
    note(database, repository)
    repository.commit(**{"shop/cart.py": None})
    check(job_run_on(database, 1))
    assert broken(database, memory_id)
    edit(database, memory_id, Revision(content="The cart is in `shop/keep.py`"))
    assert broken(database, memory_id) == ()


def test_each_new_commit_requests_the_check_once(database, repository):
    assert note(database, repository) == ["check"]
    with database.read() as db:
        assert meta.get(db, meta.SEEN_HEAD) == repository.git("rev-parse", "HEAD")
    check(job_run_on(database, 1))
    with database.write() as db:
        runs.end(db, runs.begin(db, "check", AT, 0), AT, {}, None)
    assert note(database, repository) == []
    repository.commit(**{"shop/more.py": ""})
    assert note(database, repository) == ["check"]


def test_packed_and_detached_heads_are_read(database, repository):
    head = repository.git("rev-parse", "HEAD")
    repository.git("pack-refs", "--all")
    note(database, repository)
    with database.read() as db:
        assert meta.get(db, meta.SEEN_HEAD) == head
    repository.git("checkout", "--quiet", "--detach")
    assert note(database, repository) == ["check"]
    with database.read() as db:
        assert meta.get(db, meta.SEEN_HEAD) == head


def test_a_workspace_without_checkout_is_left_alone(database):
    write(database, 0, "The cart is in `shop/cart.py`", kind=Kind.DECISION)
    assert check(job_run_on(database, 1)).counts == {}


def test_without_git_nothing_is_changed(database, repository, monkeypatch):
    memory_id = write(database, 0, "The cart is in `shop/cart.py`", kind=Kind.DECISION)
    note(database, repository)
    repository.commit(**{"shop/cart.py": None})
    check(job_run_on(database, 1))
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert check(job_run_on(database, 2)).counts == {"skipped": 1}
    assert broken(database, memory_id)


def test_no_text_of_a_memory_is_stored(database, repository):
    write(database, 0, "Carts hold MAX_ITEMS = 50 for the customer Quitzow", kind=Kind.DECISION)
    note(database, repository)
    repository.commit(**{"shop/cart.py": "MAX_ITEMS = 80\n" * 3})
    check(job_run_on(database, 1))
    with database.read() as db:
        stored = meta.get(db, meta.BROKEN_CITATIONS)
        assert "now 80" in stored
        assert "Quitzow" not in stored
        assert len(broken_citations.read_all(db)) == 1
