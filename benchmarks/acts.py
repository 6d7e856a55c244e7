"""Judge the lines before acts by labels of another hand: what was shown, what was missed, what disturbed, how long.

Run by `make bench-acts`. Each project of a file of labels gets a workspace of its own in a scratch data directory; its
memories are written over HTTP and its history is posted as hook events. Then each labelled call is posted as the event
before a tool, in a session of its own, and its answer is compared with the label. `--without SOURCE` leaves a source
out.
"""

import argparse
import json
import os.path
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figures import latency
from config.settings import load_settings
from pipeline.bootstrap.web import WebContainer
from pipeline.features.acts.usecases import ActAdvisor
from pipeline.kernel.records.hooks import ActWarning
from web.http.app import create_app

LABELS = Path(__file__).parents[1] / "tests" / "data" / "acts"
SOURCES = ("rule", "failure", "reverts")
# The kinds of memories in the labels, as they are stored.
KINDS = {
    **dict.fromkeys(("rule", "prohibition", "lesson", "preference", "failure"), "lesson"),
    "decision": "decision",
    "event": "milestone",
}
FAILURE = "past_failure"
# The command of a rule that shows when the index answers.
MARKER = "frobnicate-all"
# The start of a command or an error by which a line about the past is recognized.
TELLING_CHARS = 24
HOST = "127.0.0.1:7077"

Post = Callable[..., Mapping[str, Any]]


@dataclass
class Score:
    """The counts of a file of labels, and the time of each call in milliseconds."""

    wanted: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    disturbed: int = 0
    silent_calls: int = 0
    took: list[float] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)

    def recall(self, *kinds: str) -> float:
        """Return the share of warnings of some kinds that were shown."""
        return sum(self.hit[kind] for kind in kinds) / (sum(self.wanted[kind] for kind in kinds) or 1)

    @property
    def needless(self) -> float:
        """Return the share of calls that were disturbed without need."""
        return self.disturbed / (self.calls or 1)


def main() -> None:
    """Print the figures of a file of labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=Path, nargs="?", default=LABELS / "dev.jsonl")
    parser.add_argument("--part", help="only this part of the file")
    parser.add_argument("--lines", default="on", choices=("off", "past", "rules", "on"), help="value of act_recall")
    parser.add_argument("--without", action="append", default=[], choices=SOURCES, help="leave a source out")
    parser.add_argument("--ablation", action="store_true", help="leave each source out in turn")
    parser.add_argument("--mistakes", action="store_true", help="print the calls that were judged otherwise")
    given = parser.parse_args()
    records = read_labels(given.labels, given.part)
    for without in [(source,) for source in SOURCES] if given.ablation else [tuple(given.without)]:
        score = judge_file(records, without, given.lines)
        print(f"without {', '.join(without)}: " if without else "all: ", describe(score), sep="")
        if given.mistakes:
            print("\n".join(score.mistakes))


def describe(score: Score) -> str:
    """Return the figures in a line."""
    kinds = " ".join(f"{kind} {score.hit[kind]}/{count}" for kind, count in sorted(score.wanted.items()))
    rules = [kind for kind in score.wanted if kind not in ("decision", "fact", "event")]
    took = latency(score.took)
    return (
        f"{score.calls} calls; rules and failures {score.recall(*rules):.3f}, all {score.recall(*score.wanted):.3f} "
        f"({kinds}); disturbed {score.disturbed} ({score.needless:.3f}); p50 {took.p50:.1f}, p95 {took.p95:.1f} ms"
    )


def read_labels(file: Path, part: str | None = None) -> list[dict[str, Any]]:
    """Return the records of a file of labels, or of a part of it."""
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [record for record in records if part is None or record["part"] == part]


def judge_file(records: Sequence[Mapping[str, Any]], without: Iterable[str] = (), act_recall: str = "on") -> Score:
    """Return the score of the labels in a scratch data directory."""
    with TemporaryDirectory() as folder:
        container = WebContainer(load_settings({"REVERIE_HOME": folder}), lambda _workspace, _stage: None)
        try:
            return judge_records(container, records, without, act_recall)
        finally:
            container.close()


def judge_records(
    container: WebContainer, records: Sequence[Mapping[str, Any]], without: Iterable[str] = (), act_recall: str = "on"
) -> Score:
    """Return the score of the labels through the routes of a server."""
    client, score = create_app(container).test_client(), Score()
    with LeftOut(frozenset(without)):
        for number, name in enumerate(dict.fromkeys(record["project"] for record in records)):
            headers = {"Authorization": f"Bearer {container.token}", "Host": HOST}
            headers["X-Reverie-Workspace"] = f"project-{number}"
            config = container.settings.paths.workspace(f"project-{number}").config
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text('act_recall = "on"\n', encoding="utf-8")

            def post(path: str, body: Mapping[str, Any], headers: Mapping[str, str] = headers) -> Mapping[str, Any]:
                response = client.post(path, json=body, headers=dict(headers))
                assert response.status_code in (200, 201), response.get_data(as_text=True)
                return response.get_json(silent=True) or {}

            own = [record for record in records if record["project"] == name]
            project = _prepare_project(container, post, own)
            config.write_text(f'act_recall = "{act_recall}"\n', encoding="utf-8")
            calls = [record for record in own if record["type"] == "call"]
            _judge_project(container, post, project, calls, score)
    return score


@dataclass(frozen=True)
class Project:
    """A project in a workspace: the kinds of its memories by label, their labels by short ID, and its earlier calls."""

    kinds: Mapping[str, str]
    labels: Mapping[str, str]
    history: Sequence[Mapping[str, Any]]
    cwd: str


def _prepare_project(container: WebContainer, post: Post, records: Sequence[Mapping[str, Any]]) -> Project:
    kinds, short = dict[str, str](), dict[str, str]()
    for record in records:
        if record["type"] == "memory":
            kinds[record["id"]] = record["kind"]
            short[post("/v1/memories", _make_memory(record))["id"][-8:]] = record["id"]
    history = [record["call"] for record in records if record["type"] == "history"]
    named = [
        call["input"].get("file_path", "") for call in (*history, *(record for record in records if "input" in record))
    ]
    cwd = os.path.commonpath(
        [file for file in named if file.startswith("/") and not file.startswith("/tmp")] or ["/srv"]
    )
    for number, call in enumerate(history):
        post("/hooks/claude-code", _make_event(call, f"past-{number}", "past", cwd))
    container.feedback.submit(lambda: None).result()
    _make_ready(post)
    return Project(kinds, short, history, cwd)


def _judge_project(
    container: WebContainer, post: Post, project: Project, calls: Sequence[Mapping[str, Any]], score: Score
) -> None:
    for number, record in enumerate(calls):
        event = _make_event(record, f"call-{number}", f"session-{number}", project.cwd, "PreToolUse")
        began = time.perf_counter()
        output = post("/hooks/claude-code", event).get("hookSpecificOutput", {})
        score.took.append((time.perf_counter() - began) * 1000)
        container.feedback.submit(lambda: None).result()
        text = output.get("additionalContext") or output.get("permissionDecisionReason") or ""
        _compare(score, record, text, project)


def _make_ready(post: Post) -> None:
    """Post calls that a rule forbids until the index answers."""
    post("/v1/memories", {"content": f"Never run {MARKER}.", "kind": "lesson"})
    call = {"tool": "Bash", "input": {"command": MARKER}}
    for number in range(1000):
        if post("/hooks/claude-code", _make_event(call, f"w-{number}", f"w-{number}", "/srv", "PreToolUse")):
            return
        time.sleep(0.02)
    raise TimeoutError("the index of acts is not ready")


def _make_memory(record: Mapping[str, Any]) -> dict[str, Any]:
    details = {"details": {"severity": "critical"}} if record.get("critical") else {}
    kind = KINDS.get(record["kind"], "fact")
    return {"content": record["text"], "kind": kind} | (details if kind == "lesson" else {})


def _make_event(call: Mapping[str, Any], call_id: str, session: str, cwd: str, name: str = "") -> dict[str, Any]:
    event = {
        "session_id": session,
        "tool_use_id": call_id,
        "cwd": cwd,
        "tool_name": call["tool"],
        "tool_input": call["input"],
    }
    if name:
        return event | {"hook_event_name": name}
    if call.get("ok", True):
        return event | {"hook_event_name": "PostToolUse", "tool_response": {"stdout": call.get("output", "")}}
    return event | {"hook_event_name": "PostToolUseFailure", "error": call.get("output", "")}


def _compare(score: Score, record: Mapping[str, Any], text: str, project: Project) -> None:
    shown = {project.labels[word] for word in _list_short_ids(text) if word in project.labels}
    wanted = list(record.get("concerns", []))
    hits = [concern for concern in wanted if _is_shown(concern, shown, text, project.history)]
    for concern in wanted:
        kind = project.kinds.get(concern, FAILURE)
        score.wanted[kind] += 1
        score.hit[kind] += concern in hits
    score.calls += 1
    needless = bool(text) and not hits
    score.disturbed += needless
    if needless or len(hits) < len(wanted):
        mark = "NEEDLESS" if needless else "MISSED"
        score.mistakes.append(f"{mark} {json.dumps(dict(record), ensure_ascii=False)[:700]}\n    shown: {text!r}")


def _list_short_ids(text: str) -> Iterator[str]:
    for part in text.split("[")[1:]:
        yield part[:8]


def _is_shown(concern: str, shown: set[str], text: str, history: Sequence[Mapping[str, Any]]) -> bool:
    if concern in shown:
        return True
    if ":" not in concern:
        return False
    call = history[int(concern.partition(":")[2])]
    target = str(call["input"].get("command") or call["input"].get("file_path") or "")
    telling = " ".join(target.split())[:TELLING_CHARS]
    is_past = "here before" in text or "taken back" in text
    return is_past and (telling in text or Path(target).name in text)


class LeftOut:
    """Drop the warnings of some sources."""

    def __init__(self, sources: frozenset[str]) -> None:
        self._sources, self._advise = sources, ActAdvisor.advise

    def __enter__(self) -> None:
        advise, sources = self._advise, self._sources

        def filtered(*values: Any, **named: Any) -> Iterator[ActWarning]:
            found = advise(*values, **named)
            return (warning for warning in found if warning.source not in sources or MARKER in warning.text)

        ActAdvisor.advise = filtered  # type: ignore[method-assign]

    def __exit__(self, *_error: object) -> None:
        ActAdvisor.advise = self._advise  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
