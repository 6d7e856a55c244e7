"""Query team servers in parallel with this machine; each result names its origin.

A team that does not answer within the time limit of the request is reported as late. Later requests still query it, but
wait for it only after it has answered in time again. Only teams that have the workspace are queried.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.features.team.servers import LOCAL, TeamServer, list_servers
from pipeline.kernel.enums import Kind, Sensitivity, Source, Tier, Trust
from pipeline.kernel.errors import FieldError, InvalidField, NotFound, RemoteUnreachable, ReverieError
from pipeline.kernel.records import Filter, Memory, Scope, list_session_names
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.records.recall import Annotations, Answer, ChannelReport, ChannelState, Hit, Query
from pipeline.kernel.times import elapsed_ms
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.feedback import FeedbackWriter
from pipeline.recall.result_order import of_team
from pipeline.recall.usecases import merge_answers, recall_memories
from pipeline.text.normalize import content_hash

if TYPE_CHECKING:
    from pipeline.features.team.link import TeamLink

CHANNEL = "team:"
# A sequence number that no row of this machine has.
ELSEWHERE = -1
# The most results that a server returns.
MOST = 100
PREPARED = ("decisions", "facts", "memories")
# Maximum number of parallel requests to one team; further ones are late at once.
MOST_AT_ONCE = 4
# Seconds for which a team's list of workspaces is cached.
WORKSPACES_S = 60.0

Read = Callable[[Any, str], tuple[Hit, ...]]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TeamAnswer:
    """The answer of one team: the state of its channel, and its hits, best first."""

    name: str
    report: ChannelReport
    hits: tuple[Hit, ...] = ()


class Team:
    """One team's server and the state of its last answer."""

    def __init__(self, server: TeamServer, report: Report) -> None:
        self.server = server
        self._report = report
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="team")
        self._lock = threading.Lock()
        self._link: TeamLink | None = None
        self._asking = 0
        # Seconds that its last answer took; None if the last request failed.
        self._took_s: float | None = 0.0
        self._problem: str | None = None
        self._workspaces: frozenset[str] = frozenset()
        self._listed_at = float("-inf")

    def ask(
        self, workspace_id: str, path: str, body: Any, read: Read, *, is_read_only: bool = False
    ) -> "Future[TeamAnswer] | None":
        """Start a request; return None if too many requests are pending."""
        with self._lock:
            if self._asking >= MOST_AT_ONCE:
                return None
            self._asking += 1
        return self._pool.submit(self._answer, workspace_id, path, body, read, is_read_only)

    def answers_within(self, seconds: float) -> bool:
        """Return whether its last answer took at most some seconds."""
        return self._took_s is not None and self._took_s <= seconds

    def send(self, method: str, path: str, workspace_id: str, body: Any = None) -> Any:
        """Send one request and return the answer; raise ReverieError for anything but success."""
        answer = self._get_link().send(method, path, workspace_id, body)
        if method != "GET":
            # The write may have created the workspace.
            self._listed_at = float("-inf")
        return answer

    def close(self) -> None:
        """Stop its threads without waiting for answers."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            if self._link is not None:
                self._link.close()

    def _get_link(self) -> "TeamLink":
        with self._lock:
            if self._link is None:
                # Imported here so that only data directories with a team load it.
                from pipeline.features.team.link import TeamLink

                self._link = TeamLink(self.server)
            return self._link

    def _answer(self, workspace_id: str, path: str, body: Any, read: Read, is_read_only: bool) -> TeamAnswer:
        link = self._get_link()
        began = time.perf_counter()
        try:
            if not self._has(workspace_id):
                answer = self._report_state(ChannelState.OFF, began)
            else:
                hits = read(link.send("POST", path, workspace_id, body, is_read_only=is_read_only), self.server.name)
                answer = self._report_state(ChannelState.OK, began, hits)
            self._took_s, self._problem = time.perf_counter() - began, None
        except NotFound:
            answer = self._report_state(ChannelState.OFF, began)
            self._took_s, self._problem = time.perf_counter() - began, None
        except RemoteUnreachable as error:
            answer = self._failed(ChannelState.LATE, began, str(error))
        except (ReverieError, ValueError, KeyError, TypeError) as error:
            answer = self._failed(ChannelState.COLD, began, f"{type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._asking -= 1
        return answer

    def _has(self, workspace_id: str) -> bool:
        if time.monotonic() - self._listed_at > WORKSPACES_S:
            self._workspaces = self._get_link().list_workspaces(workspace_id)
            self._listed_at = time.monotonic()
        return workspace_id in self._workspaces

    def _report_state(self, state: ChannelState, began: float, hits: tuple[Hit, ...] = ()) -> TeamAnswer:
        return TeamAnswer(self.server.name, ChannelReport(state, elapsed_ms(began)), hits)

    def _failed(self, state: ChannelState, began: float, problem: str) -> TeamAnswer:
        self._took_s = None
        # Report a problem once until it changes or ends.
        if problem != self._problem:
            self._problem = problem
            self._report(f"{self.server.name}: {problem}")
        return self._report_state(state, began)


@dataclass(frozen=True, slots=True)
class Asked:
    """Pending requests to teams, whether their answers are worth waiting for, and the deadline."""

    waiting: Sequence[tuple[Team, bool, "Future[TeamAnswer] | None"]] = ()
    began: float = 0.0
    budget_s: float = 0.0

    def answers(self) -> list[TeamAnswer]:
        """Return the answer of every team; a team without an answer at the deadline is late."""
        return [self._await(*pending) for pending in self.waiting]

    def _await(self, team: Team, is_fast: bool, future: "Future[TeamAnswer] | None") -> TeamAnswer:
        late = TeamAnswer(team.server.name, ChannelReport(ChannelState.LATE, elapsed_ms(self.began)))
        if future is None:
            return late
        left_s = self.began + self.budget_s - time.perf_counter() if is_fast else 0.0
        try:
            # A late request continues, and its time decides whether to wait for the next one.
            return future.result(timeout=max(0.0, left_s))
        except TimeoutError:
            return replace(late, report=ChannelReport(ChannelState.LATE, elapsed_ms(self.began)))


class TeamService:
    """Query the known teams, and send writes to them."""

    def __init__(self, folder: Path, report: Report) -> None:
        self._folder = folder
        self._report = report
        self._lock = threading.Lock()
        self._teams: dict[str, Team] = {}
        self._read_at: int | None = None

    def ask_recall(self, workspace: Workspace, query: Query) -> Asked:
        """Start a recall query to every team; to none if the query is only for this machine."""
        if not (self._known() and _is_for_teams(query.filter)) or self._is_off_the_record(
            workspace, query.filter.sessions
        ):
            return Asked()
        return self._ask(workspace, "/v1/recall", _recall_body_of(query), query.budget_ms, _read_recalled)

    def ask_prepare(self, workspace: Workspace, session: AgentSession, message: str, budget_ms: int) -> Asked:
        """Start a query to every team for the memories about a message."""
        sessions = list_session_names(None, session.id, session.viewer.session)
        if not self._known() or self._is_off_the_record(workspace, sessions):
            return Asked()
        return self._ask(workspace, "/v1/prepare", {"message": message}, budget_ms, _read_prepared)

    def send(self, name: str, method: str, path: str, workspace_id: str, body: Any = None) -> Any:
        """Send a request to a team; raise InvalidField for an unknown team."""
        team = self._known().get(name)
        if team is None:
            known = ", ".join((LOCAL, *self._teams))
            raise InvalidField(FieldError("to", f"must be one of {known}. Add a team with `reverie team add`."))
        return team.send(method, path, workspace_id, body)

    def close(self) -> None:
        """Close all connections and threads."""
        with self._lock:
            for team in self._teams.values():
                team.close()
            self._teams, self._read_at = {}, None

    def _is_off_the_record(self, workspace: Workspace, sessions: frozenset[str]) -> bool:
        # The token at a team belongs to the owner, so other people must not use it.
        if workspace.person_id is not None:
            return True
        # Nothing incognito leaves this machine.
        return is_incognito(workspace, sessions)

    def _ask(self, workspace: Workspace, path: str, body: Any, budget_ms: int, read: Read) -> Asked:
        began, budget_s = time.perf_counter(), budget_ms / 1000
        # Decided before the request: it may fail before anyone waits for it.
        waiting = [
            (
                team,
                team.answers_within(budget_s),
                team.ask(workspace.id, path, body, read, is_read_only=workspace.caller.is_read_only),
            )
            for team in self._known().values()
        ]
        return Asked(waiting, began, budget_s)

    def _known(self) -> dict[str, Team]:
        """Return the current teams by name; unchanged teams keep their connections."""
        try:
            changed = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            changed = None
        if changed == self._read_at:
            return self._teams
        with self._lock:
            if changed != self._read_at:
                self._teams, self._read_at = self._read(), changed
            return self._teams

    def _read(self) -> dict[str, Team]:
        servers = list_servers(self._folder, lambda error: self._report(str(error)))
        before = {team.server: team for team in self._teams.values()}
        for gone in before.keys() - set(servers):
            before[gone].close()
        return {server.name: before.get(server) or Team(server, self._report) for server in servers}


def recall_beside_teams(
    workspace: Workspace,
    contexts: SearchContexts,
    feedback: FeedbackWriter,
    teams: TeamService,
    query: Query,
) -> Answer:
    """Answer a query from this machine and its teams, within the time limit of the query."""
    asked = teams.ask_recall(workspace, query)
    if not asked.waiting:
        return recall_memories(workspace, contexts, feedback, query)
    nothing: NotFound | None = None
    try:
        own = recall_memories(workspace, contexts, feedback, query)
    except NotFound as error:
        own, nothing = Answer((), {}, 0.0), error
    answers = asked.answers()
    if nothing is not None and not any(answer.report.state is ChannelState.OK for answer in answers):
        raise nothing
    merged = replace(own, hits=tuple(replace(hit, origin=LOCAL) for hit in own.hits))
    for answer in answers:
        new = _select_new(answer, merged, query)
        merged = merge_answers(merged, new, of_team(new.hits), query)
    return replace(merged, took_ms=elapsed_ms(asked.began))


def _select_new(answer: TeamAnswer, known: Answer, query: Query) -> Answer:
    """Return a team's answer without the memories that this machine's answer has or that the caller may not see."""
    hashes = {hit.memory.content_hash for hit in known.hits}
    hits = [hit for hit in answer.hits if hit.memory.content_hash not in hashes]
    if query.filter.viewer.only_normal:
        hits = [hit for hit in hits if hit.memory.may_be_injected]
    if query.filter.current:
        hits = [hit for hit in hits if hit.annotations.superseded_by is None]
    return Answer(tuple(hits), {f"{CHANNEL}{answer.name}": answer.report}, 0.0)


def _recall_body_of(query: Query) -> dict[str, Any]:
    """Return a query as the body of a server's recall. The server knows the person by the token."""
    filters = query.filter
    asked = {
        "query": query.text,
        "k": min(query.k, MOST),
        "kinds": list(filters.kinds),
        "since": filters.since,
        "until": filters.until,
        "as_of": filters.as_of,
        "branch": filters.branch,
        "tags": list(filters.tags) or None,
        "budget_ms": query.budget_ms,
        "min_relevance": query.min_relevance,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _is_for_teams(filters: Filter) -> bool:
    """Return whether to send a query to teams. Queries about a session, an agent or a person stay on this machine."""
    return filters.session_id is None and filters.scope in (None, Scope()) and not filters.archived


def _read_recalled(answer: Any, team: str) -> tuple[Hit, ...]:
    """Return the results of a recall, best first; raise ValueError, KeyError or TypeError for an invalid answer."""
    return tuple(_read_hit(result, team) for result in answer["results"])


def _read_prepared(answer: Any, team: str) -> tuple[Hit, ...]:
    """Return the results of prepare, lessons first; raise the same errors for an invalid answer."""
    lessons = [_read_hit(result, team) for result in answer["lessons"]]
    others = [_read_hit(result, team) for part in PREPARED for result in answer[part]]
    return (*lessons, *sorted(others, key=lambda hit: hit.relevance, reverse=True))


def _read_hit(result: Mapping[str, Any], team: str) -> Hit:
    content = str(result["content"])
    memory = Memory(
        seq=ELSEWHERE,
        id=str(result["id"]),
        content=content,
        kind=Kind(result["kind"]),
        scope=Scope(),
        tags=(),
        metadata={},
        source=Source(result["source"]),
        # Trust on the team's server does not apply here: these are notes of other people.
        trust=Trust.EVIDENCE,
        importance=0.0,
        tier=Tier.WORKING,
        pinned=False,
        session_id=None if result["session_id"] is None else str(result["session_id"]),
        created_at=str(result["created_at"]),
        occurred_at=str(result["occurred_at"]),
        updated_at=str(result["created_at"]),
        archived_at=None,
        content_hash=content_hash(content),
        instructs=bool(result["instructs"]),
        sensitivity=Sensitivity(result.get("sensitivity", Sensitivity.NORMAL)),
    )
    annotations = Annotations(
        contradicted_by=tuple(map(str, result.get("contradicted_by", ()))),
        stale=result.get("stale"),
        superseded_by=result.get("superseded_by"),
    )
    return Hit(memory, float(result["score"]), float(result["relevance"]), annotations=annotations, origin=team)
