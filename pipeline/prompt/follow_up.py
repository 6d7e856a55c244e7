"""The last message of each session, in memory only: a short follow-up is searched together with its words."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import Kind
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import Answer, Hit, Query, Step
from pipeline.kernel.store import agent_sessions
from pipeline.kernel.store.agent_sessions import ActionType
from pipeline.recall.deadline import Deadline
from pipeline.recall.relevance import OUTLINE_RELEVANT, RELEVANT, calibrate
from pipeline.recall.search import search
from pipeline.recall.search_context import SearchContext
from pipeline.text.messages import is_follow_up, key_words, list_names, list_own_words, refers_to_person

MOST_SESSIONS = 256
# After this many seconds, a short message is no follow-up any more.
FOLLOWS_S = 1800.0
# An agent without a session id starts a new session after this many idle seconds.
IDLE_S = 4 * 3600.0
# Maximum number of results that a follow-up adds, and the relevance from which a result counts although the words of
# the follow-up did not make it more relevant. Chosen on the part "dev" of tests/data/follow_ups.json.
MOST_ADDED = 5
SURELY_RELEVANT = calibrate(0.95)
LAST_TARGETS = 3


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The words of a message, how relevant its results were, by memory id, and the names in the best of them.

    `continues` is the message that it follows up on, if it does.
    """

    words: str
    relevance: Mapping[str, float] = field(default_factory=dict)
    at: float = 0.0
    names: str = ""
    continues: "LastMessage | None" = None


class LastMessages:
    """Keep the last message of the last sessions; a restart of the server forgets all of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: LruCache[tuple[str | None, ...], LastMessage] = LruCache(MOST_SESSIONS)

    def find(self, session: AgentSession) -> LastMessage | None:
        """Return the message before the next one of a session, None if there is none."""
        last = self._kept.peek(_key(session))
        if last is not None and session.id is None and self._clock() - last.at > IDLE_S:
            return None
        return last

    def find_continued(self, session: AgentSession, message: str) -> LastMessage | None:
        """Return the message that a short follow-up continues, None for any other message."""
        last = self.find(session)
        if last is None or self._clock() - last.at > FOLLOWS_S or not is_follow_up(message):
            return None
        # A repeated question adds nothing to itself: it continues what it continued the first time.
        return last.continues if list_own_words(message) and key_words(message, last.words) == last.words else last

    def note(self, session: AgentSession, message: str, relevance: Mapping[str, float], names: str = "") -> None:
        """Keep the words of a message, the relevance of its results, and the names in the best of them.

        Without names in its results, a follow-up is still about those of the message before it.
        """
        at, words, continues = self._clock(), key_words(message), None
        if continued := self.find_continued(session, message):
            words, names = key_words(message, continued.words), names or continued.names
            continues = replace(continued, continues=None)
        self._kept.put(_key(session), LastMessage(words, relevance, at, names, continues))


def _key(session: AgentSession) -> tuple[str | None, ...]:
    if session.id is not None:
        return session.id, session.agent_id
    return None, session.viewer.person, session.viewer.agent, session.cwd


def continue_last(
    context: SearchContext, session: AgentSession, query: Query, answer: Answer, last: LastMessages, deadline: Deadline
) -> Answer:
    """Return an answer after the results of a short follow-up with the message before it; note the message."""
    before = last.find_continued(session, query.text)
    found = {hit.memory.id: hit.relevance for hit in answer.hits}
    added: list[Hit] = []
    if before is not None and not deadline.must_skip(Step.FOLLOW_UP):
        words = [before.words, *(() if before.relevance else _list_last_targets(context, session))]
        # "And who stands in for her?": the message before may not name her, but its answer does.
        words += [before.names] if refers_to_person(query.text) else []
        # Without any words, this repeats the search from the cache.
        expanded = search(context, replace(query, text=" ".join(filter(None, [*words, query.text]))), deadline)
        added = _select_added(expanded.hits, query.text, found, before)
        found = {hit.memory.id: hit.relevance for hit in expanded.hits} | found
    shown = [*added, *(hit for hit in answer.hits if hit.relevance >= RELEVANT)]
    last.note(session, query.text, found, " ".join(list_names(shown[0].memory.content)) if shown else "")
    known = {hit.memory.id for hit in added}
    best = max((hit.score for hit in (*added, *answer.hits)), default=0.0)
    # Scores of two queries cannot be compared: all results of the follow-up count as equally good.
    first = tuple(replace(hit, score=best) for hit in added)
    return replace(answer, hits=(*first, *(hit for hit in answer.hits if hit.memory.id not in known)))


def _select_added(hits: Sequence[Hit], message: str, own: Mapping[str, float], before: LastMessage) -> list[Hit]:
    """Return the relevant results of a follow-up.

    If the follow-up names something, the results of the message before count only if it made them more relevant.
    """
    names_something = bool(list_own_words(message))
    added = [
        hit
        for hit in hits
        if hit.relevance >= SURELY_RELEVANT
        or (
            hit.relevance >= (OUTLINE_RELEVANT if hit.memory.kind is Kind.CODE else RELEVANT)
            and (
                not names_something or hit.memory.id in own or hit.relevance > before.relevance.get(hit.memory.id, 0.0)
            )
        )
    ]
    return added[:MOST_ADDED]


def _list_last_targets(context: SearchContext, session: AgentSession) -> list[str]:
    """Return the last files and commands of a session."""
    if session.id is None:
        return []
    with context.database.read() as db:
        did = agent_sessions.page_actions(db, session.id, LAST_TARGETS, None)
    return [PurePath(action.target).name if action.type is ActionType.EDIT else action.target for action in did]
