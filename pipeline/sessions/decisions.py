"""Choose what past sessions decided about a message: the current decision, and never an outdated one without it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.kernel.records.recall import SessionHit
from pipeline.kernel.store import conclusions, turns
from pipeline.kernel.store.conclusions import Conclusion, ConclusionKind
from pipeline.text.messages import is_function_word
from pipeline.text.tokens import identifiers, search_tokens

# Maximum number of sessions whose decisions are shown, and of lines of each.
MOST_SESSIONS = 2
MOST_LINES = 3
# A second session must have nearly the score of the first.
SHARE_OF_BEST = 0.7
# What a session needs to be about a message: a score, and words of the message in its topic and conclusions. Nearly all
# sessions that decide about a prompt of tests/data/concluding_sessions and of sde-bench have more; if they are missing,
# the best other session has a lower score or fewer words. Chosen with earlier scores and multiplied by 0.9, as those of
# the sessions of sde-bench that decide (decision 0099).
LEAST_SCORE = 0.42
LEAST_WORDS, LEAST_WORDS_SHARE = 2, 0.2
# A short question shares few words with a session by chance: with fewer, the search must also find it relevant.
SURE_WORDS = 4
# With a name of the message in its topic, a lower score suffices, unless more of the found sessions contain the name.
LEAST_SCORE_WITH_NAME = 0.32
DISTINCTIVE_IN = 2
# An earlier decision is shown in addition if the current one contains at most this share of its words.
RESTATED_SHARE = 0.5
LONGEST_CHAIN = 8


@dataclass(frozen=True, slots=True)
class Decision:
    """A conclusion to show, the title of its session, and whether it replaces an earlier one or is replaced itself."""

    conclusion: Conclusion
    title: str | None
    replaces: bool = False
    is_replaced: bool = False


@dataclass(frozen=True, slots=True)
class _Store:
    """The conclusions of the found sessions and of those that replace them, by session and by row number."""

    by_session: Mapping[str, Sequence[Conclusion]]
    by_seq: Mapping[int, Conclusion]

    @classmethod
    def read(cls, db: Connection, session_ids: Collection[str]) -> "_Store":
        by_seq = {conclusion.seq: conclusion for conclusion in conclusions.list_of_sessions(db, session_ids)}
        for _ in range(LONGEST_CHAIN):
            later = {one.superseded_by for one in by_seq.values() if one.superseded_by is not None} - by_seq.keys()
            sessions = {one.session_id for one in conclusions.by_seqs(db, later)}
            if not sessions:
                break
            by_seq |= {one.seq: one for one in conclusions.list_of_sessions(db, sessions)}
        # What waits in the inbox, was taken back or said otherwise later is no decision.
        not_current = turns.list_not_current(db, {one.turn_seq for one in by_seq.values()})
        by_seq = {seq: one for seq, one in by_seq.items() if one.turn_seq not in not_current}
        return cls(conclusions.group_by_session(by_seq.values()), by_seq)

    def find_current(self, conclusion: Conclusion) -> Conclusion:
        """Return the last conclusion of the chain that replaces a conclusion."""
        for _ in range(LONGEST_CHAIN):
            later = self.by_seq.get(conclusion.superseded_by or 0)
            if later is None:
                break
            conclusion = later
        return conclusion


def find_decisions(db: Connection, hits: Sequence[SessionHit], message: str) -> list[list[Decision]]:
    """Return the decisions of the sessions that are about a message, grouped by session, the best first."""
    store = _Store.read(db, {hit.session_id for hit in hits})
    about = list(_choose_sessions(hits, store, message))
    titles = conclusions.list_titles(db, store.by_session.keys()) if about else {}
    groups: list[list[Decision]] = []
    for hit in about:
        group = _decide(store, hit, message, titles)
        known = {decision.conclusion.seq for shown in groups for decision in shown}
        if group and group[0].conclusion.seq not in known:
            groups.append(group)
    return groups[:MOST_SESSIONS]


def _choose_sessions(hits: Sequence[SessionHit], store: _Store, message: str) -> Iterator[SessionHit]:
    """Yield the sessions that concluded something and are surely about a message."""
    named = set(identifiers(message))
    words = _list_words(message)
    topics = {hit.session_id: _words_of(store.by_session.get(hit.session_id, ())) for hit in hits}
    spread = Counter(name for topic in topics.values() for name in named & topic)
    about = []
    for hit in hits:
        topic = topics[hit.session_id]
        is_named = any(spread[name] <= DISTINCTIVE_IN for name in named & topic)
        common = len(words & topic)
        has_words = common >= LEAST_WORDS and common >= LEAST_WORDS_SHARE * len(words)
        is_sure = is_named or common >= SURE_WORDS or hit.is_relevant
        if has_words and is_sure and hit.score >= (LEAST_SCORE_WITH_NAME if is_named else LEAST_SCORE):
            about.append(hit)
    best = max((hit.score for hit in about), default=0.0)
    yield from (hit for hit in about if hit.score >= SHARE_OF_BEST * best)


def _list_words(message: str) -> set[str]:
    return {word for word in search_tokens(message) if not is_function_word(word)}


def _words_of(stated: Sequence[Conclusion]) -> set[str]:
    words = {word for conclusion in stated for word in search_tokens(conclusion.content)}
    return words | ({*stated[0].topic} if stated else set())


def _decide(store: _Store, hit: SessionHit, message: str, titles: Mapping[str, str]) -> list[Decision]:
    """Return the conclusions of a session to show: what replaces it, or else its main one and what was said later."""
    stated = store.by_session[hit.session_id]
    current = {one.seq: one for one in map(store.find_current, stated) if one.session_id != stated[0].session_id}
    if not current:
        # Of a session that is surely about the message, the main decision may be in other words.
        chosen = _choose_lines(stated, message) or list(stated[: hit.is_relevant])
        return [Decision(one, titles.get(one.session_id)) for one in chosen]
    latest = max(current.values(), key=lambda one: one.at)
    group = [
        Decision(one, titles.get(one.session_id), replaces=True)
        for one in _choose_lines(store.by_session[latest.session_id], message) or [latest]
    ]
    said = {word for decision in group for word in search_tokens(decision.conclusion.content)}
    old = set(search_tokens(stated[0].content))
    if len(old & said) <= RESTATED_SHARE * len(old):
        group.append(Decision(stated[0], titles.get(stated[0].session_id), is_replaced=True))
    return group


def _choose_lines(stated: Sequence[Conclusion], message: str) -> list[Conclusion]:
    """Return the conclusions about a message: the main one, then what was said after it, then those most about it."""
    main, asked = stated[0], _list_words(message)
    about = [one for one in stated if asked & set(search_tokens(one.content))]
    lines = [one for one in about if one is main or one.kind is not ConclusionKind.OPEN or one.turn_seq > main.turn_seq]
    ordered = sorted(
        lines,
        key=lambda one: (one is main, one.turn_seq > main.turn_seq, len(asked & set(search_tokens(one.content)))),
        reverse=True,
    )
    return ordered[:MOST_LINES]
