"""What is read of a repository's commits, what is left out, and how git is kept from doing anything else."""

import os
import shutil
import subprocess

import pytest

from pipeline.features.ingest import git as module
from pipeline.features.ingest.fields import Item, Skipped, Unchanged
from pipeline.features.ingest.git import MAX_PIECE_BYTES, read_git
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git import git as git_module
from pipeline.kernel.records import MAX_CONTENT_CHARS, Kind, Source
from pipeline.write.prepare import prepare

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


class Repository:
    """A repository on disk, by the git of this machine."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        self.run("init", "-q", "-b", "main")
        self.clock = 1_750_000_000

    def run(self, *arguments, stdin=None, **environment):
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments],
            input=stdin,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder.parent), **environment},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def commit(self, message, files=("app.py",), *, author="Ada Byron <ada@example.org>", date=None, encoding=None):
        self.clock += 60
        for name in files:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{self.clock}\n")
        self.run("add", "-A")
        name, _, address = author.partition(" <")
        raw = message if isinstance(message, bytes) else message.encode()
        when = date or f"@{self.clock} +0200"
        self.run(
            *(() if encoding is None else ("-c", f"i18n.commitEncoding={encoding}")),
            *("commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-F", "-"),
            stdin=raw,
            GIT_AUTHOR_NAME=name,
            GIT_AUTHOR_EMAIL=address.rstrip(">"),
            GIT_AUTHOR_DATE=when,
            GIT_COMMITTER_NAME="C",
            GIT_COMMITTER_EMAIL="c@example.org",
            GIT_COMMITTER_DATE=f"@{self.clock} +0000",
        )
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repo")


def read(repository, known=None, **options):
    return list(read_git(repository.folder, known or {}, lambda _done, _total: None, **options))


def only(repository):
    [reading] = read(repository)
    return reading


def test_commit_memory_contains_subject_body_and_files(repository):
    body = "Local wall-clock times moved by an hour\nin March; slots are kept in UTC now."
    sha = repository.commit(
        f"fix(clock): build the slot table in UTC\n\n{body}\n\nSigned-off-by: Ada <a@b.c>\nCo-authored-by: Bob <b@c.d>",
        ("internal/clock.py", "docs/clock.md"),
    )
    item = only(repository)
    assert (item.key, item.digest) == (sha, f"{module.VERSION}:{sha}")
    [draft] = item.drafts
    assert draft.content == (
        f"fix(clock): build the slot table in UTC\n\n{body}\n\ncommit {sha[:10]}: docs/clock.md, internal/clock.py"
    )
    assert (draft.kind, draft.source, draft.tags) == (Kind.MILESTONE, Source.IMPORT, ("git", "fix"))
    assert draft.occurred_at == "2025-06-15T15:07:40.000Z"
    assert draft.metadata == {"commit": sha, "files": 2}
    assert "Ada" not in draft.content
    prepare(draft)


def test_commits_are_read_newest_first_within_limit_and_since(repository):
    shas = [repository.commit(f"Step {n} towards the lock") for n in range(4)]
    assert [one.key for one in read(repository)] == shas[::-1]
    assert [one.key for one in read(repository, limit=2)] == shas[:1:-1]
    assert [one.key for one in read(repository, since="2025-06-15T15:09:30Z")] == shas[:1:-1]


def test_known_commit_is_reported_unchanged(repository):
    first, second = repository.commit("Open the gate"), repository.commit("Close the gate")
    known = {first: f"{module.VERSION}:{first}"}
    assert read(repository, known)[1] == Unchanged(first)
    assert isinstance(read(repository, known)[0], Item)
    assert isinstance(read(repository, {first: f"git-0:{first}"})[1], Item)
    assert second == read(repository)[0].key


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("wip", "unfinished work"),
        ("WIP: half of the gate", "unfinished work"),
        ("fixup! Open the gate", "unfinished work"),
        ("fix", "its message has no information"),
        ("Fix typo.", "its message has no information"),
        ("chore: formatting", "its message has no information"),
        ("Minor changes", "its message has no information"),
        ("...", "its message has no information"),
        ("", "its message has no information"),
        ("Initial commit", "its message has no information"),
        ("v1.2.3", "only a version number"),
        ("chore(release): 2.0.0-rc.1", "only a version number"),
        ("Bump version from 1.2 to 1.3", "only a version number"),
        ("Merge branch 'main' of example.org:x/y", "a merge"),
    ],
)
def test_a_commit_that_says_nothing_is_left_out(repository, message, reason):
    sha = repository.commit(message)
    assert only(repository) == Skipped(sha, reason)


@pytest.mark.parametrize(
    "message",
    [
        "Fix the gate",
        "Reject empty keys",
        "Bump redis to 5.0 because 4.6 loses messages",
        "v2.0\n\nThe gate opens.",
        "修复时区",
    ],
)
def test_a_commit_that_says_something_is_kept(repository, message):
    repository.commit(message)
    assert isinstance(only(repository), Item)


@pytest.mark.parametrize(
    "author", ["dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>", "renovate <bot@renovateapp.com>"]
)
def test_bot_commits_are_skipped(repository, author):
    sha = repository.commit("Bump lodash\n\nBumps lodash because of reasons.", author=author)
    assert only(repository) == Skipped(sha, "written by a bot")


def test_merges_are_passed_over(repository):
    repository.commit("Open the gate")
    repository.run("checkout", "-q", "-b", "side")
    repository.commit("Paint the gate", ("paint.py",))
    repository.run("checkout", "-q", "main")
    repository.commit("Close the gate", ("close.py",))
    identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    repository.run("merge", "-q", "--no-ff", "-m", "Bring the paint in because it is dry", "side", **identity)
    assert {one.drafts[0].content.split("\n")[0] for one in read(repository)} == {
        "Open the gate",
        "Paint the gate",
        "Close the gate",
    }


def test_many_files_are_summarized_by_folder(repository):
    files = [f"internal/clock/{n}.py" for n in range(20)] + [f"docs/{n}.md" for n in range(3)] + ["a.py"]
    repository.commit("Move the clock", files)
    assert only(repository).drafts[0].content.endswith(": 24 files, in internal/clock (20), docs (3), the root (1)")


def test_commit_without_files_is_stored_without_a_file_list(repository):
    first = repository.commit("Trigger the nightly build", ())
    second = repository.commit("Open the gate")
    assert [one.key for one in read(repository)] == [second, first]
    assert read(repository)[1].drafts[0].content.endswith(f"commit {first[:10]}")


def test_a_clone_without_trees_gives_the_messages(repository, tmp_path):
    messages = ["Open the gate", "Move the clock\n\nBecause the tower is being painted.", "Close the gate"]
    commits = [repository.commit(message, [f"{number}.py"]) for number, message in enumerate(messages)]
    repository.run("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    options = ("--filter=tree:0", "--no-checkout")
    repository.run("clone", "-q", *options, repository.folder.as_uri(), str(clone))
    readings = list(read_git(clone, {}, lambda _done, _total: None))
    assert [reading.key for reading in readings] == commits[::-1]
    assert readings[1].drafts[0].content == f"{messages[1]}\n\ncommit {commits[1][:10]}"


def test_unusual_file_names_and_messages_are_read_completely(repository):
    names = ["with space.py", "new\nline.py", "ünïcode.py", "\x02mark.py", "a -> b.py", 'quote".py']
    repository.commit("Name \x02 things\nover two lines\n\nBody with \x02 and = signs", names)
    content = only(repository).drafts[0].content
    assert content.startswith("Name  things over two lines\n\nBody with")
    assert "with space.py" in content
    assert "ünïcode.py" in content
    assert len(read(repository)) == 1


def test_other_encodings_come_as_text(repository):
    repository.commit("Öffne die Schleuse".encode("latin-1"), encoding="ISO-8859-1")
    tree, parent = repository.run("rev-parse", "HEAD^{tree}"), repository.run("rev-parse", "HEAD")
    head = f"tree {tree}\nparent {parent}\nauthor A <a@b> 1750000000 +0000\ncommitter A <a@b> 1750000000 +0000\n\n"
    raw = head.encode() + b"Broken \xff\xfe bytes in the gate"
    sha = repository.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)
    repository.run("reset", "-q", "--hard", sha)
    broken, latin = read(repository)
    assert latin.drafts[0].content.startswith("Öffne die Schleuse")
    assert broken.drafts[0].content.startswith("Broken \N{REPLACEMENT CHARACTER}")


def test_invalid_author_date_is_replaced_by_the_committer_date(repository):
    repository.commit("Open the gate", date="@99999999999999 +0000")
    assert only(repository).drafts[0].occurred_at == "2025-06-15T15:07:40.000Z"


def test_a_long_message_becomes_several_memories(repository):
    paragraphs = "\n\n".join(f"Paragraph {n} says why the gate was built. " * 20 for n in range(40))
    sha = repository.commit(f"Build the gate\n\n{paragraphs}")
    drafts = only(repository).drafts
    assert len(drafts) > 1
    assert all(0 < len(draft.content) <= MAX_CONTENT_CHARS for draft in drafts)
    assert all(f"commit {sha[:10]}" in draft.content for draft in drafts)
    assert all(any(f"Paragraph {n} says" in draft.content for draft in drafts) for n in range(40))


def test_a_monstrous_message_is_left_out(repository):
    sha = repository.commit("Build the gate\n\n" + "x " * MAX_PIECE_BYTES)
    kept = repository.commit("Close the gate")
    assert read(repository)[1] == Skipped(sha, "its message is larger than 1 MiB")
    assert read(repository)[0].key == kept


def test_an_empty_repository_has_nothing_to_read(repository):
    assert read(repository) == []


def test_a_folder_that_is_no_repository_is_refused(tmp_path):
    with pytest.raises(InvalidField, match="path: git: not a git repository"):
        list(read_git(tmp_path, {}, lambda _done, _total: None))


def test_repository_of_another_user_is_rejected_with_gits_advice(repository, monkeypatch):
    repository.commit("Open the gate")
    monkeypatch.setattr(git_module, "_ENVIRONMENT", {**git_module._ENVIRONMENT, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
    with pytest.raises(InvalidField, match=r"dubious ownership.*if you trust it: git config --global"):
        read(repository)


def test_missing_git_is_reported(repository, monkeypatch):
    monkeypatch.setattr(git_module.shutil, "which", lambda _name: None)
    with pytest.raises(InvalidField, match="git is not installed"):
        read(repository)


def test_the_callers_environment_does_not_lead_elsewhere(repository, tmp_path, monkeypatch):
    repository.commit("Open the gate")
    other = Repository(tmp_path / "other")
    other.commit("Somewhere else entirely")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert only(repository).drafts[0].content.startswith("Open the gate")


def test_no_setting_of_a_repository_runs_a_program(repository, tmp_path):
    repository.commit("Open the gate")
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    for setting in ("core.pager", "pager.log", "diff.external", "gpg.program", "core.fsmonitor", "core.sshCommand"):
        repository.run("config", setting, str(program))
    repository.run("config", "log.showSignature", "true")
    repository.run("config", "diff.it.textconv", str(program))
    (repository.folder / ".gitattributes").write_text("* diff=it\n")
    assert len(read(repository)) == 1
    assert not trap.exists()


@pytest.mark.parametrize("setting", ["diff.orderFile", "core.attributesFile", "mailmap.file"])
def test_no_file_is_read_that_a_repository_names(repository, tmp_path, monkeypatch, setting):
    """Whoever opens a pipe waits for ever."""
    repository.commit("Open the gate")
    os.mkfifo(tmp_path / "pipe")
    repository.run("config", setting, str(tmp_path / "pipe"))
    monkeypatch.setattr(git_module, "OUTPUT_S", 20)
    assert len(read(repository)) == 1


def test_a_repository_cannot_block_git_forever(repository, tmp_path, monkeypatch):
    repository.commit("Open the gate")
    os.mkfifo(tmp_path / "pipe")
    with (repository.folder / ".git/config").open("a") as config:
        config.write(f"[include]\n\tpath = {tmp_path}/pipe\n")
    monkeypatch.setattr(git_module, "ANSWER_S", 0.2)
    with pytest.raises(InvalidField, match="no answer within"):
        read(repository)


def test_git_that_stops_in_the_middle_of_its_output_is_ended(repository, tmp_path, monkeypatch):
    repository.commit("Open the gate")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf begun; exec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(git_module.shutil, "which", lambda _name: str(program))
    monkeypatch.setattr(git_module, "OUTPUT_S", 0.2)
    with (
        pytest.raises(InvalidField, match="no answer within"),
        git_module.Git(repository.folder).output("log") as stream,
    ):
        assert stream.read() == b"begun"


def test_abandoned_git_read_stops_the_git_process(repository, monkeypatch):
    for n in range(3):
        repository.commit(f"Step {n} towards the lock")
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(git_module.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])
    readings = read_git(repository.folder, {}, lambda _done, _total: None)
    next(readings)
    readings.close()
    assert all(process.returncode is not None for process in started)


def test_damaged_repository_is_reported(repository):
    first = repository.commit("Open the gate")
    repository.commit("Close the gate")
    (repository.folder / ".git" / "objects" / first[:2] / first[2:]).unlink()
    with pytest.raises(InvalidField, match="path: git:"):
        read(repository)


def test_git_progress_reports_done_and_total_commits(repository):
    for n in range(3):
        repository.commit(f"Step {n} towards the lock")
    told = []
    list(read_git(repository.folder, {}, lambda done, total: told.append((done, total))))
    assert told == [(1, 3), (2, 3), (3, 3)]
