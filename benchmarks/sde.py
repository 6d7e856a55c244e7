"""Measure the retrieval of evidence by each protocol that others publish, for instance on sde-bench and LongMemEval-S.

Run by `make bench-sde ARGS="FILE ... --block"`. The sets are not part of this repository; `benchmarks/quality.py`
describes the format of a file. In sde-bench, the question is a bug report and its evidence is the turn of a chat, or
the commit, that decided the rule. No agent runs and no model judges: this is the retrieval half of the benchmark only.

Filling: each store gets a workspace of its own; each turn or commit is a memory with its speaker, session and time.
All work is processed before the first question.

Asking: the question as it is, once by `POST /v1/recall` with `min_relevance` 0, whose ranking is complete, and once
as an agent asks, with the usual minimum. FTS5 is SQLite's full text search without stop words, ranked by BM25.

Counting, for questions with evidence, at k = 1, 5, 10 and 50:

- turn or session: the ranking of memories, or of their sessions by the best memory of each
- recall_any@k: any evidence is among the first k (also called hit@k, or R@k)
- recall_all@k: all evidence is among the first k
- strict@k: all evidence turns are among the first k results that an agent gets, so that an empty answer is a miss
- stale first: a superseded turn ranks above all evidence, or is found alone (only where a set names such turns)

With `--block`: the text of `POST /v1/prepare`, which a hook adds to a prompt. Chats of a user and an assistant are
stored in another workspace as past sessions, as an import stores them. `block` is the share of questions whose block
has at least half of the words that an evidence turn adds to the question. `outdated block`: it has those of a stale
turn only.
"""

import argparse
import re
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.deciding import covers
from benchmarks.homes import share_models, stack_on
from benchmarks.quality import PATIENCE_S, Asked, Store, rank_by_fts, read_stores, write_store
from tests.support.stack import Client, Stack

KS = (1, 5, 10, 50)
MOST = 100
TURNS_BATCH = 200
TIMEOUT_S = 300.0
Figures = dict[str, list[float]]


def judge(store: Store, asked: Asked, ranked: Sequence[str], figures: Figures) -> None:
    """Add what each protocol says of a complete ranking of turns."""
    session_of = {identity: str(memory["session_id"]) for identity, memory in store.memories.items()}
    sessions = list(dict.fromkeys(session_of[identity] for identity in ranked))
    evidence_sessions = frozenset(session_of[identity] for identity in asked.evidence)
    for level, ranking, evidence in (("turn", ranked, asked.evidence), ("session", sessions, evidence_sessions)):
        for k in KS:
            first = set(ranking[:k])
            figures[f"{level} recall_any@{k}"].append(not evidence.isdisjoint(first))
            figures[f"{level} recall_all@{k}"].append(evidence <= first)
    if asked.stale:
        best = next((identity for identity in ranked if identity in asked.evidence | asked.stale), None)
        figures["stale first"].append(best in asked.stale)


def judge_strictly(asked: Asked, given: Sequence[str], figures: Figures) -> None:
    """Add what the strict protocol says of the results that an agent gets."""
    for k in KS:
        figures[f"turn strict@{k}"].append(asked.evidence <= set(given[:k]))


def judge_block(store: Store, asked: Asked, block: str, figures: Figures) -> None:
    """Add whether the block of a prompt has the evidence, or only something outdated."""

    def has(identities: frozenset[str]) -> bool:
        return covers(block, [str(store.memories[identity]["content"]) for identity in identities], asked.text)

    current = has(asked.evidence)
    figures["block"].append(current)
    figures["characters of a block"].append(len(block))
    if asked.stale:
        figures["outdated block"].append(not current and has(asked.stale))


def ask_reverie(stack: Stack, name: str, store: Store, *, with_block: bool) -> Figures:
    """Fill a workspace, and ask the store's questions in it."""
    figures: Figures = defaultdict(list)
    client = stack.client(name, TIMEOUT_S)
    own = write_store(client, store)
    _wait(stack, client)
    for asked in store.questions:
        ranked = _recall(client, own, asked.text, min_relevance=0)
        judge(store, asked, ranked, figures)
        judge_strictly(asked, _recall(client, own, asked.text), figures)
    client.close()
    if with_block:
        _ask_for_blocks(stack, name, store, figures)
    return figures


def _recall(client: Client, own: Mapping[str, Sequence[str]], query: str, **fields: object) -> list[str]:
    answer = client.recall(query, k=MOST, **fields)
    if answer["degraded"]:
        raise SystemExit(f"a channel did not answer a recall: {answer['channels']}; measure on a less busy machine")
    return [identity for hit in answer["results"] for identity in own[hit["id"]]]


def _ask_for_blocks(stack: Stack, name: str, store: Store, figures: Figures) -> None:
    sessions = _chats(store)
    client = stack.client(f"{name}-sessions" if sessions else name, TIMEOUT_S)
    for session_id, messages in sessions.items():
        for start in range(0, len(messages), TURNS_BATCH):
            part = {"session_id": session_id, "messages": messages[start : start + TURNS_BATCH]}
            reply = client.call("POST", "/v1/turns", part)
            if reply.status != 202:
                raise SystemExit(f"the turns of a session were refused: {reply}")
    _wait(stack, client)
    for number, asked in enumerate(store.questions):
        reply = client.call("POST", "/v1/prepare", {"message": asked.text, "session_id": f"asks-{number}"})
        if reply.status != 200:
            raise SystemExit(f"a prompt was refused: {reply}")
        judge_block(store, asked, reply.body["text"].removeprefix(reply.body["start"]), figures)
    client.close()


def _chats(store: Store) -> dict[str, list[dict[str, str]]]:
    """Return the messages of each session; none unless all are of a user and an assistant."""
    sessions: dict[str, list[dict[str, str]]] = defaultdict(list)
    for memory in store.memories.values():
        role, _, text = memory["content"].partition(": ")
        if role not in {"user", "assistant"}:
            return {}
        sessions[memory["session_id"]].append({"role": role, "content": text, "at": memory["occurred_at"]})
    return sessions


def _wait(stack: Stack, client: Client) -> None:
    stack.wait_until_digested(client, PATIENCE_S)
    stack.wait_for_encoder()


def ask_fts(store: Store) -> Figures:
    """Ask the store's questions of SQLite's full text search, which has no minimum."""
    figures: Figures = defaultdict(list)
    for asked, ranked in rank_by_fts(store, MOST):
        judge(store, asked, ranked, figures)
        judge_strictly(asked, ranked, figures)
    return figures


def show(name: str, totals: Mapping[str, Figures]) -> str:
    """Return the Markdown table of a set, and a line for each figure without k."""
    asked = len(totals["FTS5"]["turn strict@1"])
    protocols = ("session recall_any", "session recall_all", "turn recall_any", "turn recall_all", "turn strict")
    lines = [
        f"\n{name}, {asked} questions\n",
        f"| protocol | ranking | {' | '.join(f'k = {k}' for k in KS)} |",
        f"|---|---|{'---:|' * len(KS)}",
    ]
    for protocol in protocols:
        for ranking, figures in totals.items():
            cells = " | ".join(f"{_mean(figures[f'{protocol}@{k}']):.3f}" for k in KS)
            lines.append(f"| {protocol} | {ranking} | {cells} |")
    lines.append("")
    for ranking, figures in totals.items():
        rest = {figure: values for figure, values in figures.items() if "@" not in figure}
        lines += [f"{figure}, {ranking}: {_mean(values):.3f} of {len(values)}" for figure, values in rest.items()]
    return "\n".join(lines)


def _with_evidence(store: Store) -> Store:
    return replace(store, questions=[asked for asked in store.questions if asked.evidence])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    """Measure every file and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="sets of stores with questions")
    parser.add_argument("--block", action="store_true", help="also measure the block that a prompt gets")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reverie-bench-") as folder:
        home = Path(folder) / "home"
        home.with_name("models").symlink_to(share_models(), target_is_directory=True)
        with stack_on(home, SEGMENT_INTERVAL_S="2") as stack:
            stack.start("web", "worker", "scheduler")
            for file in arguments.files:
                name = file.name.partition(".")[0]
                totals: dict[str, Figures] = {"FTS5": defaultdict(list), "Reverie": defaultdict(list)}
                for number, store in enumerate(map(_with_evidence, read_stores(file))):
                    workspace = re.sub(r"[^a-z0-9]+", "-", f"{name}-{number}".lower())
                    found = ask_reverie(stack, workspace, store, with_block=arguments.block)
                    for ranking, part in (("FTS5", ask_fts(store)), ("Reverie", found)):
                        for figure, values in part.items():
                            totals[ranking][figure] += values
                print(show(name, totals), flush=True)


if __name__ == "__main__":
    main()
