"""Traits of each kind of memory: initial importance, decay, and rendering."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from pipeline.kernel.records import CAPTURED_TAG, Anchor, Kind, Memory, Sensitivity, Source, Tier
from pipeline.kernel.times import format_due

_WORD = re.compile(r"\w+")
MAX_ARTICLE_CHARS = 3
# Maximum length of a reason that is shown with a rule.
MAX_REASON_CHARS = 200
# Weakest first.
SEVERITIES = ("info", "warning", "critical")
SENSITIVITIES = tuple(Sensitivity)


@dataclass(frozen=True, slots=True)
class Traits:
    """A kind's initial importance (0 to 1) and tier, and the days in which its importance halves."""

    importance: float
    tier: Tier
    half_life_days: float


TRAITS: Mapping[Kind, Traits] = {
    Kind.FACT: Traits(0.5, Tier.EPISODIC, 90),
    Kind.DECISION: Traits(0.7, Tier.SEMANTIC, 365),
    Kind.LESSON: Traits(0.7, Tier.SEMANTIC, 365),
    Kind.GOAL: Traits(0.6, Tier.EPISODIC, 120),
    Kind.ACTIVITY: Traits(0.3, Tier.WORKING, 14),
    Kind.MILESTONE: Traits(0.6, Tier.SEMANTIC, 365),
    Kind.QA: Traits(0.5, Tier.EPISODIC, 90),
    Kind.CODE: Traits(0.5, Tier.EPISODIC, 60),
    Kind.DOCUMENT: Traits(0.5, Tier.SEMANTIC, 180),
    Kind.EPISODE: Traits(0.4, Tier.WORKING, 30),
    Kind.KEYED_FACT: Traits(0.6, Tier.SEMANTIC, 365),
}


# Kinds whose text states what is so. The others state what happened, or repeat indexed files.
STATES_PRESENT = frozenset({Kind.FACT, Kind.DECISION, Kind.LESSON, Kind.KEYED_FACT, Kind.QA})


class RenderedMemory(Protocol):
    """The parts of a memory that its rendered text consists of."""

    @property
    def content(self) -> str:
        """Return the content."""

    @property
    def kind(self) -> Kind:
        """Return the kind."""

    @property
    def details(self) -> Mapping[str, Any]:
        """Return the fields of the kind."""

    @property
    def anchor(self) -> Anchor | None:
        """Return the place in a file that the memory is about."""


def render_text(memory: RenderedMemory) -> str:
    """Return a memory's text with the additions of its kind and its anchor."""
    render = _RENDERERS.get(memory.kind)
    text = memory.content if render is None else render(memory)
    return text if memory.anchor is None else f"{text} ({_place(memory.anchor)})"


def render_rule(memory: Memory) -> str:
    """Return a lesson's text, and a short experience behind its rule if the lesson records one."""
    text, rule = render_text(memory), memory.details.get("rule")
    if memory.kind is not Kind.LESSON or not rule or memory.content in text or len(memory.content) > MAX_REASON_CHARS:
        return text
    reason = memory.content.replace(rule, "").strip(" .,;:–—-")
    return f"{text} — {reason}" if reason else text


def is_repeated_statement(memory: Memory, earlier: Memory) -> bool:
    """Return whether a person repeated a captured statement in other words, in another session.

    Equal words may be the same text, pasted twice: a copy confirms nothing.
    """
    are_captured = [
        statement.source is Source.AMBIENT and CAPTURED_TAG in statement.tags for statement in (memory, earlier)
    ]
    if (
        not all(are_captured)
        or None in (memory.session_id, earlier.session_id)
        or memory.session_id == earlier.session_id
    ):
        return False
    return _said_words(memory) != _said_words(earlier)


def list_standing(memory: Memory) -> dict[str, Any]:
    """Return the fields of which a merge keeps the stronger value; `severity` only for a lesson."""
    standing = {
        "pinned": memory.pinned,
        "sensitivity": memory.sensitivity or Sensitivity.NORMAL,
        "expires_at": memory.expires_at,
    }
    if memory.kind is Kind.LESSON:
        standing["severity"] = memory.details.get("severity")
    return standing


def join_standing(values: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stronger value of each field in `values`: pinned, more sensitive, expiring later, more severe."""
    return {name: max((value, other.get(name, value)), key=_STRENGTH[name]) for name, value in values.items()}


def apply_standing(memory: Memory, standing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a memory that change if these values apply to it."""
    current = list_standing(memory)
    changed = {name: value for name, value in standing.items() if name in current and value != current[name]}
    if "severity" in changed:
        changed["details"] = {**memory.details, "severity": changed.pop("severity")}
    return changed


_STRENGTH: Mapping[str, Callable[[Any], Any]] = {
    "pinned": bool,
    "sensitivity": SENSITIVITIES.index,
    # A memory without an expiry outlives every other: a merge never ends what one of the two would keep.
    "expires_at": lambda at: (at is None, at or ""),
    "severity": lambda severity: SEVERITIES.index(severity) if severity in SEVERITIES else -1,
}


def _said_words(memory: Memory) -> frozenset[str]:
    """Return the words of a statement without case, order, punctuation and short words such as articles."""
    # The text of a keyed fact is generated; the person's words are in its metadata.
    words = str(memory.metadata.get("said", memory.content)).casefold()
    return frozenset(word for word in _WORD.findall(words) if len(word) > MAX_ARTICLE_CHARS)


def confirms_all_fields(witness: Memory, memory: Memory) -> bool:
    """Return whether the first memory supports every field that the second memory is rendered with.

    Their texts are not compared: they are known to say the same.
    """
    text = render_text(memory)
    return text in (memory.content, render_text(replace(witness, content=memory.content)))


def _decision(memory: RenderedMemory) -> str:
    reason, alternatives = memory.details.get("reason"), memory.details.get("alternatives")
    because = f" — because {reason}" if reason else ""
    instead = f" (instead of {', '.join(alternatives)})" if alternatives else ""
    return f"{memory.content}{because}{instead}"


def _lesson(memory: RenderedMemory) -> str:
    rule, when = memory.details.get("rule") or memory.content, memory.details.get("applies_when")
    if not when:
        return str(rule)
    # Some conditions contain the word "when", some do not.
    condition = when[5:] if when[:5].lower() == "when " else when
    return f"When {condition}: {rule}"


def _goal(memory: RenderedMemory) -> str:
    progress, due = memory.details.get("progress"), memory.details.get("due_at")
    state = str(memory.details.get("status", "open")).replace("_", " ")
    return memory.content + _aside(
        state, f"{progress:.0%}" if progress else "", f"due {format_due(due)}" if due else ""
    )


def _prepend_detail(name: str, memory: RenderedMemory) -> str:
    head = memory.details.get(name)
    return f"{head}: {memory.content}" if _new(head, memory) else memory.content


def _activity(memory: RenderedMemory) -> str:
    tool, failed = memory.details.get("tool"), memory.details.get("succeeded") is False
    return memory.content + _aside(_new(tool, memory), "failed" if failed else "")


def _question(memory: RenderedMemory) -> str:
    parts = (_new(memory.details.get("question"), memory), memory.content, _new(memory.details.get("answer"), memory))
    return " — ".join(part for part in parts if part)


def _document(memory: RenderedMemory) -> str:
    return _prepend_detail("title", memory) + _aside(_new(memory.details.get("uri"), memory))


def _episode(memory: RenderedMemory) -> str:
    began, ended = (memory.details.get(name, "")[:16].replace("T", " ") for name in ("started_at", "ended_at"))
    return memory.content + _aside(f"from {began}" if began else "", f"until {ended}" if ended else "")


_RENDERERS: Mapping[Kind, Callable[[RenderedMemory], str]] = {
    Kind.DECISION: _decision,
    Kind.LESSON: _lesson,
    Kind.GOAL: _goal,
    Kind.ACTIVITY: _activity,
    Kind.MILESTONE: partial(_prepend_detail, "chain"),
    Kind.QA: _question,
    Kind.CODE: partial(_prepend_detail, "symbol"),
    Kind.DOCUMENT: _document,
    Kind.EPISODE: _episode,
}


def _new(text: str | None, memory: RenderedMemory) -> str:
    """Return a text unless the memory already contains it."""
    return "" if text is None or text in memory.content else text


def _aside(*parts: str) -> str:
    remark = ", ".join(part for part in parts if part)
    return f" ({remark})" if remark else ""


def _place(anchor: Anchor) -> str:
    if anchor.first_line is None:
        return anchor.path
    last = anchor.last_line or anchor.first_line
    lines = f"{anchor.first_line}" if last == anchor.first_line else f"{anchor.first_line}-{last}"
    return f"{anchor.path}:{lines}"


def is_said(memory: Memory) -> bool:
    """Return whether a memory has the user's own words."""
    return memory.source is Source.USER or CAPTURED_TAG in memory.tags


def is_indexed(memory: Memory) -> bool:
    """Return whether a memory was indexed from the code or the history of a project."""
    return memory.source is Source.IMPORT and (memory.kind in (Kind.CODE, Kind.ACTIVITY) or "commit" in memory.metadata)
