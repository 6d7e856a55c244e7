"""Whatever is killed, whenever: what was acknowledged is kept, findable, and digested exactly once."""

import contextlib
import http.client
import itertools
import json
import random
import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.features.entities.stage import SpacyTagger, extract_batch
from pipeline.index.encoder import OnnxEncoder, encoder_directory
from pipeline.index.vectors import VectorTable
from tests.faults.conftest import MODEL
from tests.support.sentences import make_sentence
from tests.support.stack import Client, Stack, wait_until

# The first test waits for the whole spree.
pytestmark = pytest.mark.timeout(600)

SEED = 20_251
WRITERS = 8
# With many words in one query, a memory that contains only one of them can rank below others with a similar meaning.
ASKED_TOGETHER = 5
LOOKED_UP_ALONE = 40
LONG_SHARE = 0.02
# What is killed, and how often.
TARGETS = {"web": 3, "child": 3, "consumer": 1, "workers": 2, "scheduler": 1}


def batches(items: list[str], size: int) -> list[list[str]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


class Writer(threading.Thread):
    """Write single memories and batches until told to stop; keep what was acknowledged."""

    def __init__(self, number: int, client: Client, stop: threading.Event, hurry: threading.Event) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._number = number
        self._client = client
        self._halt = stop
        self._hurry = hurry
        self._rng = random.Random(SEED + number)
        self._tokens = (f"w{number}q{n:05d}x7" for n in itertools.count())
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self.batches: dict[str, int] = {}
        self.unanswered = 0
        self.unexpected: list[object] = []

    def run(self) -> None:
        with contextlib.closing(self._client):
            while not self._halt.is_set():
                try:
                    self._write_batch() if self._rng.random() < 0.2 else self._write_one()
                except (OSError, http.client.HTTPException):
                    self.unanswered += 1
                    self._halt.wait(0.05)
                self._hurry.wait(self._rng.uniform(0.05, 0.3))

    def _write_one(self) -> None:
        token = next(self._tokens)
        content = make_sentence(self._rng, token, LONG_SHARE)
        reply = self._client.call("POST", "/v1/memories", {"content": content})
        if reply.status == 201:
            self.acknowledged[reply.body["id"]] = token, content
        elif reply.status != 503:
            self.unexpected.append(reply)

    def _write_batch(self) -> None:
        tokens = [next(self._tokens) for _ in range(self._rng.randint(2, 8))]
        tag = f"batch-{tokens[0]}"
        self.batches[tag] = len(tokens)
        contents = [make_sentence(self._rng, token, LONG_SHARE) for token in tokens]
        items = [{"content": content, "tags": [tag]} for content in contents]
        reply = self._client.call("POST", "/v1/memories/batch", {"items": items})
        if reply.status == 200:
            ids = [result["id"] for result in reply.body["results"]]
            self.acknowledged.update(zip(ids, zip(tokens, contents, strict=True), strict=True))
        elif reply.status != 503:
            self.unexpected.append(reply)


def strike(stack: Stack, rng: random.Random, target: str) -> None:
    """Kill one target with SIGKILL."""
    if target == "child":
        rng.choice(wait_until("the consumer has workers", lambda: stack.children("worker"))).kill()
    elif target in ("consumer", "workers"):
        stack.kill("worker", with_children=target == "workers")
    else:
        stack.kill(target)


def killing_spree(stack: Stack, hurry: threading.Event) -> Counter:
    """Kill at random moments of busy writing, and start again what is missing, as a supervisor would."""
    rng = random.Random(SEED)
    never = threading.Event()
    struck: Counter = Counter()
    for target in rng.sample(list(TARGETS), sum(TARGETS.values()), counts=TARGETS.values()):
        # Mostly at full work again, sometimes not even started.
        if rng.random() < 0.6:
            wait_until("the web server is back", stack.is_healthy)
        never.wait(rng.uniform(0.1, 1.2))
        hurry.set()
        never.wait(rng.uniform(0.0, 0.15))
        strike(stack, rng, target)
        hurry.clear()
        struck[target] += 1
        stack.launch(*(name for name in ("web", "worker", "scheduler") if name not in stack.running))
    return struck


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory, models):
    """A home after the spree, with everything digested, its web server still running, and what the writers know."""
    print(f"seed {SEED}")
    with Stack(tmp_path_factory.mktemp("sigkill") / "home", models, SEGMENT_TAIL_ROWS="300") as stack:
        stack.start("web", "worker", "scheduler")
        began = time.monotonic()
        stop, hurry = threading.Event(), threading.Event()
        writers = [Writer(n, stack.client(), stop, hurry) for n in range(WRITERS)]
        for writer in writers:
            writer.start()
        struck = killing_spree(stack, hurry)
        stop.set()
        hurry.set()
        for writer in writers:
            writer.join(30)
        unanswered = sum(writer.unanswered for writer in writers)
        print(f"spree of {time.monotonic() - began:.0f} s: killed {dict(struck)}, unanswered {unanswered}")
        wait_until("the web server is back", stack.is_healthy)
        stack.wait_for_encoder()
        with contextlib.closing(stack.client()) as client:
            stack.wait_until_digested(client, 300)
        yield stack, writers


@pytest.fixture(scope="module")
def stack(aftermath):
    return aftermath[0]


@pytest.fixture
def client(stack):
    with contextlib.closing(stack.client()) as client:
        yield client


@pytest.fixture(scope="module")
def acknowledged(aftermath):
    found: dict[str, tuple[str, str]] = {}
    for writer in aftermath[1]:
        assert not writer.unexpected
        found |= writer.acknowledged
    print(f"{len(found)} acknowledged")
    assert len(found) > 100
    return found


@pytest.fixture(scope="module")
def rows(stack):
    """Every memory as (row number, id, content, tags), and the tables that digestion fills."""
    db = sqlite3.connect(stack.workspace / "events.sqlite")
    yield db
    db.close()


def test_every_acknowledged_memory_is_in_the_store(stack, acknowledged):
    def read(part):
        with contextlib.closing(stack.client()) as client:
            return {memory_id: client.call("GET", f"/v1/memories/{memory_id}") for memory_id in part}

    ids = list(acknowledged)
    with ThreadPoolExecutor(2) as pool:
        replies = {k: v for part in pool.map(read, (ids[::2], ids[1::2])) for k, v in part.items()}
    lost = [memory_id for memory_id, reply in replies.items() if reply.status != 200]
    assert lost == []
    assert {memory_id: reply.body["content"] for memory_id, reply in replies.items()} == {
        memory_id: content for memory_id, (_, content) in acknowledged.items()
    }


def test_every_acknowledged_memory_is_found_by_its_word(client, acknowledged):
    owners = {token: memory_id for memory_id, (token, _) in acknowledged.items()}
    for tokens in batches(sorted(owners), ASKED_TOGETHER):
        answer = client.recall(" ".join(tokens), k=100, min_relevance=0)
        assert answer["channels"]["lexical"]["state"] == "ok"
        assert {owners[token] for token in tokens} <= {result["id"] for result in answer["results"]}


def test_its_word_alone_finds_a_memory_first(client, acknowledged):
    for memory_id in random.Random(SEED).sample(sorted(acknowledged), LOOKED_UP_ALONE):
        # The memories of a batch have the word as a tag, and the newest comes first.
        answer = client.recall(acknowledged[memory_id][0], k=40, explain=True)
        assert not answer["degraded"]
        # Of all that lexical search found it is the first; what is only near in meaning may stand beside it.
        found = [r["id"] for r in answer["results"] if r["signals"]["channels"]["lexical"]["rank"] == 1]
        assert found == [memory_id], answer["results"]


def test_its_meaning_returns_a_memory(client, acknowledged):
    short = {k: v for k, (_, v) in acknowledged.items() if len(v) < 300}
    for memory_id in random.Random(SEED).sample(sorted(short), LOOKED_UP_ALONE):
        results = client.recall(short[memory_id], k=10, explain=True)["results"]
        hit = next(result for result in results if result["id"] == memory_id)
        assert hit["signals"]["channels"]["dense"]["score"] > 0.999


def test_no_batch_is_half_written(aftermath, rows):
    sizes = {tag: size for writer in aftermath[1] for tag, size in writer.batches.items()}
    found = Counter(tag for (tags,) in rows.execute("SELECT tags FROM memory") for tag in json.loads(tags))
    assert found
    assert {tag: (count, sizes[tag]) for tag, count in found.items() if count != sizes[tag]} == {}


def test_nothing_is_left_in_the_work_table(rows):
    assert rows.execute("SELECT * FROM work").fetchall() == []


def test_every_passage_has_exactly_one_vector(stack, rows, models):
    encoder = OnnxEncoder.load(encoder_directory(MODEL, models), threads=1)
    contents = dict(rows.execute("SELECT seq, content FROM memory"))
    expected = {seq: len(encoder.passages(content)) for seq, content in contents.items()}
    assert max(expected.values()) > 1
    recorded = rows.execute("SELECT memory_seq, model, passages FROM embedding").fetchall()
    assert {model for _, model, _ in recorded} == {MODEL}
    assert {seq: passages for seq, _, passages in recorded} == expected
    table = VectorTable(stack.workspace / "vectors.lance", encoder_directory(MODEL, models).name, encoder.dimension)
    assert Counter(table.vectors(list(expected)).seqs.tolist()) == expected
    assert table.count() == sum(expected.values())
    # And what exact search reads is what the table holds, wherever a writer was killed.
    assert Counter(table.read_codes(None, 10**6).latest().seqs.tolist()) == expected


def test_stored_mentions_equal_a_fresh_extraction(rows):
    contents = dict(rows.execute("SELECT seq, content FROM memory"))
    chosen = sorted(random.Random(SEED).sample(sorted(contents), min(400, len(contents))))
    fresh = extract_batch([contents[seq] for seq in chosen], SpacyTagger.load())
    expected = {seq: {(m.kind, m.name) for m in mentions} for seq, mentions in zip(chosen, fresh, strict=True)}
    found: dict[int, set] = {seq: set() for seq in contents}
    for seq, kind, name in rows.execute("SELECT memory_seq, kind, name FROM mention JOIN entity e ON e.seq=entity_seq"):
        found[seq].add((kind, name))
    assert {seq: found[seq] for seq in chosen} == expected
    assert all(found.values())
