"""Past one machine, whatever is killed, whenever: what was acknowledged is kept, found, and digested exactly once.

CLUSTER_ROUNDS says how often each part is killed (`make test-cluster ROUNDS=20`).
"""

import contextlib
import http.client
import itertools
import os
import random
import re
import threading
import time
from collections import Counter

import pytest

from config.settings import load_settings
from pipeline.bootstrap.worker import WorkerContainer
from pipeline.kernel.store.work import DIGESTION_STAGES
from tests.faults.conftest import MODEL
from tests.support.cluster import Cluster, list_missing_programs
from tests.support.sentences import make_sentence
from tests.support.stack import Client, wait_until
from tests.support.witness import Witness

ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "1"))
pytestmark = [
    # The first test waits for all rounds.
    pytest.mark.timeout(300 + 120 * ROUNDS),
    pytest.mark.skipif(bool(missing := list_missing_programs()), reason=f"this machine lacks {', '.join(missing)}"),
]

SEED = 20_261
WRITERS = 8
WORKSPACES = ("alpha", "beta")
SAMPLE = 20
LONG_SHARE = 0.05
# What a process says that finds a server gone.
EXPECTED = re.compile(r"StoreUnavailable|StoreBusy|StorageUnreachable|ConnectionError")
# Something between us and a front that answers nothing is taken for no answer.
UNANSWERED = {502, 504}


class Writer(threading.Thread):
    """Write texts, each until it is acknowledged; keep what was acknowledged and what nobody should have said."""

    def __init__(self, number: int, client: Client, stop: threading.Event) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._client, self._halt = client, stop
        self._chance = random.Random(SEED + number)
        self._tokens = (f"w{number}q{n:05d}x7" for n in itertools.count())
        self.workspace = WORKSPACES[number % len(WORKSPACES)]
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.answers: Counter = Counter()
        self.unexpected: list[object] = []

    def run(self) -> None:
        with contextlib.closing(self._client):
            while not self._halt.is_set():
                token = next(self._tokens)
                self._write(token, make_sentence(self._chance, token, LONG_SHARE))
                self._halt.wait(self._chance.uniform(0.1, 0.6))

    def _write(self, token: str, content: str) -> None:
        while not self._halt.is_set():
            try:
                reply = self._client.call("POST", "/v1/memories", {"content": content})
            except (OSError, http.client.HTTPException):
                self.answers["none"] += 1
            else:
                self.answers[reply.status] += 1
                if reply.status == 201:
                    self.acknowledged[reply.body["id"]] = token, content
                    return
                if reply.status not in UNANSWERED and not (reply.status == 503 and "Retry-After" in reply.headers):
                    self.unexpected.append(reply)
                    return
            self._halt.wait(0.1)


def kill_in_rounds(cluster: Cluster) -> Counter:
    """Kill every part once a round, at random moments of busy writing; start each again soon after."""
    chance, pause, killed = random.Random(SEED), threading.Event(), Counter()
    kinds = sorted({name.partition("-")[0] for name in cluster.parts})
    for _ in range(ROUNDS):
        for kind in chance.sample(kinds, len(kinds)):
            name = chance.choice([name for name in cluster.parts if name.partition("-")[0] == kind])
            pause.wait(chance.uniform(0.1, 1.2))
            cluster.parts[name].kill()
            killed[kind] += 1
            # What is back before anybody has missed it proves little.
            pause.wait(chance.uniform(0.0, 1.0))
            cluster.parts[name].start()
    return killed


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory, models):
    """A cluster after all rounds, with everything digested, and what the writers know."""
    print(f"seed {SEED}, {ROUNDS} rounds")
    with Cluster(tmp_path_factory.mktemp("cluster"), models, schedulers=2, SEGMENT_TAIL_ROWS="300") as cluster:
        cluster.start()
        for workspace in WORKSPACES:
            with contextlib.closing(cluster.client(workspace)) as client:
                client.remember("Something to begin with.")
        witness = Witness(cluster.postgres)
        witness.watch()
        began, stop = time.monotonic(), threading.Event()
        writers = [Writer(n, cluster.client(WORKSPACES[n % len(WORKSPACES)]), stop) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        killed = kill_in_rounds(cluster)
        cluster.wait_for_fronts()
        stop.set()
        for writer in writers:
            writer.join(60)
        took, answers = time.monotonic() - began, sum((writer.answers for writer in writers), Counter())
        print(f"{took:.0f} s of writing: killed {dict(killed)}, answers {dict(answers)}")
        for front in cluster.list_fronts():
            front.wait_for_encoder()
        wait_until_digested(cluster)
        print(f"digested after {time.monotonic() - began - took:.0f} s more")
        yield cluster, writers, witness


def wait_until_digested(cluster: Cluster) -> None:
    """Wait until nothing is pending anywhere; fail over a dead letter, and when nothing has moved for long."""
    with contextlib.ExitStack() as closing:
        clients = [closing.enter_context(contextlib.closing(cluster.client(name))) for name in WORKSPACES]

        def look() -> list[dict[str, int]]:
            queues = [client.call("GET", "/v1/queue").body for client in clients]
            assert not any(n for queue in queues for n in queue["dead"].values()), queues
            return [{stage: n for stage, n in queue["pending"].items() if n} for queue in queues]

        while any(left := look()):
            try:
                wait_until("something more is digested", lambda: look() != left)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{left} left\n{cluster.read_logs()}") from None


@pytest.fixture(scope="module")
def cluster(aftermath):
    return aftermath[0]


@pytest.fixture(scope="module")
def witness(aftermath):
    return aftermath[2]


@pytest.fixture(scope="module")
def acknowledged(aftermath):
    """What was acknowledged: by workspace and id the word of its own and the text."""
    found = {}
    for writer in aftermath[1]:
        assert writer.unexpected == []
        found |= {(writer.workspace, memory_id): texts for memory_id, texts in writer.acknowledged.items()}
    print(f"{len(found)} acknowledged")
    assert len(found) > 100
    return found


def test_every_acknowledged_memory_is_in_the_store_once(acknowledged, witness):
    rows = witness.rows("SELECT workspace, id, content FROM memory WHERE archived_at IS NULL")
    stored = {(workspace, memory_id): content for workspace, memory_id, content in rows}
    assert [key for key in acknowledged if key not in stored] == []
    assert {key: stored[key] for key in acknowledged} == {key: content for key, (_, content) in acknowledged.items()}
    # A text that was sent again and again is one memory all the same.
    assert [text for text, count in Counter(row[2] for row in rows if ":" in row[2]).items() if count > 1] == []


def test_every_stage_was_done_once_for_each_memory(witness):
    seen = witness.seen()
    begun = {(workspace, seq) for workspace, seq in witness.rows("SELECT workspace, seq FROM memory WHERE seq > 1")}
    wanted = {(workspace, seq, stage) for workspace, seq in begun for stage in DIGESTION_STAGES}
    assert {item: seen.done[item] for item in wanted if seen.done[item] != 1} == {}
    again = sum(1 for count in seen.claimed.values() if count > 1)
    print(f"{len(wanted)} stages, {again} of them claimed again after their holder had gone")


def test_leased_work_is_not_taken_by_another_worker(witness):
    assert witness.seen().stolen == []


def test_nothing_is_left_in_the_work_table(witness):
    assert witness.rows("SELECT * FROM work") == []


def test_every_passage_has_exactly_one_vector(cluster, witness, monkeypatch):
    for name, value in cluster.s3.environment.items():
        monkeypatch.setenv(name, value)
    with contextlib.closing(WorkerContainer(load_settings(cluster.machines["worker-1"].stack.environment))) as worker:
        for workspace in WORKSPACES:
            rows = witness.rows(f"SELECT memory_seq, passages FROM embedding WHERE workspace = '{workspace}'")
            expected, table = dict(rows), worker.vectors(workspace)
            assert max(expected.values()) > 1
            assert Counter(table.vectors(list(expected)).seqs.tolist()) == expected
            assert table.count() == sum(expected.values())
            # And what exact search reads is what the table holds, wherever a writer was killed.
            assert Counter(table.read_codes(None, 10**6).latest().seqs.tolist()) == expected


def test_nothing_was_noted_twice(witness):
    rows = witness.rows("SELECT workspace, action, memory_id, other_id FROM audit WHERE undone_at IS NULL")
    assert [row for row, count in Counter(rows).items() if count > 1] == []


def test_error_log_contains_only_errors_of_killed_processes(cluster):
    lines = set()
    for workspace in WORKSPACES:
        with contextlib.closing(cluster.client(workspace)) as client:
            lines |= {line for line in client.errors() if not EXPECTED.search(line)}
    assert lines == set()


def test_every_memory_is_embedded_once_by_one_model(witness):
    rows = witness.rows(
        "SELECT m.workspace, m.seq, e.model FROM memory m LEFT JOIN embedding e "
        "ON e.workspace = m.workspace AND e.memory_seq = m.seq"
    )
    assert {model for _, _, model in rows} == {MODEL}


def test_every_front_finds_by_words_and_by_meaning(cluster, acknowledged):
    short = sorted(key for key, (_, content) in acknowledged.items() if len(content) < 300)
    sample = random.Random(SEED).sample(short, SAMPLE)
    for front in cluster.list_fronts():
        for workspace, memory_id in sample:
            token, content = acknowledged[workspace, memory_id]
            with contextlib.closing(front.client(workspace)) as client:
                by_word = client.recall(token, k=5, explain=True)
                by_meaning = client.recall(content, k=5, explain=True)
            assert not by_word["degraded"]
            assert not by_meaning["degraded"]
            first = next(r for r in by_word["results"] if r["signals"]["channels"]["lexical"]["rank"] == 1)
            assert first["id"] == memory_id
            hit = next(result for result in by_meaning["results"] if result["id"] == memory_id)
            assert hit["signals"]["channels"]["dense"]["score"] > 0.999


def test_every_machine_still_runs(cluster):
    ended = [name for name, machine in cluster.machines.items() if machine.has_ended()]
    assert ended == [], cluster.read_logs()
