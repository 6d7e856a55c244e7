"""A repository with branches, and the ways in which a branch gets into the default one."""

from pathlib import Path

from tests.fakes.cited_repository import Repository

FEATURE = "feature/login"


class BranchedRepository(Repository):
    """A repository with one commit on its default branch."""

    def __init__(self, root: Path, default: str = "main") -> None:
        root.mkdir(parents=True, exist_ok=True)
        super().__init__(root)
        self.default = default
        self.git("symbolic-ref", "HEAD", f"refs/heads/{default}")
        self.commit(**{"app.txt": "one\ntwo\nthree\n"})

    def start(self, name: str = FEATURE) -> None:
        self.git("checkout", "--quiet", "-b", name)

    def switch(self, name: str) -> None:
        self.git("checkout", "--quiet", name)

    def work(self, number: int = 1) -> None:
        """Commit to a file of the branch, and to one of the default branch."""
        self.commit(**{f"login{number}.txt": f"form {number}\n", "app.txt": f"one\nlogin {number}\nthree\n"})

    def go_on(self, number: int = 1) -> None:
        """Commit to the default branch."""
        self.switch(self.default)
        self.commit(**{f"other{number}.txt": "something else\n"})


def merge_with_a_commit(repository: BranchedRepository, name: str = FEATURE) -> None:
    repository.go_on()
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", name)


def fast_forward(repository: BranchedRepository, name: str = FEATURE) -> None:
    repository.switch(repository.default)
    repository.git("merge", "--quiet", "--ff-only", name)


def squash(repository: BranchedRepository, name: str = FEATURE) -> None:
    repository.go_on()
    repository.git("merge", "--quiet", "--squash", name)
    repository.git("commit", "--quiet", "-m", "squashed")


def squash_and_change_again(repository: BranchedRepository, name: str = FEATURE) -> None:
    squash(repository, name)
    repository.commit(**{"app.txt": "one\nsomething later\nthree\n"})


def rebase(repository: BranchedRepository, name: str = FEATURE) -> None:
    repository.go_on()
    repository.switch(name)
    repository.git("rebase", "--quiet", repository.default)
    fast_forward(repository, name)


def copy_commits(repository: BranchedRepository, name: str = FEATURE) -> None:
    """Rebase and merge as a code host does: the branch keeps its commits, the default branch gets copies."""
    repository.go_on()
    repository.git("cherry-pick", f"{repository.default}..{name}")
    repository.commit(**{"app.txt": "one\nsomething later\nthree\n"})


def merge_on_a_code_host(repository: BranchedRepository, name: str = FEATURE) -> None:
    """Squash on a remote, and fetch: the default branch here is behind."""
    remote = repository.root.parent / "remote"
    # Its default branch is the one that is checked out here.
    repository.switch(repository.default)
    repository.git("clone", "--quiet", "--bare", str(repository.root), str(remote))
    repository.git("remote", "add", "origin", str(remote))
    repository.git("fetch", "--quiet", "origin")
    behind = repository.git("rev-parse", repository.default)
    squash(repository, name)
    repository.git("push", "--quiet", "origin", f"{repository.default}:{repository.default}", f":{name}")
    repository.git("reset", "--quiet", "--hard", behind)
    repository.git("fetch", "--quiet", "--prune", "origin")


WAYS_TO_MERGE = (
    merge_with_a_commit,
    fast_forward,
    squash,
    squash_and_change_again,
    rebase,
    copy_commits,
    merge_on_a_code_host,
)
