import click
import pytest
import tomlkit
from hypothesis import given, strategies as st

from pipeline.kernel.store import audit
from pipeline.kernel.times import utc_now
from pipeline.write import revise
from tests.fakes.command_line import remember, run, run_json, serve_app
from web.features.review.commands import COMPARED_WORDS, differences
from web.http.client import Client

ONE = "The build runs nightly on the small server."
# Most words are the same, so that hashed words find them near, and one more keeps them apart.
MORE = "The build runs nightly on the small server together."


@pytest.fixture
def server(container, monkeypatch):
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        yield


@pytest.fixture
def pair(server, digested):
    memories = remember(ONE), remember(MORE)
    digested()
    return memories


def test_pairs_are_listed_with_their_differences(pair):
    output = run("review", "duplicates", "--list").stdout
    assert f"older  {pair[0]}" in output
    assert "small server {+together+}." in output
    [found] = run_json("review", "duplicates")["items"]
    assert (found["older"]["id"], found["newer"]["id"]) == pair


def test_a_pair_is_merged(pair):
    done = run("review", "duplicates", stdin="m\n")
    assert done.stderr.endswith("1 merged\n")
    assert run_json("get", pair[0])["archived_at"] is not None
    assert run_json("review", "duplicates")["items"] == []


def test_a_pair_is_kept(pair):
    assert run("review", "duplicates", stdin="k\n").stderr.endswith("1 kept\n")
    assert run_json("get", pair[1])["archived_at"] is None
    assert run_json("review", "duplicates")["items"] == []


@pytest.mark.parametrize(("keys", "code"), [("s\n", 0), ("q\n", 0), ("x\nq\n", 0), ("", 130)])
def test_a_pair_is_left(pair, keys, code):
    run("review", "duplicates", stdin=keys, code=code)
    assert len(run_json("review", "duplicates")["items"]) == 1


def test_pair_settled_during_the_review_does_not_stop_it(pair, container):
    [waiting] = run_json("review", "duplicates")["items"]
    original = Client.request

    def settled_before(self, method, *path_and_body, **options):
        if method == "POST":
            original(self, method, path_and_body[0], {"action": "keep"})
        return original(self, method, *path_and_body, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "request", settled_before)
        done = run("review", "duplicates", stdin="m\n")
    assert "not changed: " in done.stderr
    assert run_json("review", "duplicates")["items"] == []
    assert waiting["id"] in done.stdout


def plain_again(text, begin, end):
    return text.replace(begin, "").replace(end, "")


@given(
    st.lists(st.sampled_from(["a", "b", " ", "\n", ".", "ü"])).map("".join),
    st.lists(st.sampled_from(["a", "b", " ", "\n", ".", "ü"])).map("".join),
)
def test_marks_add_to_the_texts_and_take_nothing(older, newer):
    first, second = (click.unstyle(text) for text in differences(older, newer))
    assert plain_again(first, "[-", "-]") == older
    assert plain_again(second, "{+", "+}") == newer
    if older == newer:
        assert (first, second) == (older, newer)


def test_of_long_texts_only_the_beginning_is_compared():
    first, second = differences("a " * 5 * COMPARED_WORDS + "x", "a " * 5 * COMPARED_WORDS + "y")
    assert first.endswith("a x")
    assert second.endswith("a y")


@pytest.fixture
def candidate(server, container):
    paths = container.settings.paths.workspace("default")
    paths.config.parent.mkdir(parents=True, exist_ok=True)
    paths.config.write_text(tomlkit.dumps({"review": True}))
    return remember("Deploys of the shop wait for the tests", "--source", "ambient")


def test_candidates_are_accepted_or_archived(candidate):
    assert "Deploys of the shop wait" in run("review", "candidates").stdout
    assert run("review", "candidates", "accept", candidate).stdout.startswith(f"accepted {candidate}: Deploys")
    assert run_json("review", "candidates")["items"] == []
    other = remember("Deploys of the bakery wait for the tests", "--source", "ambient")
    assert run("review", "candidates", "reject", other).stdout.startswith(f"rejected {other}")
    assert run("review", "candidates").stderr == "No memory waits for review.\n"
    assert "Error" in run("review", "candidates", "accept", candidate, code=1).stderr


def test_admission_decisions_are_listed_newest_first(candidate):
    first = remember("Tea is in the kitchen")
    remember("Tea is in the kitchen")
    found = run_json("review", "decisions")["items"]
    assert [one["outcome"] for one in found] == ["merged", "candidate"]
    lines = run("review", "decisions").stdout.splitlines()
    assert "merged" in lines[1]
    assert [one["id"] for one in run_json("review", "decisions", "--outcome", "created")["items"]] == [first]
    assert run_json("review", "decisions", "--kind", "lesson")["items"] == []
    assert len(run_json("review", "decisions", "-n", "1")["items"]) == 1
    run("review", "decisions", "--outcome", "lost", code=2)


def archive_by_job(container, memory):
    database = container.databases.get("default")
    revise.archive(database, memory)
    with database.write() as db:
        return audit.add(db, utc_now(), "archive", audit.AuditAction.ARCHIVE, memory)


def test_audit_lists_memories_and_undoes_automatic_changes(server, container, digested):
    memory = remember(ONE, "--session", "s1")
    run("facts", "set", "user", "editor", "vim\x1b[2J", "--scope", "user")
    run("facts", "set", "user", "language", "English")
    remember("Run the migrations first", "--kind", "lesson", "--source", "import")
    act = archive_by_job(container, memory)
    found = run_json("logs", "audit")
    # Facts about the user are not in this workspace but in the personal store.
    assert found["memories"]["by_kind"] == {"lesson": 1}
    assert found["scopes"] == {"workspace": 1}
    assert found["trust"] == {"evidence": 1}
    assert {one["attribute"]: one["value"] for one in found["personal"]}["language"] == "English"
    assert len(found["personal"]) == 2
    assert [one["id"] for one in found["acts"]] == [act]
    output = run("logs", "audit").stdout
    assert "English" in output
    assert found["places"]["memories"] in output
    assert f"archive {memory}" in output

    assert run("logs", "audit", "undo", act).stdout == f"restored {memory}: {ONE}\n"
    assert run_json("get", memory)["archived_at"] is None
    assert run_json("logs", "audit")["acts"] == []
    assert run_json("logs", "audit", "list")["items"][0]["undone_at"] is not None
    assert "Error" in run("logs", "audit", "undo", act, code=1).stderr
    assert act in run("logs", "audit", "list").stdout


def test_jobs_are_listed_and_asked_for(server):
    remember("A workspace is needed")
    names = [line.split()[0] for line in run("jobs").stdout.splitlines()[1:]]
    assert {"snapshot", "health", "decay"} <= set(names)
    [asked] = run_json("jobs", "run", "segment", "--background")
    assert asked["job"] == "segment"
    assert asked["run_id"] in run("jobs", "run", "segment", "--background").stdout
    assert 'There is no job "breakfast"' in run("jobs", "run", "breakfast", code=2).stderr


def test_errors_are_listed(server, container):
    remember("A workspace is needed")
    assert run("logs", "errors").stderr == "No background errors.\n"
    container.operations.record_error("digest.embed", "broken \x1b[2J", workspace="default")
    assert "digest.embed  default    broken [2J" in run("logs", "errors").stdout
    assert run_json("logs", "errors", "-n", "1")["items"][0]["component"] == "digest.embed"
