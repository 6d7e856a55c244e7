"""Memories of a branch go to the repository with its merge, in whichever way it is merged, and are archived without."""

import pytest
from hypothesis import HealthCheck, given, strategies as st

from pipeline.identity.branches import find_side_branch
from pipeline.jobs.branches import follow_branches
from pipeline.jobs.new_head import note_checkout
from pipeline.records import Draft, Kind, Scope, ScopeKind, Source, Viewer
from pipeline.records.write_policy import WritePolicy
from pipeline.store import audit, branches, changes, runs
from pipeline.store.visibility import reaches
from pipeline.write.accept import commit
from pipeline.write.branch_end import ACTOR
from pipeline.write.prepare import prepare
from pipeline.write.revise import restore
from pipeline.write.share import withdraw
from tests.fakes.branched_repository import (
    FEATURE,
    WAYS_TO_MERGE,
    BranchedRepository,
    fast_forward,
    merge_with_a_commit,
    squash,
)
from tests.fakes.in_process import scratch_database, scratch_folder
from tests.fakes.job_runs import job_run_on, read, write
from tests.fakes.properties import examples

pytestmark = pytest.mark.git

TEXT = "The login form posts to /sessions"
OF_FEATURE = Scope(ScopeKind.BRANCH, FEATURE)
AT = "2026-11-01T00:00:00.000Z"


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def repository(tmp_path):
    return BranchedRepository(tmp_path / "project")


def keep(database, folder, content=TEXT, **fields):
    policy = WritePolicy(branch=find_side_branch(folder))
    draft = Draft(content, **{"source": Source.AGENT, "kind": Kind.DECISION, **fields})
    [receipt] = commit(database, [prepare(draft)], policy)
    return receipt.id


def follow(database):
    return follow_branches(job_run_on(database, 1)).counts


def is_of_repository(database, memory_id):
    memory = read(database, memory_id)
    return memory.scope == Scope() and memory.archived_at is None and memory.branch is None


def list_operations(database, memory_id):
    with database.read() as db:
        return [op for (op,) in db.execute("SELECT op FROM change WHERE memory_id = ? ORDER BY seq", (memory_id,))]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["kept", "deleted"])
@pytest.mark.parametrize("looks", [False, True], ids=["not_seen_open", "seen_open"])
@pytest.mark.parametrize("merge", WAYS_TO_MERGE)
def test_a_merge_moves_the_memories_to_the_repository(database, repository, merge, looks, is_deleted):
    repository.start()
    memory_id = keep(database, repository.root)
    assert read(database, memory_id).scope == OF_FEATURE
    repository.work()
    if looks:
        assert "promoted" not in follow(database)
    merge(repository)
    if is_deleted:
        repository.git("branch", "--quiet", "-D", FEATURE)
    assert follow(database)["promoted"] == 1
    assert is_of_repository(database, memory_id)
    # The change is in the change log, from which events and indexes are made, and in the audit trail.
    assert list_operations(database, memory_id) == [changes.CREATE, changes.EDIT]
    with database.read() as db:
        [act] = audit.of(db, memory_id, 9)
    assert (act.action, act.actor) == (audit.AuditAction.SHARE, ACTOR)


def test_several_commits_are_merged_by_a_squash_only_if_all_are(database, repository):
    repository.start()
    memory_id = keep(database, repository.root)
    repository.work(1)
    repository.work(2)
    squash(repository)
    repository.switch(FEATURE)
    repository.work(3)
    follow(database)
    assert not is_of_repository(database, memory_id)
    repository.switch("main")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "-X", "theirs", FEATURE)
    follow(database)
    assert is_of_repository(database, memory_id)


@pytest.mark.parametrize("works", [False, True])
def test_a_branch_that_is_deleted_unmerged_takes_its_memories_to_the_archive(database, repository, works):
    repository.start()
    memory_id = keep(database, repository.root)
    if works:
        repository.work()
    follow(database)
    repository.go_on()
    repository.git("branch", "--quiet", "-D", FEATURE)
    assert follow(database)["archived"] == 1
    memory = read(database, memory_id)
    assert memory.archived_at is not None
    assert memory.scope == OF_FEATURE
    assert list_operations(database, memory_id) == [changes.CREATE, changes.ARCHIVE]


def test_a_new_branch_is_not_merged_although_the_default_branch_contains_it(database, repository):
    repository.start()
    memory_id = keep(database, repository.root)
    assert "promoted" not in follow(database)
    repository.go_on()
    repository.switch(FEATURE)
    # The branch has caught up with the default one, and still no commit of its own.
    repository.git("merge", "--quiet", "--ff-only", "main")
    assert "promoted" not in follow(database)
    assert read(database, memory_id).scope == OF_FEATURE


def test_memories_after_a_merge_wait_for_the_next_one(database, repository):
    repository.start()
    first = keep(database, repository.root)
    repository.work()
    fast_forward(repository)
    follow(database)
    repository.switch(FEATURE)
    second = keep(database, repository.root, "The login form has a second step")
    follow(database)
    assert is_of_repository(database, first)
    assert read(database, second).scope == OF_FEATURE
    repository.work(2)
    follow(database)
    assert read(database, second).scope == OF_FEATURE
    merge_with_a_commit(repository)
    follow(database)
    assert is_of_repository(database, second)


def test_a_worktree_has_its_own_branch_and_is_merged_like_any_other(database, repository, tmp_path):
    tree = tmp_path / "tree"
    repository.git("worktree", "add", "--quiet", "-b", FEATURE, str(tree))
    memory_id = keep(database, tree)
    assert find_side_branch(repository.root) is None
    assert read(database, memory_id).branch == FEATURE
    repository.git("-C", str(tree), "commit", "--quiet", "--allow-empty", "-m", "work")
    (tree / "login.txt").write_text("form\n")
    repository.git("-C", str(tree), "add", "--all")
    repository.git("-C", str(tree), "commit", "--quiet", "-m", "work")
    follow(database)
    repository.git("merge", "--quiet", "--ff-only", FEATURE)
    repository.git("worktree", "remove", str(tree))
    repository.git("branch", "--quiet", "-d", FEATURE)
    follow(database)
    assert is_of_repository(database, memory_id)


def test_memories_follow_a_renamed_branch(database, repository):
    repository.start()
    memory_id = keep(database, repository.root)
    repository.work()
    repository.git("branch", "-m", FEATURE, "feature/sign-in")
    assert follow(database)["renamed"] == 1
    memory = read(database, memory_id)
    assert (memory.scope, memory.branch) == (Scope(ScopeKind.BRANCH, "feature/sign-in"), "feature/sign-in")
    squash(repository, "feature/sign-in")
    follow(database)
    assert is_of_repository(database, memory_id)


def test_a_detached_head_is_no_branch_but_a_rebase_is_on_its_branch(repository):
    repository.start()
    repository.work()
    repository.go_on()
    repository.commit(**{"app.txt": "a conflict\n"})
    repository.switch(FEATURE)
    with pytest.raises(Exception, match="rebase"):
        repository.git("rebase", "--quiet", "main")
    assert find_side_branch(repository.root).name == FEATURE
    repository.git("rebase", "--abort")
    repository.git("checkout", "--quiet", "--detach")
    assert find_side_branch(repository.root) is None


def test_the_default_branch_is_that_of_the_remote_or_configured_or_a_usual_one(tmp_path):
    repository = BranchedRepository(tmp_path / "project", "production")
    assert find_side_branch(repository.root) is None
    repository.start()
    # Nothing says which branch is the default one: nothing is kept for a branch.
    assert find_side_branch(repository.root) is None
    repository.git("config", "init.defaultBranch", "production")
    assert find_side_branch(repository.root).default == "production"
    repository.git("pack-refs", "--all")
    assert find_side_branch(repository.root).default == "production"
    repository.git("config", "--unset", "init.defaultBranch")
    clone = tmp_path / "clone"
    repository.switch("production")
    repository.git("clone", "--quiet", str(repository.root), str(clone))
    repository.git("-C", str(clone), "checkout", "--quiet", "-b", FEATURE)
    assert find_side_branch(clone).default == "production"
    assert find_side_branch(tmp_path) is None


def test_a_merge_into_another_default_branch_is_found(database, tmp_path):
    repository = BranchedRepository(tmp_path / "project", "production")
    repository.git("config", "init.defaultBranch", "production")
    repository.start()
    memory_id = keep(database, repository.root)
    repository.work()
    squash(repository)
    follow(database)
    assert is_of_repository(database, memory_id)


def test_a_promotion_can_be_undone_and_stays_undone(database, repository):
    repository.start()
    memory_id = keep(database, repository.root)
    repository.work()
    fast_forward(repository)
    follow(database)
    withdraw(database, memory_id, is_copy=False)
    assert (read(database, memory_id).scope, read(database, memory_id).branch) == (OF_FEATURE, FEATURE)
    follow(database)
    repository.git("branch", "--quiet", "-d", FEATURE)
    follow(database)
    assert (read(database, memory_id).scope, read(database, memory_id).archived_at) == (OF_FEATURE, None)


def test_an_archived_memory_can_be_restored_and_stays_restored(database, repository):
    repository.start()
    memory_id = keep(database, repository.root)
    repository.go_on()
    repository.git("branch", "--quiet", "-D", FEATURE)
    follow(database)
    restore(database, memory_id)
    follow(database)
    assert read(database, memory_id).archived_at is None


def test_a_memory_with_the_same_text_absorbs_a_promoted_one(database, repository):
    repository.start()
    memory_id = keep(database, repository.root)
    repository.work()
    repository.switch("main")
    known = keep(database, repository.root)
    fast_forward(repository)
    assert follow(database)["promoted"] == 1
    assert is_of_repository(database, known)
    assert read(database, memory_id).archived_at is not None
    # What the repository knows is no memory of the next branch.
    repository.start("feature/next")
    assert keep(database, repository.root) == known


@pytest.mark.parametrize("state", ["no git", "no repository", "not seen here"])
def test_what_git_cannot_tell_changes_nothing(database, repository, monkeypatch, state):
    if state == "not seen here":
        memory_id = write(database, 0, TEXT, scope=OF_FEATURE)
    else:
        repository.start()
        memory_id = keep(database, repository.root)
        repository.work()
        fast_forward(repository)
        if state == "no git":
            monkeypatch.setattr("shutil.which", lambda _name: None)
        else:
            repository.root.rename(repository.root.parent / "moved")
    follow(database)
    memory = read(database, memory_id)
    assert (memory.scope, memory.archived_at) == (OF_FEATURE, None)


def test_a_new_commit_requests_the_job_only_if_a_branch_has_memories(database, repository):
    def request():
        with database.write() as db:
            note_checkout(db, str(repository.root), AT)
            return branches.JOB in runs.list_requested(db)

    assert not request()
    repository.start()
    repository.work()
    assert not request()
    keep(database, repository.root)
    with database.read() as db:
        assert branches.JOB in runs.list_requested(db)
    with database.write() as db:
        runs.end(db, runs.begin(db, branches.JOB, AT, 0), AT, {}, None)
    assert not request()
    repository.work(2)
    assert request()


def test_a_run_that_pauses_says_that_more_is_left(database, repository):
    repository.start()
    keep(database, repository.root)
    assert follow_branches(job_run_on(database, 1, pausing=lambda: True)).more


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ({"source": Source.AGENT, "kind": Kind.FACT}, True),
        ({"source": Source.AGENT, "kind": Kind.DECISION}, True),
        ({"source": Source.AMBIENT, "kind": Kind.ACTIVITY}, True),
        ({"source": Source.USER, "kind": Kind.FACT}, True),
        ({"source": Source.USER, "kind": Kind.DECISION}, False),
        ({"source": Source.USER, "kind": Kind.LESSON, "details": {"rule": TEXT}}, False),
        ({"source": Source.AMBIENT, "kind": Kind.DECISION, "tags": ("said",)}, False),
        ({"source": Source.AMBIENT, "kind": Kind.LESSON, "details": {"rule": TEXT}, "tags": ("said",)}, False),
        ({"source": Source.IMPORT, "kind": Kind.FACT}, False),
        ({"scope": Scope(ScopeKind.SESSION, "s1")}, False),
        ({"branch": "another"}, False),
        ({"branch": FEATURE}, True),
    ],
)
def test_decisions_and_corrections_of_a_user_are_of_the_repository_at_once(database, repository, fields, is_kept):
    repository.start()
    memory_id = keep(
        database, repository.root, "Sessions are kept in Redis because the web servers share them", **fields
    )
    assert (read(database, memory_id).scope == OF_FEATURE) is is_kept


def test_a_keyed_fact_is_of_the_repository(database, repository):
    repository.start()
    details = {"subject": "login", "attribute": "port", "value": "8123"}
    memory_id = keep(database, repository.root, "-", kind=Kind.KEYED_FACT, details=details)
    assert read(database, memory_id).scope == Scope()


def test_a_session_is_on_the_branch_of_its_last_prompt(database, repository):
    policy = WritePolicy(follows_sessions=True)
    repository.start()
    written = []
    for name in (FEATURE, "main"):
        repository.switch(name)
        with database.write() as db:
            branches.note_session(db, "s1", find_side_branch(repository.root))
        draft = Draft(f"A fact that was learned on {name}", source=Source.AGENT, session_id="s1", importance=0.7)
        written.append(commit(database, [prepare(draft)], policy)[0].id)
        [other] = commit(database, [prepare(Draft(f"Without a session, {name}", source=Source.USER))], policy)
        assert read(database, other.id).scope == Scope()
    assert [read(database, memory_id).scope for memory_id in written] == [OF_FEATURE, Scope()]


NAMES = st.sampled_from(["feature/a", "feature/b", "fix"])


@given(st.lists(st.tuples(NAMES, st.sampled_from(["work", "merge", "squash", "delete", "look"])), max_size=7))
@examples(12, suppress_health_check=list(HealthCheck))
def test_what_git_has_of_a_branch_decides_about_its_memories(steps):
    """A branch is open, merged or deleted: a model that knows nothing of git's graph agrees with the job."""
    with scratch_database() as database, scratch_folder() as folder:
        repository = BranchedRepository(folder / "project")
        ids, works, merged, deleted = {}, {}, set(), set()
        for number, (name, step) in enumerate(steps):
            if name in merged or name in deleted:
                continue
            if name not in ids:
                repository.switch("main")
                repository.start(name)
                ids[name], works[name] = keep(database, repository.root, f"A fact about {name}"), False
            repository.switch(name)
            if step == "work":
                repository.commit(**{f"{name}/{number}.txt": f"{number}\n"})
                works[name] = True
            elif step in ("merge", "squash") and works[name]:
                repository.go_on(number)
                repository.git("merge", "--quiet", *(["--no-ff", "-m", "m"] if step == "merge" else ["--squash"]), name)
                if step == "squash":
                    repository.git("commit", "--quiet", "-m", "squashed")
                merged.add(name)
            elif step == "delete":
                repository.switch("main")
                repository.git("branch", "--quiet", "-D", name)
                deleted.add(name)
            else:
                follow(database)
        follow(database)
        again = follow(database)
        assert not {"promoted", "archived"} & set(again)
        for name, memory_id in ids.items():
            memory = read(database, memory_id)
            assert (memory.archived_at is not None) == (name in deleted)
            assert reaches(memory.scope, Viewer()) == (name in merged)
            assert name in merged or reaches(memory.scope, Viewer(branch=name))
