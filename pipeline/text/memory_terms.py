"""The text, the terms and the tags under which a memory is found: what an agent is shown of it, and its metadata."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

from pipeline.kernel.records import CAPTURED_TAG, EntityKind, Kind, Memory
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.normalize import normalize_tag
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
    further = [
        token for text in (*_field_texts(memory), *list_own_tags(memory), *path) for token in search_tokens(text)
    ]
    metadata = dict.fromkeys(token for text in list_value_texts(memory.metadata) for token in search_tokens(text))
    return [
        *memory_tokens(memory.content, memory.occurred_at),
        *further,
        *map(metadata_term, list(metadata)[:MAX_METADATA_TERMS]),
    ]


def list_own_tags(memory: Memory) -> tuple[str, ...]:
    """Return the tags that say more than the text of a memory; capture tags a statement with its class."""
    return () if CAPTURED_TAG in memory.tags else drop_repeating_tags(memory.tags, memory.kind, memory.content)


def _field_texts(memory: MemoryText) -> list[str]:
    fields = (memory.details.get(name) for name in _TEXT_FIELDS.get(memory.kind, ()))
    texts = [text for value in fields for text in list_value_texts(value)]
    return [text for text in dict.fromkeys(texts) if text not in memory.content]


def list_value_texts(value: Any, *, with_keys: bool = False) -> Iterator[str]:
    """Yield every text in a JSON value of any depth, in order, and its keys if they are wanted."""
    waiting = [value]
    while waiting:
        if isinstance(part := waiting.pop(), str):
            yield part
        elif isinstance(part, Mapping):
            waiting += reversed([*(chain.from_iterable(part.items()) if with_keys else part.values())])
        elif isinstance(part, list | tuple):
            waiting += reversed(part)


# Tags of a memory that was stored without any, from its kind and the names in it

MOST_TAGS = 3
# Longer names are phrases.
LONGEST_NAME = 30
# Kinds that people and agents write. Others are imported or computed, and have their own fields.
_TAGGED_KINDS = frozenset({Kind.FACT, Kind.DECISION, Kind.LESSON, Kind.QA})
NAMED_KINDS = (EntityKind.PRODUCT, EntityKind.PACKAGE, EntityKind.ORGANISATION)


def derive_tags(kind: Kind, mentions: Sequence[EntityMention]) -> tuple[str, ...]:
    """Return at most three tags: the first products, packages and organisations, and the kind unless it is a fact."""
    if kind not in _TAGGED_KINDS:
        return ()
    kinds = () if kind is Kind.FACT else (normalize_tag(kind),)
    names = (mention.name for mention in mentions if mention.kind in NAMED_KINDS)
    tags = dict.fromkeys(tag for name in names if len(name) <= LONGEST_NAME and (tag := normalize_tag(name)))
    return (*list(tags)[: MOST_TAGS - len(kinds)], *kinds)


def drop_derived_tags(tags: Collection[str], kind: Kind, names: Collection[str]) -> tuple[str, ...]:
    """Return the tags without those that repeat a memory's kind or the name of an entity that it mentions."""
    derived = {normalize_tag(kind), *map(normalize_tag, names)}
    return tuple(tag for tag in tags if tag not in derived)


def drop_repeating_tags(tags: Collection[str], kind: Kind, content: str) -> tuple[str, ...]:
    """Return the tags that say something more than a memory's kind and text; derived tags never do."""
    if not tags:
        return ()
    text_tokens = set(search_tokens(content))
    return tuple(tag for tag in tags if tag != normalize_tag(kind) and not text_tokens.issuperset(search_tokens(tag)))
