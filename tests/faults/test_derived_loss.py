"""Indexes are derived: lose or break one while everything runs, and it comes back by itself; recall never fails."""

import contextlib
import os
import secrets
import shutil
import sqlite3

import pytest

from pipeline.index.codes import CodesFile
from pipeline.kernel.errors import IndexUnavailable
from tests.support.stack import Prober, Stack, wait_until

ASKED = "how did we speed up the login page"
MEANT = "Caching the session lookup made signing in three times faster."
FILLER = [f"Note {n}: the nightly export of region {n} took {n + 3} minutes." for n in range(60)]


@pytest.fixture(scope="module")
def module_stack(tmp_path_factory, models):
    # No clock rebuilds a segment here, and no first look at the home finds what is broken: only who reads it.
    with Stack(tmp_path_factory.mktemp("derived") / "home", models, SEGMENT_TAIL_ROWS="20") as stack:
        stack.start("web", "worker", "scheduler")
        with contextlib.closing(stack.client()) as client:
            client.remember(MEANT)
            wait_until("the first look is over", lambda: health_is_over(client))
        yield stack


def health_is_over(client):
    [health] = [job for job in client.call("GET", "/v1/jobs").body["items"] if job["name"] == "health"]
    return health["last_run"] and health["last_run"]["ended_at"]


@pytest.fixture
def stack(module_stack):
    """A running home whose indexes are whole, and its client."""
    with contextlib.closing(module_stack.client()) as client:
        wanted = client.remember(MEANT)
        client.call("POST", "/v1/memories/batch", {"items": [{"content": content} for content in FILLER]})
        module_stack.wait_until_digested(client)
        module_stack.wait_for_encoder()
        wait_until("dense search finds", lambda: finds_by_meaning(client, wanted))
        wait_until("the memory is in a segment", lambda: not in_tail(module_stack, wanted))
        # The web server loads a segment when it is asked: what follows damages one that it holds.
        wait_until("the web server has loaded the segment", lambda: finds_by_word(client, wanted))
        module_stack.wanted = wanted
        module_stack.main = client
        yield module_stack


def finds_by_meaning(client, wanted):
    results = client.recall(f"{ASKED} {'?' * secrets.randbelow(1000)}", k=1, explain=True, min_relevance=0)["results"]
    return results and results[0]["id"] == wanted and "dense" in results[0]["signals"]["channels"]


def finds_by_word(client, wanted):
    # An answer that is still true is remembered; a word of no memory makes it another question.
    answer = client.recall(f"caching session lookup {secrets.token_hex(8)}", k=1, explain=True, min_relevance=0)
    results = answer["results"]
    return (
        answer["channels"]["lexical"]["state"] == "ok"
        and results[0]["id"] == wanted
        and results[0]["signals"]["channels"]["lexical"]["score"] > 0
    )


def ask(file, query, *values):
    with contextlib.closing(sqlite3.connect(file, timeout=10, isolation_level=None)) as db:
        return db.execute(query, values).fetchone()


def in_tail(stack, memory_id):
    query = "SELECT 1 FROM tail JOIN memory USING (seq) WHERE id = ?"
    return ask(stack.workspace / "events.sqlite", query, memory_id)


def segment(stack):
    query = "SELECT value FROM meta WHERE key = 'segment'"
    return stack.workspace / "lexical" / ask(stack.workspace / "events.sqlite", query)[0]


def whole_again(stack):
    """Wait until the web server, and a web server that is started afresh, find by meaning with nothing degraded."""

    def sound():
        return finds_by_meaning(stack.main, stack.wanted) and not stack.main.recall(ASKED)["degraded"]

    stack.wait_until_digested(stack.main)
    wait_until("dense search finds again", sound)
    restart_front(stack)
    wait_until("a new web server finds too", sound)


def restart_front(stack):
    stack.kill("web")
    stack.main.close()
    stack.start("web")
    stack.wait_for_encoder()


def reports(stack, text):
    return any(text in line for line in stack.main.errors())


def data_files(stack):
    return [f for f in (stack.workspace / "vectors.lance").rglob("*") if f.suffix == ".lance" and f.is_file()]


def clear_errors(stack):
    ask(stack.home / "home.sqlite", "DELETE FROM error")


def test_a_deleted_vector_folder_is_filled_again(stack):
    clear_errors(stack)
    with Prober.probing(stack.client(), ASKED):
        shutil.rmtree(stack.workspace / "vectors.lance")
        wait_until("the loss is told", lambda: reports(stack, "vectors: the vectors of"))
        whole_again_without_restart(stack)
    whole_again(stack)


def whole_again_without_restart(stack):
    stack.wait_until_digested(stack.main)
    wait_until("dense search finds again", lambda: finds_by_meaning(stack.main, stack.wanted))


@pytest.mark.parametrize("damage", ["overwritten", "deleted"])
def test_broken_vector_files_are_rebuilt(stack, damage):
    clear_errors(stack)
    with Prober.probing(stack.client(), ASKED):
        for file in data_files(stack):
            spoil(file, damage)
        # What is written meanwhile is not blamed for it.
        late = stack.main.remember(f"The canary deployment of {damage} files went well.")
        wait_until("the damage is told", lambda: reports(stack, "the vector index was damaged"))
        stack.wait_until_digested(stack.main)
        wait_until("new memories are found", lambda: finds_by_word_of(stack.main, f"canary deployment {damage}", late))
        whole_again_without_restart(stack)


def finds_by_word_of(client, query, wanted):
    results = client.recall(query, k=1)["results"]
    return results and results[0]["id"] == wanted


def spoil(file, damage):
    size = file.stat().st_size
    if damage == "cut":
        os.truncate(file, size // 2)
    elif damage == "overwritten":
        file.write_bytes(os.urandom(size))
    else:
        file.unlink()


def test_broken_vector_manifests_are_rebuilt(stack):
    clear_errors(stack)
    with Prober.probing(stack.client(), ASKED):
        for file in (stack.workspace / "vectors.lance").rglob("*.manifest"):
            os.truncate(file, file.stat().st_size // 2)
        # Recall reads the codes; who writes needs the table.
        stack.main.remember("The manifest of the harbour office lists forty containers.")
        wait_until("the damage is told", lambda: reports(stack, "the vector index was damaged"))
        whole_again_without_restart(stack)
    whole_again(stack)


# `tests/unit/index` damages a file in every way.
@pytest.mark.parametrize("damage", ["cut", "deleted"])
def test_broken_codes_are_rebuilt_from_the_vectors(stack, damage):
    [file] = (stack.workspace / "vectors.lance").glob("*.codes")
    whole = sorted(seqs_in(file))
    spoil(file, damage)
    # One that has to read them; the running one holds what it has read.
    restart_front(stack)
    with Prober.probing(stack.client(), ASKED):
        wait_until("the codes are whole again", lambda: file.exists() and sorted(seqs_in(file)) == whole)
        whole_again_without_restart(stack)
    whole_again(stack)


def seqs_in(codes):
    """List the row numbers in a file of codes, none where it cannot be read."""
    dimension = 384
    try:
        return CodesFile(codes, dimension).read(None).latest().seqs.tolist()
    except IndexUnavailable:
        return []


def assert_a_new_front_heals(stack, broken):
    """A web server that has to load the broken segment tells of it, answers meanwhile, and gets another one."""
    restart_front(stack)
    with Prober.probing(stack.client(), ASKED):
        wait_until("lexical search finds again", lambda: finds_by_word(stack.main, stack.wanted))
    assert segment(stack) != broken
    assert reports(stack, "recall.lexical")


def test_truncated_segment_is_rebuilt(stack):
    clear_errors(stack)
    broken = segment(stack)
    with Prober.probing(stack.client(), ASKED):
        for file in broken.iterdir():
            spoil(file, "cut")
        # The running web server has it in memory; it must survive the cut.
        assert finds_by_word(stack.main, stack.wanted)
    assert_a_new_front_heals(stack, broken)


def test_deleted_segment_is_rebuilt(stack):
    clear_errors(stack)
    broken = segment(stack)
    with Prober.probing(stack.client(), ASKED):
        shutil.rmtree(broken)
        assert finds_by_word(stack.main, stack.wanted)
    assert_a_new_front_heals(stack, broken)


def test_everything_derived_is_deleted_at_once(stack):
    with Prober.probing(stack.client(), ASKED):
        shutil.rmtree(stack.workspace / "vectors.lance")
        shutil.rmtree(stack.workspace / "lexical")
    restart_front(stack)
    with Prober.probing(stack.client(), ASKED):
        wait_until("lexical search finds again", lambda: finds_by_word(stack.main, stack.wanted))
        whole_again_without_restart(stack)
