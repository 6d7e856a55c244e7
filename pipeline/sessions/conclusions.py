"""Extract what a session concluded from its turns: decisions, rules, rejected alternatives, and open ends.

Most decisions are stated by the agent when it recapitulates what the person said; the person's answers and
corrections contain the others. An answer that is not clear alone is stored with its question. Nothing is rephrased.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import islice

from pipeline.kernel.store.conclusions import ConclusionKind, NewConclusion
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.statements import Label, Statement
from pipeline.text.messages import is_small_talk
from pipeline.text.own_words import list_own_lines
from pipeline.text.sentences import asks, consents, count_rule_words, says, split_typed_sentences
from pipeline.text.tokens import search_tokens

# Longest text of a conclusion; a recap of a function has up to 800 characters.
LONGEST = 900
LONGEST_ANSWER = 400
LONGEST_QUESTION = 160
# Maximum number of conclusions of a session: recaps first, then the person's statements.
MOST = 12
MOST_RECAPS = 4
# An answer with fewer tokens is stored with its question.
CLEAR_ALONE = 7
# Minimum share of a statement's tokens in a later recap, which then replaces it.
COVERED = 0.6
# A sentence that only confirms what was said must contain so many tokens, and this share of it in the person's words.
LEAST_RESTATED_TOKENS, LEAST_RESTATED_SHARE = 5, 0.34
# A shorter sentence does not say what is open.
LEAST_OPEN_TOKENS = 3
# A shorter sentence that acknowledges says nothing alone.
ALONE_CHARS = 24
# A statement of a person counts as a conclusion from this sum of its signs on. The statement classifier adds up to 1.
ANSWER, REPLY, RULE_WORD, REJECTION, REPLACEMENT = 1.5, 0.7, 0.4, 0.8, 1.0
LEAST_WEIGHT = 1.5
LASTING_LABELS = frozenset({Label.DECISION, Label.RULE, Label.CORRECTION, Label.PREFERENCE})


@dataclass(frozen=True, slots=True)
class _Said:
    """A turn and its sentences."""

    turn: Turn
    sentences: tuple[str, ...]

    @property
    def is_person(self) -> bool:
        return self.turn.role is Role.USER

    def conclude(self, kind: ConclusionKind, content: str) -> NewConclusion:
        """Return a conclusion in the words of the turn; its topic is that of the session."""
        return NewConclusion(self.turn.session_id, self.turn.seq, kind, content, (), self.turn.at)

    @property
    def sums_up(self) -> bool:
        """Return whether an agent's turn confirms or sums up what it was told."""
        return any(_says("recap", s) or _says("acknowledgement", s) for s in self.sentences)

    @property
    def statements(self) -> list[str]:
        return [sentence for sentence in self.sentences if not asks(sentence)]

    @property
    def question(self) -> str | None:
        """Return the last question with the sentence before it if it is short; None if none asks for a decision."""
        for number in reversed(range(len(self.sentences))):
            question = self.sentences[number]
            if asks(question) and not _says("offers", question):
                is_short = number and len(question) < ALONE_CHARS
                return f"{self.sentences[number - 1]} {question}" if is_short else question
        return None


_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)
_says = partial(says, "decision")
Classify = Callable[[Sequence[str]], Sequence[Statement]]


def conclude(turns: Sequence[Turn], classify: Classify) -> list[NewConclusion]:
    """Return the conclusions of a session in order of its turns; none for small talk and questions alone."""
    said = [_Said(turn, tuple(_sentences(turn))) for turn in turns]
    recaps = _drop_repeated(_find_recaps(said))[-MOST_RECAPS:]
    open_ends = [found for found in _find_open(said) if not any(_is_covered(found, recap, 0.9) for recap in recaps)]
    statements = (
        found for found in _find_statements(said, classify) if not any(_is_covered(found, recap) for recap in recaps)
    )
    # Open ends have no maximum. If they leave no room, all statements are kept.
    chosen = [*recaps, *open_ends, *islice(statements, max(0, MOST - len(recaps) - len(open_ends)) or None)]
    return sorted(dict.fromkeys(chosen), key=lambda found: found.turn_seq)


def _sentences(turn: Turn) -> list[str]:
    """Return the sentences that the speaker of a turn wrote: without pasted text, or without blocks of code."""
    text = turn.content
    lines = list_own_lines(text) if turn.role is Role.USER else _FENCE.sub("\n", text).splitlines()
    sentences = [sentence.strip().lstrip("-*•> ").strip() for line in lines for sentence in split_typed_sentences(line)]
    return [sentence for sentence in sentences if sentence]


def _find_recaps(said: Sequence[_Said]) -> list[NewConclusion]:
    """Return the passages in which an agent restates what was decided."""
    spoken: set[str] = set()
    found = []
    for one in said:
        if one.is_person:
            spoken.update(search_tokens(" ".join(one.sentences)))
        elif passage := _recap_of(one, spoken):
            content = _shorten(passage)
            # A rule needs the person's own words: the agent may restate what somebody else wrote.
            kind = _kind_of(content)
            found.append(one.conclude(ConclusionKind.DECISION if kind is ConclusionKind.RULE else kind, content))
    return found


def _recap_of(one: _Said, spoken: AbstractSet[str]) -> list[str]:
    """Return the sentences of a turn from the one that starts a recap; `spoken` are the person's words before it."""
    for number, sentence in enumerate(one.sentences):
        if asks(sentence):
            continue
        # "Got it." alone belongs to the sentence after it.
        follows = number and _says("acknowledgement", before := one.sentences[number - 1]) and len(before) < ALONE_CHARS
        confirms = _says("acknowledgement", sentence) or follows
        if _says("recap", sentence) or (confirms and _restates(sentence, spoken)):
            return _trim(one.sentences[number:])
    return []


def _trim(sentences: Sequence[str]) -> list[str]:
    """Drop questions, and what the agent says about its work after the recap."""
    kept: list[str] = []
    for sentence in sentences:
        if asks(sentence) or (kept and _says("reports", sentence)):
            break
        kept.append(sentence)
    return kept


def _restates(sentence: str, spoken: AbstractSet[str]) -> bool:
    tokens = set(search_tokens(sentence))
    known = len(tokens & spoken)
    states_rule = known > 1 and count_rule_words(sentence) > 0
    return len(tokens) >= LEAST_RESTATED_TOKENS and (states_rule or known >= LEAST_RESTATED_SHARE * len(tokens))


def _find_statements(said: Sequence[_Said], classify: Classify) -> Iterator[NewConclusion]:
    """Yield the answers, corrections and rules in a person's turns, and the accepted proposals, latest first."""
    for number in reversed(range(len(said))):
        one = said[number]
        before = said[number - 1] if number and not said[number - 1].is_person else None
        after = said[number + 1] if number + 1 < len(said) and not said[number + 1].is_person else None
        if not one.is_person or not one.sentences:
            continue
        if before is not None and consents(" ".join(one.sentences)):
            proposal = _proposal_of(before)
            if proposal:
                yield before.conclude(ConclusionKind.DECISION, proposal)
            continue
        statement = _statement_of(one, before, after, classify, is_opening=not number)
        if statement is not None:
            yield statement


def _proposal_of(before: _Said) -> str:
    if any(_says("recap", sentence) for sentence in before.sentences):
        return ""
    return _shorten((s for s in before.sentences if _says("proposals", s)), LONGEST_ANSWER)


def _statement_of(
    one: _Said, before: _Said | None, after: _Said | None, classify: Classify, *, is_opening: bool
) -> NewConclusion | None:
    """Return what a person's turn decides: an answer, a correction or a rule."""
    statements = [s for s in one.statements if not (is_small_talk(s) or _says("open", s))]
    text = " ".join(statements)
    if not search_tokens(text):
        return None
    replaces = _says("replaces", text)
    question = None if before is None else before.question
    signs = (
        ANSWER * (question is not None),
        REPLY
        * (
            before is not None
            and (before.sums_up or any(_says("proposals", sentence) for sentence in before.sentences))
        ),
        RULE_WORD * min(2, count_rule_words(text)),
        REJECTION * _says("rejects", text),
        REPLACEMENT * replaces,
    )
    if (is_opening and not replaces) or not _decides(sum(signs), statements, classify):
        return None
    content = _shorten(statements, LONGEST_ANSWER)
    if question is not None and len(set(search_tokens(text))) < CLEAR_ALONE:
        confirmed = "" if after is None else _confirmation_in(after)
        content = " — ".join(filter(None, (question, content, confirmed)))
    return one.conclude(_kind_of(text), content)


def _decides(weight: float, statements: Sequence[str], classify: Classify) -> bool:
    """Return whether the signs suffice; classify only where that matters, because encoding takes most of the time."""
    if LEAST_WEIGHT - 1 <= weight < LEAST_WEIGHT:
        weight += max((s.lasts for s in classify(statements) if s.label in LASTING_LABELS), default=0.0)
    return weight >= LEAST_WEIGHT


def _confirmation_in(after: _Said) -> str:
    """Return the sentence in which the agent says what an answer means, if it says so."""
    first = after.sentences[0] if after.sentences else ""
    is_useful = len(first) > ALONE_CHARS and not (asks(first) or _says("reports", first))
    return first if is_useful and len(first) <= LONGEST_QUESTION else ""


def _find_open(said: Sequence[_Said]) -> list[NewConclusion]:
    """Return the sentences that leave something open."""
    return [
        one.conclude(ConclusionKind.OPEN, sentence[:LONGEST_ANSWER])
        for one in said
        for sentence in one.statements
        if _says("open", sentence) and len(search_tokens(sentence)) >= LEAST_OPEN_TOKENS
    ]


def _kind_of(text: str) -> ConclusionKind:
    if _says("rejects", text) and count_rule_words(text) == 0:
        return ConclusionKind.REJECTED
    return ConclusionKind.RULE if count_rule_words(text) > 1 else ConclusionKind.DECISION


def _is_covered(found: NewConclusion, recap: NewConclusion, share: float = COVERED) -> bool:
    """Return whether a later recap says what a statement says."""
    tokens = set(search_tokens(found.content))
    common = tokens & set(search_tokens(recap.content))
    return found.turn_seq <= recap.turn_seq and len(common) >= share * len(tokens)


def _drop_repeated(recaps: Sequence[NewConclusion]) -> list[NewConclusion]:
    """Drop the recaps that a later one repeats."""
    return [
        recap
        for number, recap in enumerate(recaps)
        if not any(_is_covered(recap, later) for later in recaps[number + 1 :])
    ]


def _shorten(sentences: Iterable[str], longest: int = LONGEST) -> str:
    """Join sentences as far as they fit."""
    text = ""
    for sentence in sentences:
        if text and len(text) + 1 + len(sentence) > longest:
            break
        text = f"{text} {sentence}".strip()
    return text[:longest]
