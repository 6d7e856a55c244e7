"""A conversation with an assistant, as memories: what was asked and answered, and what came along with it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pipeline.ingest.fields import digest_of, metadata_of, session_of, split_text, split_under_heading
from pipeline.ingest.items import Item, Known, Reading, Skipped, Unchanged
from pipeline.records import Draft, Kind, Source
from pipeline.write.fields import normalize_text

# The longest that a question or an answer may be apart from the text.
MAX_FIELD_CHARS = 2000
MAX_QUESTION_CHARS = 500
# Nobody says so much at once, and it is copied a few times on its way.
MAX_TEXT_CHARS = 4_000_000

_SHORT = 200

# A question, its answer, and the moment of the first of them.
_Exchange = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said."""

    asked: bool
    text: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Extra:
    """What a conversation made or was given beside its words: a document, a fact noted down, a summary.

    The title is a name, or empty.
    """

    kind: Kind
    title: str
    text: str
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as any assistant's export tells it: its title is a name, `began` and `ended` moments or None."""

    source: str
    id: str
    title: str
    began: str | None
    ended: str | None
    turns: Sequence[Turn]
    extras: Sequence[Extra] = ()


def read_conversation(version: str, told: Conversation, known: Known) -> Reading:
    """Return what a conversation comes to: an item, nothing new, or nothing to keep."""
    digest = digest_of([version, *_strings(told)])
    if known.get(told.id) == digest:
        return Unchanged(told.id)
    exchanges = list(_exchanges(told.turns))
    longest = max((len(one) for texts in exchanges for one in texts[:2]), default=0)
    if max((longest, *(len(extra.text) for extra in told.extras))) > MAX_TEXT_CHARS:
        return Skipped(told.id, f"holds a text of more than {MAX_TEXT_CHARS:,} characters")
    drafts = tuple(_drafts(told, exchanges))
    return Item(told.id, digest, drafts) if drafts else Skipped(told.id, "no text")


def _strings(told: Conversation) -> Iterator[str]:
    yield from (told.title, told.began or "", told.ended or "")
    for turn in told.turns:
        yield from ("?" if turn.asked else "!", turn.text, turn.at or "")
    for extra in told.extras:
        yield from (extra.kind, extra.title, extra.text, extra.at or "")


def _drafts(told: Conversation, exchanges: Iterable[_Exchange]) -> Iterator[Draft]:
    draft = partial(
        Draft,
        tags=(told.source,),
        metadata=metadata_of({"title": told.title}),
        session_id=session_of(told.source, told.id),
        source=Source.IMPORT,
    )
    otherwise = told.began or told.ended
    for question, answer, at in exchanges:
        for content, details in _question_and_answer(question, answer):
            yield draft(content, kind=Kind.QA, occurred_at=at or otherwise, details=details)
    for extra in told.extras:
        for content in split_under_heading(extra.title, extra.text):
            yield draft(content, kind=extra.kind, occurred_at=extra.at or otherwise, details=_details(told, extra))


def _details(told: Conversation, extra: Extra) -> dict[str, str]:
    if extra.kind is Kind.DOCUMENT:
        return {"title": extra.title} if extra.title else {}
    if extra.kind is not Kind.EPISODE or told.began is None or told.ended is None or told.ended < told.began:
        return {}
    return {"started_at": told.began, "ended_at": told.ended}


def _exchanges(turns: Iterable[Turn]) -> Iterator[_Exchange]:
    """Yield the exchanges in their order; what one side said in a row belongs together."""
    asked: list[str] = []
    answered: list[str] = []
    at: str | None = None
    for turn in turns:
        # What nobody could see says nothing.
        if not turn.text or (len(turn.text) < _SHORT and not normalize_text(turn.text)):
            continue
        if turn.asked and answered:
            yield "\n\n".join(asked), "\n\n".join(answered), at
            asked, answered, at = [], [], None
        (asked if turn.asked else answered).append(turn.text)
        at = at or turn.at
    if asked or answered:
        yield "\n\n".join(asked), "\n\n".join(answered), at


def _question_and_answer(question: str, answer: str) -> Iterator[tuple[str, dict[str, str]]]:
    told = [f"Q: {question}"] if question else []
    told += [f"A: {answer}"] if answer else []
    pieces = split_text("\n\n".join(told))
    if len(pieces) == 1:
        yield pieces[0], _sides(pieces[0], asked=bool(question), answered=bool(answer))
        return
    # A long exchange goes on in the next memory, which says what it answers.
    heading = next(iter(split_text(question, MAX_QUESTION_CHARS)), "")
    for piece in pieces:
        yield piece, {"question": heading} if heading else {}


def _sides(piece: str, *, asked: bool, answered: bool) -> dict[str, str]:
    """Return both sides of an exchange apart, as far as they are short and where one ends is beyond doubt."""
    texts = piece.removeprefix("Q: ").split("\n\nA: ") if asked else [piece.removeprefix("A: ")]
    names = [name for name, said in (("question", asked), ("answer", answered)) if said]
    if len(texts) != len(names):
        return {}
    return {name: text for name, text in zip(names, texts, strict=True) if 0 < len(text) <= MAX_FIELD_CHARS}
