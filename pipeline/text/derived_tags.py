"""Tags of a memory that was stored without any, from its kind and the names in it."""

from collections.abc import Collection, Sequence

from pipeline.records import EntityKind, Kind
from pipeline.records.digestion import EntityMention
from pipeline.text.normalize import normalize_tag
from pipeline.text.tokens import search_tokens

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
