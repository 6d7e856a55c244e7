"""The text and the terms under which a memory is found: what an agent is shown of it, its tags and its metadata."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from pipeline.records import CAPTURED_TAG, Kind, Memory
from pipeline.text.derived_tags import drop_repeating_tags
from pipeline.text.tokens import memory_tokens, metadata_term, search_tokens

# Beyond these, metadata is data rather than description.
MAX_METADATA_TERMS = 200

# The fields of each kind that say what the memory is about. States, dates and numbers do not.
_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    Kind.DECISION: ("reason", "alternatives"),
    Kind.LESSON: ("rule", "applies_when"),
    Kind.ACTIVITY: ("tool",),
    Kind.MILESTONE: ("chain",),
    Kind.QA: ("question", "answer"),
    Kind.CODE: ("symbol",),
    Kind.DOCUMENT: ("title", "uri"),
}


class MemoryText(Protocol):
    """The parts of a memory that its text consists of."""

    @property
    def content(self) -> str:
        """Return the content."""

    @property
    def kind(self) -> str:
        """Return the kind."""

    @property
    def details(self) -> Mapping[str, Any]:
        """Return the fields of the kind."""


def embedded_text(memory: MemoryText) -> str:
    """Return the text of a memory that is embedded: its content and the texts of its kind's fields."""
    return "\n".join([memory.content, *_field_texts(memory)])


def memory_terms(memory: Memory) -> list[str]:
    """Return the terms of a memory: of its text, tags, anchor and day, and, as fields, those of its metadata."""
    path = () if memory.anchor is None else (memory.anchor.path,)
    beside = [token for text in (*_field_texts(memory), *list_own_tags(memory), *path) for token in search_tokens(text)]
    metadata = dict.fromkeys(token for text in _values(memory.metadata) for token in search_tokens(text))
    return [
        *memory_tokens(memory.content, memory.occurred_at),
        *beside,
        *map(metadata_term, list(metadata)[:MAX_METADATA_TERMS]),
    ]


def list_own_tags(memory: Memory) -> tuple[str, ...]:
    """Return the tags that say more than the text of a memory; capture tags a statement with its class."""
    return () if CAPTURED_TAG in memory.tags else drop_repeating_tags(memory.tags, memory.kind, memory.content)


def _field_texts(memory: MemoryText) -> list[str]:
    fields = (memory.details.get(name) for name in _TEXT_FIELDS.get(memory.kind, ()))
    texts = [text for value in fields for text in _values(value)]
    return [text for text in dict.fromkeys(texts) if text not in memory.content]


def _values(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _values(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _values(part)
