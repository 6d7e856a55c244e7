"""Measure recall on public sets through a running stack, and other rankings of the same texts.

- FTS5: SQLite's own full text search, without stop words
- RRF: reciprocal rank fusion of Reverie's two channels (Cormack et al. 2009, k = 60)
- min-max: the sum of both channels' scores, each scaled from 0 to 1 (Fox, Shaw 1994)

Run by `make bench-quality ARGS="FOLDER"`. The sets are not part of this repository: a folder holds LoCoMo's file as
`locomo*.json` (benchmarks/locomo.py) and others as `*.jsonl` or `*.jsonl.gz`, a store of memories a line:

    {"id", "sessions": [{"session", "at", "turns": [{"id", "speaker", "text", "at"?}]}],
     "questions": [{"q", "category", "evidence": [id], "stale"?: [id], "allowed"?: [id]}]}

A workspace that is asked in another language gets an encoder that knows it, and is asked again: that is what counts.

hit@k: any of the first k is evidence. all@k: all evidence is among the first k. newest: where older statements are
`stale`, the evidence ranks above all of them. quiet: of questions without evidence, how many get nothing except what
is `allowed`.
"""

import argparse
import gzip
import json
import re
import sqlite3
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.homes import share_models, stack_on
from benchmarks.locomo import conversations
from pipeline.text.tokens import STOP_WORDS
from tests.support.stack import Client, Stack

K = 10
# As many as a query may ask for; the channels' best are among them.
MOST = 100
RRF_K = 60
BATCH = 100
LONGEST = 9_900
PATIENCE_S = 1800.0
# Of events in order and of whole conversations no memory is the answer.
NOT_RECALL = frozenset({"event_ordering", "summarization"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its evidence by id, what is out of date, and what may be told beside it."""

    text: str
    evidence: frozenset[str]
    stale: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Store:
    """Memories of one workspace by their own ids, in order, and what is asked of them."""

    name: str
    memories: Mapping[str, dict[str, Any]]
    questions: Sequence[Asked]


@dataclass
class Scores:
    """Figures of single questions, by name."""

    found: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def judge(self, asked: Asked, got: Sequence[str]) -> None:
        """Take in what was answered to a question, best first."""
        first = got[:K]
        if not asked.evidence:
            self.found["quiet"].append(not set(first) - asked.allowed)
            return
        self.found["hit@1"].append(bool(first) and first[0] in asked.evidence)
        self.found[f"hit@{K}"].append(not asked.evidence.isdisjoint(first))
        self.found[f"all@{K}"].append(asked.evidence <= set(first))
        if asked.stale:
            places = {identity: place for place, identity in reversed(list(enumerate(got)))}
            best = min(places.get(identity, len(got)) for identity in asked.evidence)
            self.found["newest"].append(all(best < places.get(old, len(got)) for old in asked.stale))

    def mean(self, name: str) -> float | None:
        """Return a figure's mean, None where no question has it."""
        return statistics.fmean(self.found[name]) if name in self.found else None


def read_stores(file: Path) -> Iterator[Store]:
    """Yield the stores of a set."""
    if file.suffix == ".json":
        for conversation in conversations(file):
            memories = {str(place): memory for place, memory in enumerate(conversation.memories)}
            asked = [Asked(one.text, frozenset(map(str, one.sources))) for one in conversation.questions]
            yield Store(conversation.name, memories, asked)
        return
    content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    for line in filter(None, content.decode().split("\n")):
        store = json.loads(line)
        if "questions" not in store:
            # Labelled texts, which are measured elsewhere.
            return
        yield Store(
            store["id"],
            {
                turn["id"]: {
                    "content": f"{turn['speaker']}: {turn['text']}"[:LONGEST],
                    "kind": "episode",
                    "source": "import",
                    "session_id": f"{store['id']}/{session['session']}",
                    "occurred_at": turn.get("at") or session["at"],
                }
                for session in store["sessions"]
                for turn in session["turns"]
            },
            [
                Asked(one["q"], *(frozenset(one.get(name) or ()) for name in ("evidence", "stale", "allowed")))
                for one in store["questions"]
                if one["category"] not in NOT_RECALL
            ],
        )


def ask_fts(store: Store) -> Scores:
    """Answer by SQLite's own full text search."""
    scores = Scores()
    for asked, ranked in rank_by_fts(store):
        scores.judge(asked, ranked)
    return scores


def rank_by_fts(store: Store, most: int = K) -> Iterator[tuple[Asked, list[str]]]:
    """Yield each question with the best ids by SQLite's full text search, without stop words."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE memory USING fts5 (id UNINDEXED, content, tokenize = 'porter unicode61')")
    db.executemany("INSERT INTO memory VALUES (?, ?)", [(one, m["content"]) for one, m in store.memories.items()])
    for asked in store.questions:
        words = [word for word in re.findall(r"\w+", asked.text.lower()) if word not in STOP_WORDS]
        rows: Iterable[tuple[str]] = ()
        if words:
            match = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
            query = "SELECT id FROM memory WHERE memory MATCH ? ORDER BY rank LIMIT ?"
            rows = db.execute(query, (match, max(most, len(asked.evidence))))
        yield asked, [identity for (identity,) in rows]
    db.close()


def ask_stack(stack: Stack, name: str, store: Store) -> dict[str, Scores]:
    """Write a store's memories, let them be digested, and ask; return the scores of each ranking."""
    client = stack.client(name)
    own = write_store(client, store)
    stack.wait_until_digested(client, PATIENCE_S)
    stack.wait_for_encoder()
    scores = _ask_all(client, store, own)
    client.call("POST", "/v1/jobs/touches")
    if client.call("GET", "/v1/stats").body["index"]["next_model"]:
        stack.wait_until_digested(client, PATIENCE_S)
        scores = _ask_all(client, store, own)
    client.close()
    return scores


def write_store(client: Client, store: Store) -> dict[str, list[str]]:
    """Write a store's memories; return their own ids by the ids that they got."""
    own: dict[str, list[str]] = defaultdict(list)
    items = list(store.memories.items())
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        results = _write(client, [memory for _, memory in batch])
        for (identity, _), result in zip(batch, results, strict=True):
            own[result["id"]].append(identity)
    return own


def _ask_all(client: Client, store: Store, own: Mapping[str, Sequence[str]]) -> dict[str, Scores]:
    scores = {name: Scores() for name in ("RRF", "min-max", "Reverie")}
    for asked in store.questions:
        hits = client.recall(asked.text, k=max(K, len(asked.evidence)))["results"]
        pool = client.recall(asked.text, k=MOST, min_relevance=0, explain=True)["results"]
        for name, ordered in (("Reverie", hits), ("RRF", fuse_ranks(pool)), ("min-max", fuse_scores(pool))):
            scores[name].judge(asked, [identity for hit in ordered for identity in own[hit["id"]]])
    return scores


def fuse_ranks(hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order explained hits by reciprocal rank fusion of the channels."""
    return _order_by(hits, lambda channel: 0.0 if channel["rank"] is None else 1 / (RRF_K + channel["rank"]))


def fuse_scores(hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order explained hits by the sum of the channels' scores, each scaled from 0 to 1."""
    scores = defaultdict(list)
    for hit in hits:
        for name, channel in hit["signals"]["channels"].items():
            scores[name].append(channel["score"])
    scaled = [
        (
            sum(
                (channel["score"] - min(scores[name])) / ((max(scores[name]) - min(scores[name])) or 1.0)
                for name, channel in hit["signals"]["channels"].items()
            ),
            hit,
        )
        for hit in hits
    ]
    return [hit for _, hit in sorted(scaled, key=lambda pair: pair[0], reverse=True)]


def _order_by(hits: Sequence[dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> list[dict[str, Any]]:
    return sorted(hits, key=lambda hit: sum(map(value, hit["signals"]["channels"].values())), reverse=True)


def _write(client: Client, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    reply = client.call("POST", "/v1/memories/batch", {"items": items})
    if reply.status != 200:
        raise SystemExit(f"a batch was refused: {reply}")
    results: list[dict[str, Any]] = reply.body["results"]
    return results


FIGURES = ("hit@1", f"hit@{K}", f"all@{K}", "newest", "quiet")
RANKINGS = ("FTS5", "RRF", "min-max", "Reverie")


def show(name: str, scores: Mapping[str, Scores]) -> str:
    """Return the lines of a set in the table, one for each ranking."""
    lines = []
    for ranking in RANKINGS:
        means = [scores[ranking].mean(figure) for figure in FIGURES]
        cells = ["" if mean is None else f"{mean:.3f}" for mean in means]
        lines.append(f"| {name} | {len(scores[ranking].found['hit@1'])} | {ranking} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure every set of a folder and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the sets are")
    arguments = parser.parse_args()
    files = [*sorted(arguments.folder.glob("locomo*.json")), *sorted(arguments.folder.glob("*.jsonl*"))]
    sets = [
        (file.name.partition(".")[0], stores)
        for file in files
        if (stores := [s for s in read_stores(file) if s.questions])
    ]
    if not sets:
        raise SystemExit(f"{arguments.folder} holds no set")
    print(f"| set | questions | ranking | {' | '.join(FIGURES)} |\n|---|---:|---|{'---:|' * len(FIGURES)}")
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as folder:
        home = Path(folder) / "home"
        home.with_name("models").symlink_to(share_models(), target_is_directory=True)
        with stack_on(home, SEGMENT_INTERVAL_S="2") as stack:
            stack.start("web", "worker", "scheduler")
            for name, stores in sets:
                totals = {ranking: Scores() for ranking in RANKINGS}
                for number, store in enumerate(stores):
                    workspace = re.sub(r"[^a-z0-9]+", "-", f"{name}-{number}".lower())
                    for ranking, part in {"FTS5": ask_fts(store), **ask_stack(stack, workspace, store)}.items():
                        for figure, values in part.found.items():
                            totals[ranking].found[figure] += values
                print(show(name, totals), flush=True)


if __name__ == "__main__":
    main()
