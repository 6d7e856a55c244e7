"""The conclude stage: extract what a session concluded, and link it to what it replaces.

A session is concluded after its last message, and again when it continues.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace
from sqlite3 import Connection

from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.stage_loop import run_each
from pipeline.kernel.store import agent_sessions, conclusions, turns, work
from pipeline.kernel.store.conclusions import Conclusion, NewConclusion
from pipeline.kernel.store.database import Database
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.conclusions import conclude
from pipeline.sessions.statements import StatementReader
from pipeline.text.instructions import instructs
from pipeline.text.messages import is_function_word
from pipeline.text.own_words import list_own_lines
from pipeline.text.sentences import says
from pipeline.text.tokens import identifiers, search_tokens

# Minimum share of the shorter statement's words in both, each word weighted by its rareness: if the later one says that
# it replaces another, and if it does not, but both name the same code.
REPLACED_SHARE, RESTATED_SHARE = 0.3, 0.5
LEAST_SHARED = 4
# A decision replaces the statements that are nearly as similar to it as the most similar one.
NEAR_BEST = 0.75
# Minimum share of the words of an earlier session's other conclusions that are replaced with its main one.
BESIDE_SHARE = 0.2
# The last turns of a longer session are read.
READ_TURNS = 400
# A session is compared with the last sessions, to find what it replaces and what replaces it.
COMPARED = 5_000
MOST_NAMES = 12
MOST_WORDS = 48
# A shorter first message, such as "hi", does not describe a problem: the next one is read, too.
OPENING_WORDS = 12


@dataclass(frozen=True, slots=True)
class Subject:
    """The main conclusion of a session: its words, its names of code, and whether it replaces an earlier decision.

    `context` has its words and those of the session's topic.
    """

    conclusion: Conclusion
    words: frozenset[str]
    context: frozenset[str]
    names: frozenset[str]
    replaces: bool

    @classmethod
    def of(cls, main: Conclusion) -> "Subject":
        """Return the subject of a main conclusion."""
        words, names = frozenset(search_tokens(main.content)), frozenset(identifiers(main.content))
        return cls(main, words, words | {*main.topic}, names, says("decision", "replaces", main.content))


class Subjects:
    """The subjects of all sessions, and how rare their words are."""

    def __init__(self, mains: Sequence[Conclusion]) -> None:
        self._subjects = {main.session_id: Subject.of(main) for main in mains}
        self._counts = Counter(word for subject in self._subjects.values() for word in subject.words)

    def put(self, main: Conclusion) -> Subject:
        """Add or replace the subject of a session."""
        subject = Subject.of(main)
        if main.session_id not in self._subjects:
            self._counts.update(subject.words)
        self._subjects[main.session_id] = subject
        return subject

    def find_earlier(self, later: Subject) -> list[Subject]:
        """Return the subjects that a later one replaces."""
        similarities = {
            earlier.conclusion.seq: (self._compare(earlier, later), earlier)
            for earlier in self._subjects.values()
            if earlier.conclusion.at < later.conclusion.at
        }
        best = max((share for share, _ in similarities.values()), default=0.0)
        return [earlier for share, earlier in similarities.values() if share and share >= NEAR_BEST * best]

    def find_later(self, earlier: Subject) -> list[Subject]:
        """Return the subjects that replace an earlier one."""
        return [
            later
            for later in self._subjects.values()
            if earlier.conclusion.at < later.conclusion.at
            and self._compare(earlier, later)
            and earlier in self.find_earlier(later)
        ]

    def _compare(self, earlier: Subject, later: Subject) -> float:
        """Return how similar two statements are, 0 if the later one does not replace the other."""
        least = REPLACED_SHARE if later.replaces else RESTATED_SHARE if earlier.names & later.names else None
        if least is None or len(earlier.context & later.words) < LEAST_SHARED:
            return 0.0
        own, size = self._weigh(earlier.words), self._weigh(later.words)
        share = self._weigh(earlier.words & later.words) / min(own, size)
        if later.replaces:
            share = max(share, self._weigh(earlier.context & later.words) / size)
        return share if share >= least else 0.0

    def _weigh(self, words: AbstractSet[str]) -> float:
        size = len(self._subjects)
        return sum(math.log(1 + (size + 1) / (self._counts[word] + 0.5)) for word in words)


def list_replaced(earlier: Sequence[Conclusion], later: Sequence[Conclusion]) -> Iterator[tuple[int, int]]:
    """Yield the conclusions of an earlier session that a later one about the same subject replaces, with its main."""
    words = {word for conclusion in later for word in search_tokens(conclusion.content)}
    for number, conclusion in enumerate(earlier if later else ()):
        own = set(search_tokens(conclusion.content))
        if number == 0 or len(own & words) >= BESIDE_SHARE * len(own):
            yield conclusion.seq, later[0].seq


def follow_chain(pairs: Sequence[tuple[int, int]], at: Mapping[int, str]) -> dict[int, int]:
    """Return for each replaced conclusion the next later one: the chain leads to the current decision."""
    following: dict[int, int] = {}
    for seq, later in pairs:
        following[seq] = min(later, following.get(seq, later), key=lambda number: at[number])
    return following


@dataclass(frozen=True, slots=True)
class ConcludeStage:
    """Conclude the sessions of a workspace's turns."""

    database: Database
    reader: StatementReader

    def load(self) -> None:
        """Load nothing: most sessions are concluded without an encoder."""

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Conclude the session of each turn; postpone it while an encoder is made."""
        with self.database.read() as db:
            subjects = Subjects(conclusions.list_mains(db, COMPARED))
        run_each(self.database, items, owner, lambda item: self._conclude(item, owner, subjects))

    def _conclude(self, item: WorkItem, owner: str, subjects: Subjects) -> None:
        with self.database.read() as db:
            first = turns.by_seqs(db, [item.seq])
            session_id = first[0].session_id if first else None
            read = [] if session_id is None else _read_turns(db, session_id)
        found = conclude(read, self.reader.read)
        new = _describe(read, found)
        with self.database.write() as db:
            # A turn may have been deleted since, and a session that continued is concluded again.
            if session_id is not None and turns.by_seqs(db, [turn.seq for turn in read]) == read:
                link(db, conclusions.replace(db, session_id, new), subjects)
            work.complete(db, [item], owner)


def link(db: Connection, stored: Sequence[Conclusion], subjects: Subjects) -> None:
    """Record what the conclusions of a session replace, and which later ones replace them."""
    if not stored:
        return
    subject = subjects.put(stored[0])
    earlier, later = subjects.find_earlier(subject), subjects.find_later(subject)
    sessions = {other.conclusion.session_id for other in (*earlier, *later)}
    by_session = conclusions.group_by_session(conclusions.list_of_sessions(db, sessions))
    pairs: list[tuple[int, int]] = []
    for group in (by_session.get(other.conclusion.session_id, []) for other in earlier):
        pairs += list_replaced(group, stored)
        # Another decision between the two may replace it already.
        pairs += [(one.seq, one.superseded_by) for one in group if one.superseded_by is not None]
    for group in (by_session.get(other.conclusion.session_id, []) for other in later):
        pairs += list_replaced(stored, group)
    at = {one.seq: one.at for one in conclusions.by_seqs(db, {seq for pair in pairs for seq in pair})}
    conclusions.supersede(db, follow_chain([pair for pair in pairs if at.keys() >= set(pair)], at).items())


def _read_turns(db: Connection, session_id: str) -> list[Turn]:
    """Return the messages of a session in order; none if it is incognito."""
    if agent_sessions.is_any_incognito(db, [session_id]):
        return []
    page = turns.page(db, session_id, READ_TURNS, None)
    return [turn for turn in reversed(page) if turn.role in (Role.USER, Role.ASSISTANT)]


def _describe(read: Sequence[Turn], found: Sequence[NewConclusion]) -> list[NewConclusion]:
    """Return the conclusions to store, those of the agent's last recap first; leave out text that gives orders."""
    harmless = [one for one in found if not instructs(one.content)]
    topic = describe_topic(read, [one.content for one in harmless])
    of_person = {turn.seq for turn in read if turn.role is Role.USER}
    order = sorted(harmless, key=lambda one: (one.turn_seq in of_person, -one.turn_seq))
    return [replace(one, topic=topic) for one in order]


def describe_topic(turns: Sequence[Turn], conclusions: Iterable[str]) -> tuple[str, ...]:
    """Return the names and words of a session's topic: names first, as tokens of a search."""
    opening = _opening(turns)
    concluded = " ".join(conclusions)
    counts = Counter(name for turn in turns for name in dict.fromkeys(identifiers(turn.content)))
    often = [name for name, count in counts.most_common(MOST_NAMES) if count > 1]
    names = dict.fromkeys([*identifiers(opening), *identifiers(concluded), *often])
    words = dict.fromkeys(word for word in search_tokens(opening) if not is_function_word(word))
    return (*list(names)[:MOST_NAMES], *(word for word in list(words)[:MOST_WORDS] if word not in names))


def _opening(turns: Sequence[Turn]) -> str:
    """Return the person's first message, with the next ones while they are short."""
    text = ""
    for turn in turns:
        if turn.role is Role.USER:
            text = f"{text} {' '.join(list_own_lines(turn.content))}"
            if len(search_tokens(text)) >= OPENING_WORDS:
                break
    return text
