"""Recognize the forms of orders to the memory: to remember a statement, to delete what was said, to store nothing.

The expressions of seven languages are in `lexicon/orders.toml`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from pipeline.text.lexicon import Lexicon, load_lexicon
from pipeline.text.sentences import split_typed_sentences

# An order stands in the first words of its sentence; only the text to remember may be longer.
LONGEST_ORDER: Final = 400
# A statement has at least two words.
_STATEMENT: Final = re.compile(r"\w\S*\s+\S*\w")
# "Remember to always run the tests" is a statement, "remember to run the tests" a task.
_HABIT: Final = re.compile(r"^to\s(?=(?:always|never)\b)", re.IGNORECASE)
_CLAUSE_START: Final = r"(?:^[\s¿¡(*-]{0,6}|(?<=[.!?;,:…)—–-])\s+)"
_CLAUSE_END: Final = r"(?=\s*(?:$|[.!?,;:…)]|\s[-–—]\s|\b(?:because|it|since|weil|porque|car|perché|omdat)\b))"
_POLITE: Final = (
    r"(?:please|pls|plz|kindly|bitte|por\sfavor|s'il\s(?:te|vous)\spla[iî]t|stp|svp|per\sfavore|alsjeblieft)"
)
# The starts of the words without which no order is given.
_ORDER_WORD: Final = re.compile(
    r"\b(?:remember|memor|in\smind|not[ei]|jot|mak\w+\s\w*\s?note|take|taking|save|add|commit|store|put|write|writing|forget|"
    r"merke?|gemerkt|kopf|hinterkopf|ged[äa]chtnis|schreib|aufschreib|d(?:a)?ran|vergiss|vergessen|halte?\b|nimm|"
    r"beachte|wiss|speicher|recu?[eé]rd|acord|acu[eé]rd|cuenta|presente|olvid|toma|tome|nota|apunt|ap[uú]nt|anot|an[oó]t|"
    r"guard|t[eé]n|souven|souvien|reten|retien|rappel|prend|gard|oubli|n'oubli|sach|m[eé]mor|ricord|tieni|tenere|tenga|"
    r"tienilo|dimentic|segn|lembr|record|mente|conta|esque[cç]|onthou|gedachten|houd?|vergeet|vergeten|noteer|noter|denk|"
    r"bedenk|schrijf|weet|let\sop|aware|know|block\w*|sperren?|bloqu[eé]\w*)",
    re.IGNORECASE,
)
# A text without such a word is not about recording. In lower case: to ignore case takes several times as long.
_KEEPING_WORD: Final = re.compile(
    r"record|stor|sav|rememb|kept|keep|logged|written|memor|m[ée]mo|notes|aufge|gespei|festge|protok|notier|merk|speich|"
    r"beh[äa]lt|ged[äa]ch|erinner|notiz|guard|regist|grab|recuerd|notas|enregistr|gard|reten|noté|conserv|stock|salv|ricord|"
    r"note|grav|opgesl|bewa|ontho|vastgel|genot|geheug|notit|sla\b"
)


@dataclass(frozen=True, slots=True)
class StatementOrder:
    """An order to remember a text, and its place in the line."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Remember:
    order: "re.Pattern[str]"
    last: "re.Pattern[str]"


@dataclass(frozen=True, slots=True)
class _Forms:
    remember: tuple[_Remember, ...]
    # The verbs of these orders: most sentences contain none.
    remember_verb: "re.Pattern[str]"
    # Where the question that asks for an order ends: "could you please ".
    asking: "re.Pattern[str]"
    tail: "re.Pattern[str]"
    asks: "re.Pattern[str]"
    asks_for_thing: "re.Pattern[str]"
    writing: "re.Pattern[str]"
    purge: "re.Pattern[str]"
    purge_verb: "re.Pattern[str]"
    idiom: "re.Pattern[str]"
    unsaved: "re.Pattern[str]"


def has_order_word(text: str) -> bool:
    """Return whether a text may contain an order; nearly all prompts do not, and need not be read."""
    return _ORDER_WORD.search(text) is not None


def find_statement_orders(line: str) -> list[StatementOrder]:
    """Return the orders to remember a statement in a line, in order."""
    line = line.replace("’", "'")
    orders: list[StatementOrder] = []
    previous = ""
    for start, sentence in _locate_sentences(line):
        is_first = not line[:start].strip()
        order = None
        if _forms().remember_verb.search(sentence[:LONGEST_ORDER] + sentence[LONGEST_ORDER:][-LONGEST_ORDER:]):
            order = _read_order(line, start, sentence, is_first=is_first) or _read_last(start, sentence, previous)
        if order is not None:
            orders.append(order)
            if order.end >= len(line.rstrip()):
                break
        previous = sentence
    return orders


def drop_asking(line: str) -> str | None:
    """Return an order without the question that asks for it: "could you forget …?"; None for other lines."""
    text = line.replace("’", "'").rstrip()
    match = _forms().asking.match(text[:LONGEST_ORDER])
    return None if match is None else text[match.end() :].rstrip("? ")


def orders_purge(sentence: str) -> bool:
    """Return whether a sentence orders to delete what was said and names it: "forget what I just said"."""
    return may_purge(sentence) and _forms().purge.search(_read_beginning(sentence)) is not None


def may_purge(text: str) -> bool:
    """Return whether a text contains a verb of deleting."""
    return _forms().purge_verb.search(text.lower()) is not None


def drop_idioms(sentence: str) -> str:
    """Return a sentence without the clauses that only mean "never mind": "forget it"."""
    return _forms().idiom.sub(" ", sentence.replace("’", "'"))


def refuses_record(sentence: str) -> bool:
    """Return whether a sentence says that its message is not to be recorded: "(not for the memory)"."""
    return may_refuse_record(sentence) and _forms().unsaved.search(_read_beginning(sentence)) is not None


def may_refuse_record(text: str) -> bool:
    """Return whether a text contains a word about recording."""
    return _KEEPING_WORD.search(text.lower()) is not None


def _read_beginning(sentence: str) -> str:
    return sentence[:LONGEST_ORDER].replace("’", "'")


def _locate_sentences(line: str) -> Iterator[tuple[int, str]]:
    end = 0
    for sentence in split_typed_sentences(line):
        # A sentence with irregular spaces was joined from parts: it starts with the first part.
        start = line.find(sentence.split(maxsplit=1)[0], end)
        end = start + len(sentence)
        yield start, line[start:end]


def _read_order(line: str, start: int, sentence: str, *, is_first: bool) -> StatementOrder | None:
    forms = _forms()
    for language in forms.remember:
        match = language.order.search(sentence[:LONGEST_ORDER])
        if match is None or (match["noted"] is not None and match["polite"] is None):
            continue
        is_plain, has_colon = match["plain"] is not None and match["polite"] is None, match["colon"] is not None
        # At the start of a line, the order is about all that follows.
        takes_line = has_colon or (is_first and match["asked"] is None and not match["before"].strip())
        text = line[start + match.start("text") :] if takes_line else sentence[match.start("text") :]
        end = len(line) if takes_line else start + len(sentence)
        text = text.strip()
        stripped = _strip_tail(text)
        # The question mark belongs to the text: "remember that time?"
        is_question = text.endswith("?") and match["asked"] is None and stripped == text.rstrip("? ")
        asks_for_thing = match["that"] and match["asked"] and forms.asks_for_thing.match(stripped)
        is_habit = _HABIT.match(stripped) is not None
        reminisces = match["bare"] and is_plain and match["plain"].lower().startswith("remember") and not is_habit
        if (
            (is_question and not (has_colon and forms.asks.match(text) is None))
            or asks_for_thing
            or reminisces
            or forms.writing.search(f"{match['head']} {stripped}")
        ):
            continue
        if stripped := _HABIT.sub("", stripped):
            return StatementOrder(stripped, start + match.start("head"), end)
    return None


def _read_last(start: int, sentence: str, previous: str) -> StatementOrder | None:
    """Return the order to remember the words before it: "We never deploy on Fridays, remember that."."""
    for language in _forms().remember:
        match = language.last.search(sentence[-LONGEST_ORDER:])
        if match is None:
            continue
        before = sentence[: len(sentence) - len(sentence[-LONGEST_ORDER:]) + match.start()].strip(" ,;—–-")
        text = before or previous.strip()
        if _STATEMENT.search(text) and not text.endswith("?"):
            return StatementOrder(text, start if before else max(0, start - len(previous) - 1), start + len(sentence))
    return None


def _strip_tail(text: str) -> str:
    """Return a text without the question mark and the courtesy of its order: "…, ok?"."""
    ended = text.rstrip("? ")
    match = _forms().tail.search(ended[-40:])
    return ended if match is None else ended[: len(ended) - len(match[0])].rstrip(" ,")


def _spaced(expression: str) -> str:
    return expression.replace(" ", r"\s")


@cache
def _forms() -> _Forms:
    lexicon = load_lexicon("orders")
    leads = _spaced(lexicon.entries["leads"])
    lead = rf"(?:(?P<polite>{_POLITE})[,.!:…]*\s+|(?:{leads})[,.!:…]*\s+){{0,5}}"
    remember = lexicon.table("remember")
    languages = [remember.table(name) for name in remember.entries]
    asks = _spaced("|".join(language.entries["asks"] for language in languages))
    verbs = _spaced("|".join(language.entries[key] for language in languages for key in ("verbs", "must", "last")))
    return _Forms(
        remember=tuple(_compile_remember(language, lead) for language in languages),
        remember_verb=_compile(rf"\b(?:{verbs})\b"),
        asking=_compile(rf"^[\s¿¡]*{_unnamed(lead)}(?:{asks})\s+(?:{_POLITE},?\s+)*"),
        tail=_compile(rf"(?:{_spaced(lexicon.entries['tails'])})+[.!]*$"),
        asks=_compile(_spaced(lexicon.entries["asks"])),
        asks_for_thing=_compile(_spaced(lexicon.entries["asks_for_thing"])),
        writing=_compile(_spaced(lexicon.entries["writing"])),
        purge_verb=re.compile(_spaced(rf"\b(?:{_list_purge_verbs(lexicon.table('purge'))})\b")),
        purge=_compile_purge(lexicon.table("purge"), _unnamed(lead), asks),
        idiom=_compile(
            rf"(?:^|(?<=[.!?;,…—–-]))\s*(?:(?:{leads}|never\s?mind|nvm)[,.!…]*\s+){{0,4}}"
            rf"(?:{_spaced(lexicon.table('idioms').alternatives('all'))})(?=\s*(?:$|[.!?;,…—–-]))"
        ),
        unsaved=_compile(
            rf"{_CLAUSE_START}{_unnamed(lead)}(?:{_spaced(lexicon.table('unsaved').alternatives('all'))})\b"
            rf"|[(\[]\s*(?:{_spaced(lexicon.table('unsaved').alternatives('in_brackets'))})\s*[)\]]"
            rf"|(?:^|[(\[])\s*(?:{_spaced(lexicon.table('unsaved').alternatives('labels'))})\s*(?:$|[)\].!?:,;–—-])"
        ),
    )


def _compile_remember(language: Lexicon, lead: str) -> _Remember:
    names = ("and", "asks", "verbs", "must", "fill", "that", "bare", "last")
    conjunction, asks, verbs, must, fill, that, bare, last = (_spaced(language.entries[name]) for name in names)
    filled = rf"(?:,?\s+(?:{fill}|{_POLITE}))*?"
    order = (
        rf"(?P<before>{_CLAUSE_START}|\b(?:{conjunction})\s+){lead}"
        rf"(?P<head>(?P<asked>(?:{asks}){filled},?\s+(?:{verbs}|{must}))|(?P<plain>{verbs})"
        rf"|(?P<noted>{must}))\b{filled}"
        rf"(?:(?P<colon>(?:\s+(?:{that}))?\s*:\s*)|(?P<that>,?\s+(?:{that})(?:\s+|(?<=\bqu)'))|(?P<bare>,?\s+)(?={bare}))(?P<text>\S)"
    )
    ordered = (
        rf"(?:^|[,;.!—–]\s*|\s-\s+){_unnamed(lead)}(?:(?:{asks})\s+(?:{_POLITE}\s+)?)?(?:{last})"
        rf"(?:,?\s+(?:{_POLITE}|for\s(?:me|later|next\stime)))*\s*[.!?]*$"
    )
    return _Remember(_compile(order), _compile(ordered))


def _list_purge_verbs(purge: Lexicon) -> str:
    return "|".join(words[key] for words in purge.entries.values() for key in ("verbs", "last") if key in words)


def _compile_purge(purge: Lexicon, lead: str, asks: str) -> "re.Pattern[str]":
    forms = []
    for name in purge.entries:
        words = purge.table(name).entries
        verbs, names, end = (_spaced(words[key]) for key in ("verbs", "names", "from"))
        courtesy = rf"(?:,?\s+(?:{_POLITE}|{end}))*"
        forms.append(rf"(?:{verbs}){courtesy}\s*,?\s+(?:{names}){courtesy}")
        if "last" in words:
            last = _spaced(words["last"])
            forms.append(rf"(?:{names}){courtesy}\s+(?:{last})")
            forms.append(rf"(?:{last})\s*,?\s+(?:{names})")
    start = rf"(?:{_CLAUSE_START}|\b(?:and|und|et)\s+)"
    return _compile(rf"{start}{lead}(?:(?:{asks}),?\s+(?:{_POLITE}\s+)?)?(?:{'|'.join(forms)}){_CLAUSE_END}")


def _unnamed(expression: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", expression)


def _compile(expression: str) -> "re.Pattern[str]":
    return re.compile(expression, re.IGNORECASE)
