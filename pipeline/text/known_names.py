"""Find listed names, names of the workspace, and people and programs that the sentence reveals, in any language."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from functools import cache

from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.component_names import find_hyphenated_names
from pipeline.text.languages import find_language, is_function_word, may_be_foreign
from pipeline.text.lexicon import load_lexicon, word_set

_LEXICON = load_lexicon("names")
_LONGEST = 3  # words

_WORD = re.compile(r"(?<![\w@/.$=&-])[^\W\d_][\w+#]*(?:(?:['’.&-]|(?<=&)\s|\s(?=&\s))[\w+#]+)*")
_COMPOUND_END = re.compile(r"(?:-|['’]s\b|['’]$)")
_NEXT_NAME = re.compile(r" [A-ZÄÖÜÅØŁŠŽČ][\w'’]*[^\W\d_]")
_CLAUSE_END = re.compile(r"['’]?s?(?:$|[,.;:)!?\n]| (?:and|und|from|aus|von|who|hat|ist|wird|is|was|has)\b)")
_SURNAME = re.compile(rf"\w*(?:{_LEXICON.alternatives('surname_ends')})")
# A verb may precede a name, and a noun may follow it: "hat Lena Zugriff".
_NAME_BEFORE = re.compile(r"(?:(?:^|[.!?:,;(\n])\s*|\b(?:mit|von|bei|und|an|with|by|from|and|Herrn?|Frau|Dr\.) )$")

_VERSION_AFTER = re.compile(r"[ \t]+v?[0-9]+(?:\.[0-9]+)*\b")
_WRITTEN_BEFORE = re.compile(
    r"(?i:\b(?:(?:re)?written|ported|service|code|module|library|client|geschrieben|Dienst)[ \t]+"
    r"(?:in|to|with)|\b(?:in|mit)|\buse[sd]?|\busing|\bto)[ \t]+$"
)

PERSON_BEFORE = re.compile(rf"(?:\b(?:{_LEXICON.alternatives('person_cues')})[ \t]+)$", re.IGNORECASE)
PERSON_AFTER = re.compile(rf"[ \t]+(?:{_LEXICON.alternatives('person_verbs')})\b")
_TITLED = re.compile(r"\b(?:Herrn?|Frau|Mrs?\.?|Ms\.?|Dr\.|Prof\.|Doktor|Professor)[ \t]+$")
_TITLES = frozenset({"Doktor", "Professor", "Prof", "Dr"})
ORGANISATION_BEFORE = re.compile(rf"\b(?i:{_LEXICON.alternatives('organisation_cues')})[ \t]+(?:the[ \t]+)?$")
ORGANISATION_AFTER = re.compile(
    rf"[ \t]+(?:{_LEXICON.alternatives('organisation_ends')}|{_LEXICON.alternatives('organisation_nouns')})(?!\w)"
)
ORGANISATION_END = re.compile(rf".* (?:{_LEXICON.alternatives('organisation_ends')})")
_PLACE_CUES = "|".join(cue.replace("_", " ") for cue in _LEXICON.words("place_cues"))
PLACE_BEFORE = re.compile(rf"\b(?:{_PLACE_CUES})[ \t]+$", re.IGNORECASE)
IS_SOFTWARE = re.compile(
    r"['’]?s?[ \t]+(?:is|was|are|ist|war|heißt)[ \t]+(?:an?|the|our|my|unser\w*|mein\w*|de[rs]|die|das|eine?)[ \t]+"
    rf"(?:[\w-]+[ \t]+){{0,3}}(?:{_LEXICON.alternatives('software_kinds')})\b"
)

_IS_OURS = re.compile(rf" (?:is|ist) (?:our|unser\w*) (?:[\w-]+ )?(?:{_LEXICON.alternatives('software_kinds')})\b")


def find_known_names(text: str) -> Iterator[tuple[EntityKind, int, int]]:
    """Yield kind, start and end of each known name, in text order."""
    end, english = 0, not may_be_foreign(text)
    for match in _WORD.finditer(text):
        if match.start() < end:
            continue
        name = (
            _match_listed(text, match) or _match_own_product(text, match) or _match_person(text, match, english=english)
        )
        if name is not None:
            yield name
            end = name[2]


def is_given_name(word: str) -> bool:
    """Return whether a word is a first name, even if it has another meaning too."""
    return word in word_set("names", "given_names") or word in word_set("names", "ambiguous_given_names")


def needs_cue(word: str) -> bool:
    """Return whether a word names a product only next to a version or a software cue."""
    return word in word_set("names", "cued_products") or is_given_name(word)


def find_listed_kind(name: str) -> EntityKind | None:
    """Return the kind of a name that is unambiguous in any context."""
    kind, spelling = _kinds_of_names().get(name.casefold(), (None, ""))
    return kind if not spelling or spelling == name else None


def find_listed_alias(kind: EntityKind, name: str) -> str | None:
    """Return the product that a product's name is another name of, both in canonical form."""
    return _aliases().get(name) if kind is EntityKind.PRODUCT else None


def _match_listed(text: str, word: re.Match[str]) -> tuple[EntityKind, int, int] | None:
    for surface in _spellings(text, word):
        end = word.start() + len(surface)
        if kind := find_listed_kind(surface):
            return kind, word.start(), end
        before = text[max(0, word.start() - 40) : word.start()]
        if surface in word_set("names", "cued_products") and (
            _VERSION_AFTER.match(text, end) or _WRITTEN_BEFORE.search(before)
        ):
            return EntityKind.PRODUCT, word.start(), end
    return None


def _match_own_product(text: str, word: re.Match[str]) -> tuple[EntityKind, int, int] | None:
    named = word[0].istitle() and _IS_OURS.match(text, word.end())
    return (EntityKind.PRODUCT, word.start(), word.end()) if named else None


def _spellings(text: str, word: re.Match[str]) -> Iterator[str]:
    """Yield the possible names that start with a word, the longest first."""
    runs, end = [word[0]], word.end()
    while len(runs) < _LONGEST and text[end : end + 1] == " " and (after := _WORD.match(text, end + 1)):
        end = after.end()
        runs.append(text[word.start() : end])
    yield from reversed(runs)
    head = _COMPOUND_END.split(word[0], maxsplit=1)[0]
    if head != word[0]:
        yield head


def _match_person(text: str, word: re.Match[str], *, english: bool) -> tuple[EntityKind, int, int] | None:
    head = _COMPOUND_END.split(word[0], maxsplit=1)[0]
    start, end = word.start(), word.start() + len(head)
    before = text[max(0, start - 40) : start]
    titled = head.istitle() and head not in _TITLES and _TITLED.search(before)
    if not titled and not _is_surely_given(head, text, end, before):
        return None
    # "Max-Wert" is a noun, "Lena's" a name.
    if text[end : end + 1] == "-" and text[end + 1 : word.end()] not in word_set("names", "given_names"):
        return None
    return EntityKind.PERSON, start, _surname_end(text, end, before, english=english)


def _is_surely_given(head: str, text: str, end: int, before: str) -> bool:
    if head in word_set("names", "given_names"):
        return True
    # Few words are such names, so the patterns come last.
    return head in word_set("names", "ambiguous_given_names") and bool(
        PERSON_BEFORE.search(before) or PERSON_AFTER.match(text, end)
    )


def _surname_end(text: str, end: int, before: str, *, english: bool) -> int:
    following = _NEXT_NAME.match(text, end)
    if following is None or find_listed_kind(following[0].strip()) is not None:
        return end
    # In other languages nouns may be capitalized.
    ends = english or (bool(_CLAUSE_END.match(text, following.end())) and bool(_NAME_BEFORE.search(before)))
    return following.end() if ends or _SURNAME.fullmatch(following[0].strip()) else end


@cache
def _kinds_of_names() -> Mapping[str, tuple[EntityKind, str]]:
    """Return the kind of each listed name by its folded form, and its required spelling, if any."""
    lists = (
        (EntityKind.PLACE, "places", True),
        (EntityKind.ORGANISATION, "organisations", True),
        (EntityKind.PRODUCT, "capitalised_products", True),
        (EntityKind.PRODUCT, "products", False),
    )
    return {
        name.casefold(): (kind, name if exact else "")
        for kind, topic, exact in lists
        for name in (entry.replace("_", " ") for entry in _LEXICON.words(topic))
    }


@cache
def _aliases() -> Mapping[str, str]:
    return {
        alias: name.replace("_", " ")
        for name, aliases in _LEXICON.table("product_aliases").entries.items()
        for alias in (entry.replace("_", " ") for entry in aliases.split())
    }


# Names that a workspace already has, and names in languages that the tagger does not support

_PLAIN_WORD = re.compile(r"[^\W_]\w*")
# English has a tagger; in German every noun has a capital.
_WITHOUT_RULE = frozenset({None, "english", "german"})
_CAPITAL_WORD = r"[A-ZÀ-ÖØ-ÞŁŠŽČ][\w'’]*[a-zß-öø-ÿšžčłńę](?:-[A-ZÀ-ÖØ-Þ][\w'’]*[^\W\d_])*"
_CAPITALIZED_NAME = re.compile(
    rf"(?<![\w@/.#$&+_-]){_CAPITAL_WORD}(?: (?:(?:de|del|da|di|du|van) )?{_CAPITAL_WORD}){{0,2}}(?![\w@/(_-])"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:\n][ \t\"«¿¡*>-]*)$")


def list_capitalized(texts: Iterable[str]) -> set[str]:
    """Return the capitalized words of some texts, folded."""
    return {word.casefold() for text in texts for word in _PLAIN_WORD.findall(text) if word[0].isupper()}


def find_workspace_names(
    text: str, products: AbstractSet[str], names: Mapping[str, EntityKind]
) -> Iterator[EntityMention]:
    """Yield the mentions of the workspace's own products, by canonical name, and of its hyphenated names."""
    for match in _PLAIN_WORD.finditer(text) if products else ():
        # An ambiguous name needs its cue each time: "Go to the top".
        if match[0][0].isupper() and match[0].casefold() in products and not needs_cue(match[0]):
            yield EntityMention(EntityKind.PRODUCT, match[0].casefold(), match[0], *match.span())
    for kind, start, end in find_hyphenated_names(text, names):
        yield EntityMention(kind, text[start:end], text[start:end], start, end)


def find_untagged_names(text: str) -> list[EntityMention]:
    """Find the names in a text that the tagger does not support; their kinds depend on the context."""
    return [
        EntityMention(EntityKind.PERSON, text[start:end], text[start:end], start, end)
        for start, end in find_capitalized_names(text)
    ]


def find_capitalized_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name; at the start of a sentence only names of two words."""
    language = find_language(text)
    if language in _WITHOUT_RULE:
        return
    for match in _CAPITALIZED_NAME.finditer(text):
        start, words = match.start(), match[0].split(" ")
        if is_function_word(words[0].lower()) or len(words[0]) < 3:
            start += len(words.pop(0)) + 1
        elif len(words) == 1 and _SENTENCE_START.search(text[max(0, start - 8) : start]):
            continue
        if words and start < match.end():
            yield start, match.end()
