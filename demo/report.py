from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from demo.sample import FactQuestion, Question

CHANNELS = ("lexical", "dense")
INDENT = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """A recall's answer, the milliseconds until the client had it, and whether the expected came first."""

    question: Question
    answer: Mapping[str, Any]
    client_ms: float

    @property
    def came_first(self) -> bool:
        results = self.answer.get("results", [])
        return bool(results) and self.question.expect in results[0]["content"]


def one_line(text: str, width: int, around: str = "") -> str:
    """Shorten a text to one line of at most `width` characters that shows `around` where it occurs."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    place = flat.find(" ".join(around.split())) if around else 0
    if place + len(around) < width:
        return flat[: width - 1].rstrip() + "…"
    start = max(0, min(place - width // 3, len(flat) - width + 1))
    return "…" + flat[start : start + width - 2].strip() + ("…" if start + width - 2 < len(flat) else "")


def describe_signals(signals: Mapping[str, Any] | None) -> str:
    """Return each channel's rank and score; a channel that did not see the memory is a dash."""
    channels = (signals or {}).get("channels") or {}
    names = [*CHANNELS, *sorted(set(channels) - set(CHANNELS))]
    return " · ".join(f"{name} {_place(channels.get(name))}" for name in names)


def _place(channel: Any) -> str:
    if not isinstance(channel, Mapping) or channel.get("rank") is None:
        return "-"
    score = channel.get("score")
    return f"#{channel['rank']}" + (f" {score:.2f}" if isinstance(score, int | float) else "")


def describe_channels(answer: Mapping[str, Any]) -> str:
    """Return what each channel did for this answer, as the server reports it."""
    channels = answer.get("channels") or {}
    states = [f"{name} {state.get('state', '?')}" for name, state in channels.items()]
    return " · ".join([*states, "degraded"] if answer.get("degraded") else states) or "no channels named"


def print_asked(console: Console, number: int, asked: Asked) -> None:
    """Print one recall: the question, its best memories with their signals, the times, the verdict."""
    console.print()
    console.print(Text(f"{number}. ").append(asked.question.ask, style="bold"))
    console.print(Text(" " * 3 + f"({asked.question.why})", style="dim"))
    results = asked.answer.get("results", [])
    for rank, result in enumerate(results, start=1):
        mark, style = _verdict(asked.came_first) if rank == 1 else (" ", "")
        console.print(_headline(console.width, mark, style, rank, result, asked.question.expect))
        console.print(Text(" " * INDENT + describe_result(result), style="dim"))
    if not results:
        console.print(Text(f" {_verdict(False)[0]} no memory came back", style="red"))
    took = f"{asked.client_ms:.1f} ms here, {asked.answer.get('took_ms', '?')} ms in the server"
    console.print(Text(" " * 3 + f"{took} · {describe_channels(asked.answer)}", style="cyan"))


def describe_result(result: Mapping[str, Any]) -> str:
    """Return a result's kind, day, score and signals."""
    day = str(result.get("occurred_at") or result.get("created_at") or "")[:10]
    score = result.get("score")
    shown = f"score {score:.3f}" if isinstance(score, int | float) else "no score"
    return f"{result.get('kind', '?')} · {day} · {shown} · {describe_signals(result.get('signals'))}"


def _headline(width: int, mark: str, style: str, rank: int, result: Mapping[str, Any], around: str) -> Text:
    line = Text(f" {mark} ", style=style)
    return line.append(f"{rank} {one_line(result['content'], width - INDENT, around)}", style="none")


def _verdict(good: bool) -> tuple[str, str]:
    return ("✓", "bold green") if good else ("✗", "bold red")


def print_fact(console: Console, asked: FactQuestion, now: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    """Print the value of a fact now and as of a time, and return whether it was then as expected."""
    found = str(then["value"]) == asked.expect
    mark, style = _verdict(found)
    console.print()
    console.print(Text("Fact: ").append(f"{asked.subject} {asked.attribute}", style="bold"))
    console.print(Text(f"   ({asked.why})", style="dim"))
    console.print(Text(f"   now {now['value']}, since {now['valid_from'][:10]}"))
    until = f" until {then['valid_to'][:10]}" if then.get("valid_to") else ""
    line = f"as of {asked.as_of[:10]} {then['value']}, since {then['valid_from'][:10]}{until}"
    console.print(Text(f" {mark} ", style=style).append(line, style="none"))
    return found


def print_hook(console: Console, question: Question, context: str, client_ms: float) -> bool:
    """Print what the hook adds to a prompt and tell whether the expected memory is in it."""
    found = question.expect in context
    mark, style = _verdict(found)
    console.print()
    console.print(Text("Hook, before the agent answers: ").append(question.ask, style="bold"))
    console.print(Text(f"   ({question.why})", style="dim"))
    for line in context.splitlines() or ["(nothing)"]:
        console.print(Text("   │ ", style="dim").append(one_line(line, console.width - INDENT, question.expect)))
    verdict = "the expected memory is in it" if found else f"missing: {question.expect}"
    console.print(Text(f" {mark} ", style=style).append(f"{verdict} · {client_ms:.1f} ms", style="none"))
    return found


def print_log_tail(console: Console, tail: str) -> None:
    """Print the end of the stack's log as it is."""
    console.print(Text("The end of the stack's log:", style="bold"))
    for line in tail.splitlines():
        console.print(Text("  │ ", style="dim").append(line), soft_wrap=True)
