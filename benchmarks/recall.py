"""Measure recall over HTTP: after a start, alone, eight at once, while workers digest; the aims beside the figures.

Run by `make bench-recall`. Uses homes that are filled once and kept in `.bench/`, and a copy of them for each run.
"""

import argparse
import http.client
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import psutil

from benchmarks.bare import load_bare_encoder, measure_encodings_per_second, time_bare_encodings
from benchmarks.crowd import Stream, count_degraded, crowd
from benchmarks.figures import Aim, Latency, Limit, Report, latency
from benchmarks.homes import (
    ANSWERED_WITHIN_S,
    BENCH,
    WORKSPACE,
    Home,
    bench_folder,
    copy_of,
    has_answered,
    prepare_home,
    stack_on,
)
from benchmarks.large_homes import ENCODED
from benchmarks.processes import BARE_RUNTIME, MIB, run_bare
from benchmarks.questions import Question, questions
from benchmarks.recall_sets import measure_sets
from benchmarks.wire import Answer, Wire, post
from tests.support.stack import Client, Stack, wait_until

SIZES = (10_000, 100_000)
K = 10
CLIENTS = 8
WARM_UP, REPEATED, PROMPTS, STARTS = 100, 300, 300, 3
QUESTION_SEED, STREAM_SEED = 11, 13
# Between two tries to reach a server that starts; a tighter loop would slow down what it waits for.
POLL_S = 0.01
START_WITHIN_S = 120.0
# Up to so many memories: milliseconds of a recall. A larger home has the aim of its encoding and LARGEST_MS.
AIMS: dict[int, dict[str, float]] = {
    1_000: {"p50": 5.0},
    20_000: {"p50": 6.0, "p95": 9.0},
    200_000: {"p50": 10.0, "p95": 25.0},
}
LARGEST_MS = 15.0
# What prepare and the prompt's hook may take longer than a recall.
BESIDE_MS = 2.0
CROWD_RATE, CROWD_P95 = Aim("", 200, at_least=True), Aim("p95", 50)
FIRST = {"lexical": Aim("", 1.0), "dense": Aim("", 2.5)}
RESIDENT = Aim("", 350)


@dataclass(frozen=True, slots=True)
class Asking:
    """A server under measurement and questions of which each is used once."""

    home: Home
    folder: Path
    port: int
    token: str
    asked: Iterator[Question]
    report: Report

    @property
    def key(self) -> str:
        """Return the name of this size among the figures."""
        return str(len(self.home.corpus))

    def take(self, count: int) -> list[Question]:
        """Return questions that nobody has asked yet."""
        taken = list(islice(self.asked, count))
        if len(taken) < count:
            raise SystemExit("the corpus gives too few different questions for this run: choose a smaller --asks")
        return taken

    def recalls(self, wanted: Sequence[Question]) -> list[bytes]:
        """Make recall requests."""
        return [self.post("/v1/recall", {"query": question.text, "k": K}) for question in wanted]

    def post(self, path: str, body: object) -> bytes:
        """Make a request."""
        return post(path, body, self.token, WORKSPACE)

    def ask(self, requests: Sequence[bytes]) -> list[Answer]:
        """Send requests over one connection; stop at one that fails."""
        with Wire(self.port) as wire:
            answers = wire.ask_all(requests)
        failed = [answer for answer in answers if answer.status != 200]
        if failed:
            raise SystemExit(f"{len(failed)} requests failed: {failed[0].status} {failed[0].body[:200]!r}")
        return answers


@dataclass(frozen=True, slots=True)
class Resident:
    """Resident memory in MiB, and how much of it is mapped files that the system can drop at will."""

    total: int
    of_files: int


def measure_start(folder: Path, key: str, report: Report) -> None:
    """Time from the start of web alone to the first recall of which lexical, and then dense, is part."""
    found: dict[str, list[float]] = {channel: [] for channel in FIRST}
    limit = Limit("an interpreter with the libraries, s", run_bare(BARE_RUNTIME)[0])
    for _ in range(STARTS):
        with stack_on(folder) as stack:
            client = stack.client(WORKSPACE)
            began = time.perf_counter()
            stack.launch("web")
            for channel, seconds in found.items():
                _until_answered(client, channel, began)
                seconds.append(round(time.perf_counter() - began, 3))
            client.close()
    for channel, seconds in found.items():
        middle = sorted(seconds)[STARTS // 2]
        figure = f"{middle:.2f} s, the median of {'  '.join(f'{x:.2f}' for x in seconds)}"
        aim = (FIRST[channel], middle)
        report.row(f"start of web to the first {channel} recall", figure, aim, against=(limit, middle))
        report.keep(key, f"first_{channel}_s", value=middle)


def _until_answered(client: Client, channel: str, began: float) -> None:
    # With the budget that recalls have by default: an answer that a person would not have got does not count.
    question = {"query": "which service reads the key", "k": K}
    while _state(client, question, channel) != "ok":
        if time.perf_counter() - began > START_WITHIN_S:
            raise SystemExit(f"no {channel} recall within {START_WITHIN_S:.0f} s of a start")
        time.sleep(POLL_S)


def _state(client: Client, question: object, channel: str) -> str:
    try:
        reply = client.call("POST", "/v1/recall", question)
    except (OSError, http.client.HTTPException):
        return "not listening"
    return str(reply.body["channels"][channel]["state"]) if reply.status == 200 else f"status {reply.status}"


def measure_alone(asking: Asking, asks: int) -> Limit:
    """Measure one client: distinct questions, one question repeated, prepare, the hook; return encodings a second."""
    report, key = asking.report, asking.key
    asking.ask(asking.recalls(asking.take(WARM_UP)))
    encoding, encodings_per_second = _measure_encoding(asking, asks)
    same = asking.ask(asking.recalls(asking.take(1) * REPEATED))
    cached = _keep_latency(asking, "one client, one question again and again", "repeated", same[1:])
    limit = Limit("its encoding and a cached answer", encoding.p50 + cached.p50)
    wanted = asking.take(asks)
    answers = asking.ask(asking.recalls(wanted))
    whole = latency([answer.took_ms for answer in answers])
    server = latency([answer.json()["took_ms"] for answer in answers])
    report.latency("one client, distinct questions", whole, limit, **_aims(asking, encoding))
    report.latency("  of this in the server", server)
    report.keep(key, "recall", value=whole)
    report.keep(key, "recall_server", value=server)
    _tell_degraded(asking, "recall", count_degraded(answers), asks)
    _tell_quality(asking, wanted, answers)
    recall = Limit("a recall", whole.p50)
    _measure_prepare(asking, recall)
    _measure_prompts(asking, recall)
    return encodings_per_second


def _measure_prompts(asking: Asking, recall: Limit) -> None:
    report, key = asking.report, asking.key
    events = [_hook_event(question) for question in asking.take(PROMPTS)]
    hooks = asking.ask([asking.post("/hooks/claude-code", event) for event in events])
    _keep_latency(asking, "hook UserPromptSubmit", "hook", hooks, recall, p50=recall.value + BESIDE_MS)
    said = sum(bool(answer.body) for answer in hooks)
    report.row("  prompts to which the hook added something", f"{said} of {PROMPTS}")
    report.keep(key, "hook_said", value=said / PROMPTS)


def _measure_encoding(asking: Asking, asks: int) -> tuple[Latency, Limit]:
    """Measure the encoding of a question, and how many a second all clients together could have encoded."""
    encoder = load_bare_encoder(asking.folder)
    texts = [question.text for question in asking.take(asks)]
    found = latency(time_bare_encodings(encoder, texts))
    per_second = Limit("the encodings of as many threads", measure_encodings_per_second(encoder, texts, CLIENTS))
    asking.report.latency("bare: the encoding of a question", found)
    asking.report.row(f"bare: encodings by {CLIENTS} threads", f"{per_second.value:.0f} /s")
    return found, per_second


def _aims(asking: Asking, encoding: Latency) -> dict[str, float]:
    largest = {"p50": round(encoding.p50 + LARGEST_MS, 1)}
    return next((aims for size, aims in AIMS.items() if len(asking.home.corpus) <= size), largest)


def _keep_latency(
    asking: Asking, title: str, name: str, answers: Sequence[Answer], limit: Limit | None = None, **bounds: float
) -> Latency:
    found = latency([answer.took_ms for answer in answers])
    asking.report.latency(title, found, limit, **bounds)
    asking.report.keep(asking.key, name, value=found)
    return found


def _tell_degraded(asking: Asking, name: str, count: int, total: int) -> None:
    asking.report.keep(asking.key, f"{name}_degraded", value=count)
    if count:
        asking.report.row("  of these with a channel late or cold", f"{count} of {total}: their speed is no merit")


def _tell_quality(asking: Asking, wanted: Sequence[Question], answers: Sequence[Answer]) -> None:
    """Tell for how many questions a source is among the results: a sanity check, for quality there are better data."""
    known = [(q, a) for q, a in zip(wanted, answers, strict=True) if q.sources]
    hits = [any(asking.home.ids[place] in _ids(answer) for place in q.sources) for q, answer in known]
    share = sum(hits) / len(hits)
    asking.report.row(f"hit@{K} of {len(hits)} questions with a known source", f"{share:.3f} (sanity)")
    asking.report.keep(asking.key, f"hit_at_{K}", value=round(share, 4))


def _ids(answer: Answer) -> set[str]:
    return {result["id"] for result in answer.json()["results"]}


def _measure_prepare(asking: Asking, recall: Limit) -> None:
    requests = [asking.post("/v1/prepare", {"message": question.text}) for question in asking.take(PROMPTS)]
    with Wire(asking.port) as wire:
        if wire.ask(requests[0]).status != 200:
            asking.report.row("prepare", "not served")
            asking.report.keep(asking.key, "prepare", value=None)
            return
    answers = asking.ask(requests[1:])
    _keep_latency(asking, "prepare", "prepare", answers, recall, p50=recall.value + BESIDE_MS)


def _hook_event(question: Question) -> dict[str, str]:
    return {"hook_event_name": "UserPromptSubmit", "session_id": "bench", "cwd": "/srv/bench", "prompt": question.text}


def measure_crowd(asking: Asking, each: int, title: str, name: str, limit: Limit) -> None:
    """Eight clients at once, each a process with one connection."""
    found = crowd(asking.port, [asking.recalls(asking.take(each)) for _ in range(CLIENTS)])
    rate, shown = found.per_second, f"{found.per_second:.0f} recalls/s"
    asking.report.row(f"{CLIENTS} clients, {title}", shown, (CROWD_RATE, rate), against=(limit, rate))
    asking.report.latency(f"  each of {CLIENTS} clients", found.latency, p95=CROWD_P95.bound)
    asking.report.keep(asking.key, name, "per_second", value=found.per_second)
    asking.report.keep(asking.key, name, "latency", value=found.latency)
    asking.report.keep(asking.key, name, "not_200", value=len(found.failed))
    _tell_degraded(asking, name, found.degraded, CLIENTS * each)
    if found.failed:
        asking.report.row("  of these not answered with 200", f"{len(found.failed)}, the first with {found.failed[0]}")


def measure_while_digesting(asking: Asking, stack: Stack, each: int, limit: Limit) -> None:
    """The same eight while batches of new memories come in faster than workers digest them."""
    client = stack.client(WORKSPACE)
    stream = Stream(asking.port, asking.token, STREAM_SEED)
    began = time.perf_counter()
    with stream:
        measure_crowd(asking, each, "while workers digest", "crowd_digesting", limit)
        left = sum(stack.pending(client).values())
    seconds = time.perf_counter() - began
    # Each memory is two pieces of work.
    digested = max(0.0, stream.written - left / 2) / seconds
    figure = f"{stream.written / seconds:.0f} written/s, {digested:.0f} digested/s meanwhile"
    asking.report.row("  the stream of writes", figure)
    asking.report.keep(asking.key, "crowd_digesting", "written_per_s", value=round(stream.written / seconds, 1))
    asking.report.keep(asking.key, "crowd_digesting", "digested_per_s", value=round(digested, 1))
    client.close()


def measure(home: Home, asks: int, each: int, report: Report) -> None:
    """Measure one home."""
    report.section(f"recall over {len(home.corpus):,} memories")
    needed = 2 * WARM_UP + 2 * asks + 2 * PROMPTS + 2 * CLIENTS * each
    asked = iter(questions(home.corpus, needed, QUESTION_SEED))
    with copy_of(home) as folder:
        measure_start(folder, str(len(home.corpus)), report)
        with stack_on(folder) as stack:
            # No worker takes a core yet: on a home that lay still, jobs make up for what they missed.
            stack.start("web")
            client = stack.client(WORKSPACE, ANSWERED_WITHIN_S)
            wait_until("all channels answer", lambda: has_answered(client, "lexical", "dense"))
            client.close()
            asking = Asking(
                home, folder, stack.port, (folder / "token").read_text(encoding="ascii").strip(), asked, report
            )
            limit = measure_alone(asking, asks)
            measure_crowd(asking, each, "nothing else", "crowd", limit)
            resident = _resident(stack)
            stack.start("worker", "scheduler")
            measure_while_digesting(asking, stack, each, limit)
            after = _resident(stack)
    bare = Limit("an interpreter with the libraries, MiB of PSS", run_bare(BARE_RUNTIME)[1] / MIB)
    for name, title, found in (
        ("asked", "resident memory of web, all asked", resident),
        ("written", "  after the writes", after),
    ):
        figure = f"{found.total} MiB, {found.of_files} of it mapped files"
        report.row(title, figure, (RESIDENT, found.total), against=(bare, found.total))
        report.keep(asking.key, "rss_mib", name, value=asdict(found))


def _resident(stack: Stack) -> Resident:
    found = psutil.Process(stack.running["web"].pid).memory_info()
    return Resident(round(found.rss / 2**20), round(found.shared / 2**20))


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="memories of each home")
    parser.add_argument("--sets", type=Path, nargs="+", help="files of public sets, asked instead of homes")
    parser.add_argument("--asks", type=int, default=600, help="distinct questions of the single client")
    parser.add_argument("--each", type=int, default=250, help="distinct questions of each of the eight clients")
    parser.add_argument("--encoded", type=int, default=ENCODED, help="texts that get a vector of their own")
    parser.add_argument("--bench", type=Path, default=BENCH, help="the folder that keeps the homes")
    parser.add_argument("--fresh", action="store_true", help="fill the homes anew")
    parser.add_argument("--prepare-only", action="store_true", help="fill the homes and stop")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    chosen = parser.parse_args()
    report = Report()
    bench = bench_folder(chosen.bench)
    if chosen.sets:
        measure_sets(chosen.sets, report)
        chosen.sizes = ()
    for size in chosen.sizes:
        home = prepare_home(size, bench, fresh=chosen.fresh, encoded=chosen.encoded)
        if not chosen.prepare_only:
            measure(home, chosen.asks, chosen.each, report)
    report.write(chosen.json)


if __name__ == "__main__":
    main()
