"""Events of a reader: exactly those of the memories that it may see, in order, also across disconnects."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, strategies as st

from pipeline.features.changes import events
from pipeline.features.changes.events import Cursor, EventFilter, EventType, find_end, parse_cursor, read_events
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.job_runs import JobRun, Report, run_job
from pipeline.kernel.records import Draft, EdgeDraft, EdgeKind, Kind, Outcome, Scope, ScopeKind, Sensitivity, Viewer
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.people import qualified_name, qualified_scope, qualified_viewer
from pipeline.kernel.store import agent_sessions, changes, runs
from pipeline.write import revise
from pipeline.write.accept import accept
from pipeline.write.revise import Revision
from tests.fakes.in_process import scratch_database, workspace_over
from tests.fakes.properties import opens_stores

PEOPLE = (None, "ada", "bob")
SCOPES = (
    Scope(),
    Scope(),
    Scope(ScopeKind.USER),
    Scope(ScopeKind.SESSION, "s1"),
    Scope(ScopeKind.AGENT, "coder"),
    Scope(ScopeKind.TASK, "release"),
)
SENSITIVITIES = (Sensitivity.NORMAL, Sensitivity.NORMAL, Sensitivity.PRIVATE, Sensitivity.SECRET_ADJACENT)
AT = "2026-01-01T00:00:00.000Z"


@dataclass
class ModelMemory:
    """A memory as the model knows it, and whether its purge is announced."""

    id: str
    kind: Kind
    person: str | None
    scope: Scope
    sensitivity: Sensitivity
    session: str | None
    archived: bool = False
    purged: bool = False
    announced: bool = False


@dataclass
class ModelReader:
    """A reader: who it is, the cursor that it would send, and its position in the model's list of events."""

    person: str | None
    named: Viewer
    cursor: str = "0"
    position: int = 0

    @property
    def viewer(self) -> Viewer:
        return qualified_viewer(self.person, self.named)

    def reaches(self, memory: ModelMemory) -> bool:
        match memory.scope.kind:
            case ScopeKind.WORKSPACE:
                return True
            case ScopeKind.USER:
                return memory.person == self.person
            case ScopeKind.TASK:
                return self.named.task == memory.scope.id
            case kind:
                return memory.person == self.person and getattr(self.named, kind) == memory.scope.id


@dataclass
class Model:
    """The memories, the events in order, and the incognito sessions of people."""

    memories: list[ModelMemory] = field(default_factory=list)
    events: list[tuple[ModelMemory, EventType]] = field(default_factory=list)
    incognito: set[tuple[str | None, str]] = field(default_factory=set)

    def may_be_shown(self, memory: ModelMemory) -> bool:
        sessions = {memory.session, memory.scope.id if memory.scope.kind is ScopeKind.SESSION else None}
        hidden = any((memory.person, session) in self.incognito for session in sessions)
        return memory.sensitivity is Sensitivity.NORMAL and not hidden

    def expect(self, reader: ModelReader) -> list[tuple[int, str, EventType]]:
        expected = []
        for number, (memory, kind) in enumerate(self.events[reader.position :], start=reader.position):
            is_known = not memory.purged and self.may_be_shown(memory)
            if (memory.announced if kind is EventType.PURGED else is_known) and reader.reaches(memory):
                expected.append((number, memory.id, kind))
        return expected


def play(database, model, step):
    op, which, person, scope, sensitivity, in_session = step
    if op == "incognito":
        session = (person, "s1")
        with database.write() as db:
            name = qualified_name(person, "s1")
            if session in model.incognito:
                agent_sessions.end_incognito(db, name)
            else:
                agent_sessions.begin_incognito(db, name, AT)
        model.incognito ^= {session}
        return
    if op == "write":
        session = "s1" if in_session else None
        number = len(model.memories)
        draft = Draft(
            f"Note number {number} about the harbour",
            kind=(Kind.FACT, Kind.DECISION)[number % 2],
            scope=qualified_scope(person, scope),
            session_id=qualified_name(person, session),
            sensitivity=sensitivity,
        )
        receipt = accept(database, draft, WritePolicy(author=person))
        if receipt.outcome is Outcome.REJECTED:
            assert (person, "s1") in model.incognito
            return
        model.memories.append(ModelMemory(receipt.id, draft.kind, person, scope, sensitivity, session))
        model.events.append((model.memories[-1], EventType.WRITTEN))
        return
    living = [memory for memory in model.memories if not memory.purged]
    if not living:
        return
    memory = living[which % len(living)]
    if op == "edit" and not memory.archived:
        revise.edit(database, memory.id, Revision(content=f"Changed {len(model.events)} times in the harbour"))
        model.events.append((memory, EventType.CHANGED))
    elif op == "archive":
        (revise.restore if memory.archived else revise.archive)(database, memory.id)
        model.events.append((memory, EventType.RESTORED if memory.archived else EventType.ARCHIVED))
        memory.archived = not memory.archived
    elif op == "purge":
        memory.announced = model.may_be_shown(memory)
        revise.purge(database, memory.id)
        memory.purged = True
        model.events.append((memory, EventType.PURGED))


def read(workspace, model, reader, stops_after):
    """Read until everything or a number of events arrived, and compare with the model."""
    expected, wanted = model.expect(reader), EventFilter(reader.viewer)
    received = []
    while True:
        page = read_events(workspace, parse_cursor(reader.cursor, "after"), wanted)
        for event in page.events[: stops_after - len(received)]:
            received.append((event.memory_id, event.type))
            reader.cursor, reader.position = str(event.cursor), expected[len(received) - 1][0] + 1
        if len(received) >= stops_after and page.events:
            break
        reader.cursor = str(page.cursor)
        if not page.more:
            reader.position = len(model.events)
            break
    assert received == [(memory_id, kind) for _, memory_id, kind in expected[: max(stops_after, 0)]]


STEPS = st.tuples(
    st.sampled_from(["write", "write", "write", "edit", "archive", "purge", "incognito"]),
    st.integers(0, 20),
    st.sampled_from(PEOPLE),
    st.sampled_from(SCOPES),
    st.sampled_from(SENSITIVITIES),
    st.booleans(),
)
READS = st.tuples(st.just("read"), st.integers(0, 5), st.integers(1, 6))


@opens_stores
@given(st.lists(STEPS | READS, max_size=30), st.integers(1, 5))
def test_a_reader_gets_exactly_the_events_that_it_may_see(steps, page_size):
    readers = [
        ModelReader(person, Viewer(session=session, agent=agent, task=task))
        for person in PEOPLE
        for session, agent, task in ((None, None, None), ("s1", "coder", "release"))
    ]
    model = Model()
    with scratch_database() as database, pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "PAGE", page_size)
        workspace = workspace_over(database)
        for step in steps:
            if step[0] == "read":
                read(workspace, model, readers[step[1]], step[2])
            else:
                play(database, model, step)
        for reader in readers:
            read(workspace, model, reader, 1000)


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


EVERYTHING = EventFilter(Viewer())


def list_events(database, after=None, wanted=EVERYTHING):
    page = read_events(workspace_over(database), after or Cursor(), wanted)
    return [(event.type, event.memory_id or event.job) for event in page.events]


def test_an_older_memory_is_superseded_by_an_edge(database):
    old = accept(database, Draft("The port of staging is 80")).id
    new = accept(database, Draft("The port of staging is 81", edges=(EdgeDraft(EdgeKind.SUPERSEDES, old),))).id
    other = accept(database, Draft("The crane lifts on Mondays")).id
    after = find_end(workspace_over(database))
    revise.add_edge(database, other, EdgeDraft(EdgeKind.SUPERSEDES, new))
    revise.add_edge(database, other, EdgeDraft(EdgeKind.SUPPORTS, old))
    assert list_events(database)[:3] == [
        (EventType.WRITTEN, old),
        (EventType.WRITTEN, new),
        (EventType.SUPERSEDED, old),
    ]
    assert list_events(database, after) == [(EventType.SUPERSEDED, new)]


def test_candidate_sends_a_written_event_when_accepted(database):
    memory_id = accept(database, Draft("The port of staging is 80"), WritePolicy(suggest=True)).id
    after = find_end(workspace_over(database))
    assert list_events(database) == [(EventType.CANDIDATE, memory_id)]
    with database.write() as db:
        revise.let_in(db, revise.get_existing(db, memory_id), AT, "review")
    assert list_events(database, after) == [(EventType.WRITTEN, memory_id)]


def test_decay_and_relations_are_no_events(database):
    memory_id = accept(database, Draft("The port of staging is 80")).id
    after = find_end(workspace_over(database))
    with database.write() as db:
        changes.append(db, changes.FADE, [memory_id])
        changes.append(db, changes.RELATE, [memory_id])
    assert list_events(database, after) == []


def test_kinds_and_types_are_filters(database):
    fact = accept(database, Draft("The port of staging is 80")).id
    decision = accept(database, Draft("Staging stays on PostgreSQL", kind=Kind.DECISION)).id
    revise.purge(database, decision)
    revise.archive(database, fact)
    run(database, "dedup")
    of_decisions = EventFilter(Viewer(), kinds=(Kind.DECISION,))
    assert list_events(database, wanted=of_decisions) == [(EventType.PURGED, decision)]
    ends = EventFilter(Viewer(), types=(EventType.JOB_DONE, EventType.ARCHIVED))
    assert list_events(database, wanted=ends) == [(EventType.ARCHIVED, fact), (EventType.JOB_DONE, "dedup")]


def test_a_title_is_the_start_of_a_text_and_only_on_request(database):
    accept(database, Draft("The port\n of staging is 80. " * 20))
    [event] = read_events(workspace_over(database), Cursor(), EVERYTHING).events
    assert event.title is None
    [event] = read_events(workspace_over(database), Cursor(), EventFilter(Viewer(), titles=True)).events
    assert event.title.startswith("The port of staging is 80. The")
    assert len(event.title) <= events.MAX_TITLE_CHARS


def run(database, name, error=None):
    def job(_run: JobRun) -> Report:
        if error:
            raise ValueError(error)
        return Report()

    run_job(name, job, database, "test", pausing=lambda: False, on_error=lambda _: None)


def test_the_end_of_a_job_comes_once_and_says_whether_it_succeeded(database):
    run(database, "dedup")
    run(database, "edges", error="a fault")
    page = read_events(workspace_over(database), Cursor(), EVERYTHING)
    assert [(event.type, event.job, event.ok) for event in page.events] == [
        (EventType.JOB_DONE, "dedup", True),
        (EventType.JOB_DONE, "edges", False),
    ]
    assert list_events(database, page.events[0].cursor) == [(EventType.JOB_DONE, "edges")]
    assert list_events(database, page.cursor) == []


def test_a_reader_that_missed_deleted_runs_starts_again(database):
    run(database, "dedup")
    cursor = find_end(workspace_over(database))
    for _ in range(runs.KEPT_RUNS + 1):
        run(database, "dedup")
    assert list_events(database, cursor) == [(EventType.RESET, None)]


@pytest.mark.parametrize("change", [{"number": 5}, {"stamp_ms": 1}, {"run": 3}])
def test_a_cursor_of_another_log_is_a_reset_to_the_end(database, change):
    accept(database, Draft("The port of staging is 80"))
    run(database, "dedup")
    end = find_end(workspace_over(database))
    page = read_events(workspace_over(database), replace(end, **change), EventFilter(Viewer(), kinds=(Kind.GOAL,)))
    assert [event.type for event in page.events] == [EventType.RESET]
    assert page.cursor == end


def test_a_pruned_log_is_a_reset(database):
    accept(database, Draft("The port of staging is 80"))
    cursor = find_end(workspace_over(database))
    accept(database, Draft("The crane lifts on Mondays"))
    with database.write() as db:
        db.execute("DELETE FROM change WHERE seq <= ?", (cursor.number,))
    assert list_events(database, cursor) == [(EventType.RESET, None)]


@pytest.mark.parametrize("text", ["", "x", "1", "1.2", "1.2.3.4", "-1.2.3", "1.2.3\n", "٣.1.1", "9" * 30])
def test_other_text_is_no_cursor(text):
    with pytest.raises(InvalidField):
        parse_cursor(text, "after")


@given(st.builds(Cursor, st.integers(0, 10**17), st.integers(0, 10**14), st.integers(0, 10**17)))
def test_a_cursor_is_read_as_it_was_sent(cursor):
    assert parse_cursor(str(cursor), "after") == cursor
