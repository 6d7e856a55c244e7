"""Agent sessions: what an agent is shown before it answers and acts, and what is recorded of its actions.

Answers use only stored data; new records are written in the background, in order. Each event checks once whether its
session is incognito: before the answer, or before the first write if the agent does not wait for an answer.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from sqlite3 import Connection
from typing import Any

from config.settings import Settings
from pipeline.features.capture.usecases import find_typed, run_memory_commands
from pipeline.features.indexing.usecases import list_session_notes
from pipeline.features.lessons.guard_offers import make_guard_offer
from pipeline.features.team.usecases import Asked
from pipeline.kernel.errors import FieldError, InvalidField
from pipeline.kernel.records import MAX_SESSION_ID_CHARS, OWNED, Viewer, list_session_names
from pipeline.kernel.records.hooks import AgentSession, HookAnswer
from pipeline.kernel.records.people import qualified_name, qualified_viewer
from pipeline.kernel.store import agent_sessions, meta
from pipeline.kernel.store.history import written_by
from pipeline.kernel.store.impressions import make_impressions
from pipeline.kernel.times import utc_now
from pipeline.kernel.workspace import Workspace, is_any_incognito, is_turn_silent
from pipeline.prompt.briefing import Briefing, BriefingLimits, hook_recall_budget_ms, read_shown
from pipeline.prompt.ended_turns import begin_turn, close_turn
from pipeline.prompt.line import LineSource
from pipeline.prompt.render import is_rule, version_of
from pipeline.prompt.sources.sessions import make_remedy_line
from pipeline.prompt.start.session_brief import BriefRoom, SessionBrief, brief_project, brief_resumed_session
from pipeline.prompt.tool_calls.act_lines import ActLines, choose_new, fit, make_key
from pipeline.prompt.tool_calls.guards import FindProject, ToolGuard, ToolGuards
from pipeline.prompt.usecases import PromptService
from pipeline.recall.contexts import SearchContexts
from pipeline.recall.deadline import Deadline
from pipeline.recall.feedback import FeedbackWriter
from pipeline.sessions.intake_usecases import SessionIntake, SessionSource
from pipeline.sessions.orders.usecases import NoSaveService
from pipeline.sessions.remedies import find_known_remedy
from pipeline.text.normalize import normalize_id
from pipeline.text.own_words import drop_private, is_host_notice
from pipeline.write.tool_actions import Outcome, describe_action, is_worth_storing

# Why a hook shows nothing.
IS_OFF, RECALL_OFF = "Reverie is off here (setting enabled)", "recall in hooks is off"
INCOGNITO, NOTHING_WRITTEN = "the session or the workspace is incognito", "nothing was written here yet"
HOST_NOTICE = "the host wrote all of the prompt"
NOTED = "noted"
ACTS_OFF, NOTHING_CONCERNS = "lines before acts are off (setting act_recall)", "nothing new concerns this act"
NOTHING_ABOUT, NOTHING_TO_BRIEF = "nothing new is about it", "there is nothing to tell at the beginning"

# Budget of the first prompts after a start, and of the first in a workspace whose indexes are not loaded yet.
WARMING_BUDGET_MS = 800
# Only this many characters of a prompt are searched for.
LONGEST_QUESTION = 4000
# Sources of a session start after which the agent has lost a part of its context.
RESUMED = frozenset({"compact", "resume"})
FORGETFUL = RESUMED | {"clear"}


def identify_session(session_id: str, agent_id: str, cwd: str, person_id: str | None = None) -> AgentSession:
    """Return the session that a host names, which can read its own memories and those of its person.

    Raises InvalidField for a name that is too long or contains a reserved character.
    """
    for name, value in (("session_id", session_id), ("agent_id", agent_id)):
        if len(value) > MAX_SESSION_ID_CHARS:
            raise InvalidField(FieldError(name, f"must have at most {MAX_SESSION_ID_CHARS} characters"))
        if OWNED in value:
            raise InvalidField(FieldError(name, f"must not contain {OWNED}"))
    session, agent = normalize_id(session_id) or None, normalize_id(agent_id) or None
    viewer = qualified_viewer(person_id, Viewer(session=session, agent=agent))
    return AgentSession(qualified_name(person_id, session), qualified_name(person_id, agent), cwd, viewer)


class AgentSessionService:
    """Answer the events of agents' sessions; `usual` is the workspace of folders without their own workspace."""

    def __init__(
        self,
        usual: Workspace,
        contexts: SearchContexts,
        feedback: FeedbackWriter,
        prompts: PromptService,
        intake: SessionIntake,
    ) -> None:
        self._usual = usual
        self._intake = intake
        self._prompts = prompts
        self._contexts = contexts
        self._feedback = feedback
        self._guards = ToolGuards(feedback, self.is_off_the_record)
        self._acts = ActLines()
        self.no_save = NoSaveService(usual, feedback)

    def answer_prompt(
        self,
        workspace: Workspace,
        session: AgentSession,
        message: str,
        own: Callable[[], Workspace] | None = None,
        waits_ms: int = 0,
    ) -> HookAnswer:
        """Return the memories about a message that are new in this session; run the memory commands in it first.

        `waits_ms`: how long the host of a prompt that started the stack still waits.
        """
        began = time.perf_counter()
        if not workspace.access.is_enabled:
            return HookAnswer(reason=IS_OFF)
        typed = find_typed(workspace, message, session.cwd)
        unsaved = self.no_save.run_no_save_command(workspace, session, typed, own or (lambda: workspace))
        if early := unsaved or self._stay_silent(workspace, session, message):
            return early
        message, typed, settings = drop_private(message), drop_private(typed), self._with_budget(workspace, waits_ms)
        done = run_memory_commands(workspace, self._contexts, session, typed)
        replies = [result.says for result in done] or make_guard_offer(workspace, session, typed)
        message, budget_ms = message.strip()[:LONGEST_QUESTION], hook_recall_budget_ms(settings)
        limits = BriefingLimits(budget_ms, settings.hook_max_chars, settings.imports_in_prompts)
        ask = self._prompts.ask_teams
        asked = ask(workspace, session, message, limits.budget_ms) if settings.hook_recall else Asked()
        if not (workspace.exists or workspace.personal_store or asked.waiting):
            return HookAnswer("\n".join(result.says for result in done) or None, reason=NOTHING_WRITTEN)
        self._begin_turn(workspace, session)
        briefing = Briefing()
        if settings.hook_recall:
            briefing = self._prompts.compose(workspace, session, message, limits, asked, for_hook=True)
        text = "\n".join(filter(None, [*replies, briefing.text])) or None
        if (time.perf_counter() - began) * 1000 > settings.hook_budget_ms and not replies:
            # The host has stopped waiting: the agent was shown nothing, and no memory is recorded as shown.
            return HookAnswer(reason=describe_late(settings), is_late=True)
        self._note_briefing(workspace, session, briefing)
        reason = NOTHING_ABOUT if settings.hook_recall else RECALL_OFF
        shown = (*briefing.shown, *briefing.person_shown, *(act.memory for act in done if act.memory is not None))
        return HookAnswer(text, shown, None if text else reason, left_out=briefing.left_out)

    def _stay_silent(self, workspace: Workspace, session: AgentSession, message: str) -> HookAnswer | None:
        if self.is_off_the_record(workspace, session.id):
            return HookAnswer(reason=INCOGNITO, is_kept=False)
        return HookAnswer(reason=HOST_NOTICE) if is_host_notice(message) else None

    def _begin_turn(self, workspace: Workspace, session: AgentSession) -> None:
        self._acts.prepare(workspace)
        if session.id is not None:
            # Earlier notes are written before this prompt is answered; this turn's note is not waited for.
            self._feedback.flush()
        if session.id is not None and workspace.exists and workspace.access.notes_sessions:
            # A person's folder is on their own machine: this path means nothing here.
            cwd = normalize_id(session.cwd) if workspace.person_id is None else ""
            self._note(workspace, partial(begin_turn, session_id=session.id, cwd=cwd, at=utc_now()))

    def _note_briefing(self, workspace: Workspace, session: AgentSession, shown_brief: Briefing | SessionBrief) -> None:
        """Record what an agent was shown."""
        self._feedback.record_impressions(workspace, shown_brief.impressions)
        if isinstance(shown_brief, SessionBrief):
            # What the start of a session lists is shown again with the first prompt that it is about.
            return
        others = [line.key for line in shown_brief.lines if line.hit is None or line.source is LineSource.TEAM]
        # Without a workspace, there are only lines of teams; the personal store may remember them.
        if (store := workspace if workspace.exists else workspace.personal_store) is not None:
            self._note_seen(store, session, others)
        for owner, shown in ((workspace, shown_brief.shown), (workspace.person, shown_brief.person_shown)):
            if shown:
                self._feedback.record_accesses(owner, shown)
                self._note_seen(owner, session, [(memory.seq, version_of(memory)) for memory in shown])

    def _with_budget(self, workspace: Workspace, waits_ms: int) -> Settings:
        # Commands in a message may load the workspace's indexes: this is called before them.
        settings = workspace.settings
        if not self._contexts.is_cold(workspace):
            return settings
        return replace(settings, hook_budget_ms=max(settings.hook_budget_ms, waits_ms or WARMING_BUDGET_MS))

    def start_session(self, workspace: Workspace, session: AgentSession, source: str) -> HookAnswer:
        """Return the project's brief, or the state of a resumed session whose agent lost a part of its context."""
        access = workspace.access
        if not access.recalls:
            return HookAnswer(reason=RECALL_OFF if access.is_enabled else IS_OFF)
        if self.is_off_the_record(workspace, session.id):
            return HookAnswer(reason=INCOGNITO, is_kept=False)
        person = workspace.personal_store
        if not workspace.exists and person is None:
            return HookAnswer(reason=NOTHING_WRITTEN)
        notes_sessions = workspace.exists and access.notes_sessions
        if source in FORGETFUL and session.id is not None and notes_sessions:
            self._note(workspace, partial(agent_sessions.clear_seen, session_id=session.id))
        self._acts.prepare(workspace)
        # Write pending records first, so that the brief contains them.
        self._feedback.flush()
        notes = list_session_notes(workspace)
        room = BriefRoom(workspace.settings.hook_max_chars, datetime.now(UTC), notes, notes_sessions)
        database = workspace.database if workspace.exists else None
        of_person = None if person is None else person.database
        brief = None
        if source in RESUMED and database is not None:
            brief = brief_resumed_session(database, of_person, session, room)
        brief = brief or brief_project(database, of_person, session, room)
        if brief is None:
            return HookAnswer(reason=NOTHING_TO_BRIEF)
        if brief.has_history and session.id is not None:
            self._note(workspace, partial(meta.note, key=meta.HISTORY_SHOWN_TO, value=session.id))
        self._note_briefing(workspace, session, brief)
        return HookAnswer(brief.text, (*brief.shown, *brief.person_shown))

    def guard_tool_use(
        self,
        workspace: Workspace,
        session: AgentSession,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        is_whole: bool = True,
        can_ask: bool = True,
        find_project: FindProject | None = None,
    ) -> ToolGuard | None:
        """Return the critical lessons against a tool call, also those of other projects whose files it names."""
        return self._guards.guard(
            workspace, session, tool, arguments, is_whole=is_whole, can_ask=can_ask, find_project=find_project
        )

    def advise_tool_use(
        self, workspace: Workspace, session: AgentSession, tool: str, arguments: Mapping[str, Any]
    ) -> HookAnswer:
        """Return what concerns a tool call that is about to run, in at most two lines; nothing for most calls."""
        access = workspace.access
        if workspace.settings.act_recall == "off" or not access.recalls:
            return HookAnswer(reason=ACTS_OFF if access.recalls else RECALL_OFF)
        if not workspace.exists:
            return HookAnswer(reason=NOTHING_WRITTEN)
        if self.is_off_the_record(workspace, session.id):
            return HookAnswer(reason=INCOGNITO, is_kept=False)
        deadline = Deadline(hook_recall_budget_ms(workspace.settings))
        warnings = self._acts.list_warnings(workspace, session, tool, arguments, deadline)
        if not warnings:
            return HookAnswer(reason=NOTHING_CONCERNS)
        # A line may have just been shown.
        self._feedback.flush()
        with workspace.database.read() as db:
            text, chosen = fit(choose_new(db, session, warnings))
        if deadline.elapsed_ms > workspace.settings.hook_budget_ms:
            # The host has stopped waiting: nothing is recorded as shown.
            return HookAnswer(reason=describe_late(workspace.settings), is_late=True)
        shown = [warning.memory for warning in chosen if warning.memory is not None]
        rules = [memory for memory in shown if is_rule(memory)]
        self._feedback.record_impressions(workspace, make_impressions(rules, session.id, session.agent_id))
        self._note_seen(workspace, session, [make_key(warning) for warning in chosen])
        return HookAnswer(text or None, tuple(shown), None if text else NOTHING_CONCERNS)

    def record_tool_use(
        self, workspace: Workspace, session: AgentSession, tool: str, arguments: Mapping[str, Any], outcome: Outcome
    ) -> HookAnswer:
        """Record an action; return the remedy if it failed with an error that was solved before.

        The first action in a project creates its workspace.
        """
        hint = None if outcome.ok else self._find_remedy(workspace, session, tool, arguments, outcome)
        if session.id is not None and workspace.access.keeps_journal:
            self._submit(workspace, partial(self._add_action, workspace, session, utc_now(), tool, arguments, outcome))
        if outcome.ok:
            self._guards.note_made(session, tool, arguments)
        return HookAnswer(hint, reason=None if hint else NOTED)

    def _find_remedy(
        self, workspace: Workspace, session: AgentSession, tool: str, arguments: Mapping[str, Any], outcome: Outcome
    ) -> str | None:
        if session.id is None or not (workspace.access.recalls and workspace.exists):
            return None
        action = describe_action(session.id, session.agent_id, "", tool, arguments, outcome, session.cwd)
        if action is None or self.is_off_the_record(workspace, session.id):
            return None
        if action.error_signature is None:
            return None
        with workspace.database.read() as db:
            remedy = find_known_remedy(db, action.error_signature, workspace.person_id)
        if remedy is None:
            return None
        line = make_remedy_line(remedy)
        # The line may have just been shown.
        self._feedback.flush()
        with workspace.database.read() as db:
            if read_shown(db, session, [line]):
                return None
        self._note_seen(workspace, session, [line.key])
        return line.text

    def end_turn(
        self, workspace: Workspace, session: AgentSession, source: SessionSource | None = None, at: str | None = None
    ) -> None:
        """Record which lessons the turn followed, its result if the agent stored none, and its messages."""
        if session.id is None or session.agent_id is not None:
            return  # The end of a subagent does not end a turn.
        access = workspace.access
        if access.is_enabled and not access.is_read_only:
            self._submit(workspace, partial(self._close_turn, workspace, session, at or utc_now()))
        self.take_said(workspace, session, source)
        if source is not None:
            self._intake.note_ended(session.id)

    def take_said(self, workspace: Workspace, session: AgentSession, source: SessionSource | None) -> None:
        """Store the messages since the last call, for capture to read; where hooks are off, only skip them."""
        if source is not None and session.id is not None:
            is_silent = partial(self.is_off_the_record, session_id=session.id)
            self._submit(workspace, partial(self.continue_silence, workspace, session, source))
            self._submit(workspace, partial(self._intake.take, workspace, session, source, is_silent))

    def take_earlier(self, workspace: Workspace, session: AgentSession, source: SessionSource | None) -> None:
        """Store what was said before a prompt, which may end a turn that no event ended.

        The prompt may be among the records, so nothing is skipped while only the turn before it is silent.
        """
        if source is None or session.id is None:
            return
        self.continue_silence(workspace, session, source)
        is_silent = workspace.exists and is_turn_silent(workspace, session.id)
        if not (is_silent or self._intake.is_turn_ended(session.id)):
            self.take_said(workspace, session, source)

    def continue_silence(self, workspace: Workspace, session: AgentSession, source: SessionSource | None) -> None:
        """Make a session incognito that continues one in which nothing may be saved."""
        if source is not None and not self.is_off_the_record(workspace, session.id):
            self._intake.continue_silence(workspace, session, source, partial(self.is_off_the_record, workspace))

    def flush(self, workspace: Workspace) -> None:
        """Write all pending usage records, with a short time limit."""
        if workspace.exists:
            self._feedback.flush_usage(workspace)

    def is_off_the_record(self, workspace: Workspace, session_id: str | None) -> bool:
        """Return whether nothing of a session may be recorded: it or its workspace is incognito.

        A session that was made incognito outside a project stays incognito when it moves into one.
        """
        if workspace.access.is_incognito:
            return True
        names = list_session_names(None, session_id)
        stores = {store.id: store for store in (workspace, self._usual)}
        return any(is_any_incognito(store, names) for store in stores.values())

    def _add_action(
        self,
        workspace: Workspace,
        session: AgentSession,
        at: str,
        tool: str,
        arguments: Mapping[str, Any],
        outcome: Outcome,
    ) -> None:
        action = describe_action(session.id or "", session.agent_id, at, tool, arguments, outcome, session.cwd)
        if action is None or self.is_off_the_record(workspace, session.id) or not is_worth_storing(workspace, action):
            return
        with workspace.create().write() as db:
            agent_sessions.add_action(db, action)

    def _close_turn(self, workspace: Workspace, session: AgentSession, at: str) -> None:
        # The actions of this turn may have just created the workspace.
        if session.id is not None and workspace.exists and not self.is_off_the_record(workspace, session.id):
            close_turn(workspace, session.id, at)

    def _note_seen(self, workspace: Workspace, session: AgentSession, versions: Sequence[tuple[int, str]]) -> None:
        if session.id is not None and versions and workspace.access.notes_sessions:
            record = partial(agent_sessions.record_seen, session_id=session.id, agent_id=session.agent_id or "")
            self._note(workspace, partial(record, versions=versions))

    def _note(self, workspace: Workspace, note: Callable[[Connection], object]) -> None:
        self._submit(workspace, partial(write_note, workspace, note))

    def _submit(self, workspace: Workspace, task: Callable[[], object]) -> None:
        """Run a task in the background, in order; its changes are those of the person who works on the workspace."""
        self._feedback.submit_logged("hooks", workspace.id, written_by(workspace.person_id)(task))


def write_note(workspace: Workspace, note: Callable[[Connection], object]) -> None:
    """Write a note in a transaction of its own."""
    with workspace.database.write() as db:
        note(db)


def describe_late(settings: Settings) -> str:
    """Return why an answer that took too long is not given."""
    return f"it took longer than {settings.hook_budget_ms} ms"
