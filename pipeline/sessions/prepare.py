"""Turn what a transcript says into what the archive stores: without host text, without secrets, with hashes.

This is most of an import's work, and needs no store: child processes do it.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pipeline.kernel.records import MAX_SESSION_ID_CHARS, OWNED
from pipeline.kernel.store.agent_sessions import Action
from pipeline.kernel.store.transcripts import Name, hash_name
from pipeline.kernel.store.turns import Message, Role, hash_text
from pipeline.kernel.times import normalize_time
from pipeline.sessions.command_files import drop_command_text, list_templates
from pipeline.sessions.orders.nosave import NoSave
from pipeline.sessions.orders.said_text import clean_said, name_session
from pipeline.sessions.orders.unsaved import list_resumed, resumes, split_said
from pipeline.sessions.readers.reader import Said, SessionHead, SessionPart, ToolUse
from pipeline.text.normalize import normalize_id, normalize_text, shorten
from pipeline.text.own_words import is_host_text
from pipeline.text.redaction import redact, redact_json
from pipeline.write.tool_actions import Outcome as ToolOutcome, describe_action

K = TypeVar("K", bound=Hashable)

# Why something is not stored.
NO_SESSION_ID = "session without a usable id"
UNFINISHED = "interruption or error of the host"
NOT_TO_SAVE = "the user asked not to save it"
EMPTY = "no words of the user or the agent"
COMMAND_TEXT = "text of a command file"
ONLY_READS = "tool call that only reads"

# The records of these logs are numbered, so their ids are equal in each session. They have times instead.
NUMBERED = frozenset({"antigravity"})
LONGEST_TITLE = 200
_LONGEST_BRANCH = 200


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """A message to store, and the folder that it belongs to; `at` is empty if the transcript has no time.

    `names` are the hashes by which its record and copies of it are known. `is_mid_turn` is whether the person typed it
    while the agent worked, `is_resumed` whether it follows an order to save the session again, `is_unanswered` whether
    its turn was interrupted or failed before the agent answered.
    """

    role: Role
    content: str
    at: str
    text_hash: int
    folder: str = ""
    names: tuple[str, ...] = ()
    is_mid_turn: bool = False
    is_resumed: bool = False
    is_unanswered: bool = False


@dataclass(frozen=True, slots=True)
class PreparedAction:
    """An action to store, and the folder that it belongs to."""

    action: Action
    folder: str


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """A part of a session, ready to store; `mode` is the last change of what the user wants saved.

    `forgets_before` is whether the user had the turn before this part forgotten, `folder` that of its first entry.
    `unsaved` are the names of the messages that are not stored.
    """

    session: SessionHead
    mark: str
    messages: tuple[PreparedMessage, ...] = ()
    actions: tuple[PreparedAction, ...] = ()
    left_out: Counter[str] = field(default_factory=Counter)
    problems: tuple[str, ...] = ()
    mode: NoSave | None = None
    forgets_before: bool = False
    name: str | None = None
    folder: str = ""
    taken_back: tuple[PreparedMessage, ...] = ()
    unsaved: tuple[str, ...] = ()

    @property
    def times(self) -> list[str]:
        """Return the times of the messages and actions."""
        return [*(message.at for message in self.messages), *(prepared.action.at for prepared in self.actions)]


def split_part(part: PreparedPart, owner_of_folder: Callable[[str], K]) -> list[tuple[K, PreparedPart]]:
    """Split a part by the owners of its folders, that of its first entry first.

    The title describes the session's first folder, so other owners do not get it.
    """
    folders = [*(each.folder for each in part.messages), *(each.folder for each in part.actions)]
    folders = [part.folder, *folders, *(each.folder for each in part.taken_back)]
    owners = dict.fromkeys(map(owner_of_folder, folders))
    if len(owners) == 1:
        return [(owner, part) for owner in owners]
    home, split = owner_of_folder(part.session.cwd), []
    for number, owner in enumerate(owners):
        messages = tuple(item for item in part.messages if owner_of_folder(item.folder) == owner)
        actions = tuple(item for item in part.actions if owner_of_folder(item.folder) == owner)
        taken_back = tuple(item for item in part.taken_back if owner_of_folder(item.folder) == owner)
        head = part.session
        if owner != home:
            folders = [*(each.folder for each in messages), *(each.folder for each in actions), part.folder]
            head = replace(head, cwd=folders[0], title=None, branch=None)
        name = _name(head, messages)
        own = replace(part, session=head, messages=messages, actions=actions, name=name, taken_back=taken_back)
        is_first = number == 0
        rest = replace(own, left_out=Counter(), problems=(), forgets_before=False, unsaved=())
        split.append((owner, own if is_first else rest))
    return split


class PartPreparer:
    """Prepare the parts of a file in order: what a user asked not to save goes on in the next part.

    `person_id` is of a person on another machine: a folder means nothing here. `is_silent` is whether the parts may
    begin with the answer to a message that is not stored. `templates_of` returns the templates of a folder's commands.
    """

    def __init__(
        self,
        person_id: str | None = None,
        *,
        is_silent: bool = False,
        templates_of: Callable[[str], Sequence[str]] = list_templates,
    ) -> None:
        self._person_id = person_id
        self._templates_of = templates_of
        self._session = ""
        self._starts_silent = self._is_silent = is_silent
        self._mode: NoSave | None = None

    def prepare(self, part: SessionPart) -> PreparedPart:
        """Return what to store of a part."""
        head, left_out, mark = _clean_head(part.session), Counter(part.left_out), clean_mark(part.mark)
        if head is None:
            left_out[NO_SESSION_ID] += len(part.entries)
            return PreparedPart(replace(part.session, id="", title=None), mark, (), (), left_out, part.problems)
        if head.id != self._session:
            is_first = not self._session
            self._session, self._is_silent, self._mode = head.id, is_first and self._starts_silent, None
        said = {number: entry for number, entry in enumerate(part.entries) if isinstance(entry, Said)}
        messages = {
            number: Message(head.id, entry.role, entry.content, entry.at or "") for number, entry in said.items()
        }
        stored, mode, forgets_before = self._split(list(messages.values()))
        prepared: list[PreparedMessage] = []
        actions: list[PreparedAction] = []
        unsaved: list[str] = []
        is_resumed = False
        for number, entry in enumerate(part.entries):
            if isinstance(entry, Said):
                self._is_silent = id(messages[number]) not in stored
            if self._is_silent:
                left_out[NOT_TO_SAVE] += 1
                unsaved += name_said(entry, head.agent, self._person_id) if isinstance(entry, Said) else ()
            elif isinstance(entry, Said):
                message = self._prepare_message(entry, head, left_out)
                prepared += [] if message is None else [replace(message, is_resumed=is_resumed)]
            else:
                actions += _prepare_action(entry, head, left_out)
            is_resumed = is_resumed or (number in messages and resumes(messages[number]))
        name, folder = _name(head, prepared), next((entry.folder for entry in part.entries), "") or head.cwd
        return PreparedPart(
            *(head, mark, tuple(prepared), tuple(actions), left_out, part.problems, mode, forgets_before),
            *(name, folder, tuple(self._prepare_taken_back(part, head)), tuple(unsaved)),
        )

    def _prepare_message(self, said: Said, head: SessionHead, left_out: Counter[str]) -> PreparedMessage | None:
        if is_host_text(said.role, said.content):
            left_out[UNFINISHED] += 1
            return None
        folder = said.folder or head.cwd
        is_typed_here = said.role is Role.USER and self._person_id is None
        typed = drop_command_text(said.content, self._templates_of(folder)) if is_typed_here else said.content
        content = clean_said(said.role, typed)
        if not content:
            left_out[EMPTY if typed.strip() else COMMAND_TEXT] += 1
            return None
        names = name_said(said, head.agent, self._person_id)
        at, text_hash = _clean_time(said.at), hash_text(said.role, content)
        return PreparedMessage(
            *(said.role, content, at, text_hash, folder, names, said.is_mid_turn), is_unanswered=said.is_unanswered
        )

    def _prepare_taken_back(self, part: SessionPart, head: SessionHead) -> Iterator[PreparedMessage]:
        for said in part.taken_back:
            message = self._prepare_message(said, head, Counter())
            if message is not None:
                name = ("taken back", head.id, said.role, message.at or said.content)
                yield replace(message, names=(hash_name(name),))

    def _split(self, messages: Sequence[Message]) -> tuple[set[int], NoSave | None, bool]:
        """Return the identities of the messages to store, the last mode, and whether to forget the turn before."""
        if self._mode is NoSave.SESSION:
            resumed = list_resumed(messages)
            if resumed is None:
                return set(), None, False
            messages, self._is_silent = resumed, False
            self._mode = NoSave.RESUME
        split = split_said(messages, follows_silence=self._is_silent)
        mode = split.mode or (self._mode if self._mode is NoSave.RESUME else None)
        self._mode = mode
        return {id(message) for message in split.to_store}, mode, split.forgets_before


def _clean_head(head: SessionHead) -> SessionHead | None:
    """Return a session without secrets, None if its id cannot be stored."""
    session_id = normalize_id(head.id)
    if not session_id or len(session_id) > MAX_SESSION_ID_CHARS or OWNED in session_id:
        return None
    title = head.title and redact(normalize_text(shorten(head.title, LONGEST_TITLE))).text
    branch = head.branch and redact(normalize_text(head.branch)).text[:_LONGEST_BRANCH]
    parent = head.parent and normalize_id(head.parent)
    return replace(
        head, id=session_id, title=title, branch=branch, parent=parent, started_at=_clean_time(head.started_at) or None
    )


def name_said(said: Said, agent: str, person_id: str | None) -> tuple[str, ...]:
    """Return the hashes that identify a record and its copies; none for a message without an id and a time."""
    names: list[Name] = []
    if said.id and agent not in NUMBERED:
        names.append((person_id, "id", said.id))
    if said.at:
        names.append((person_id, "at", said.at, said.role, said.content))
    return tuple(map(hash_name, names))


def _prepare_action(use: ToolUse, head: SessionHead, left_out: Counter[str]) -> Iterator[PreparedAction]:
    has_failed = use.ok is False or (use.ok is None and bool(use.exit_code))
    outcome = ToolOutcome(not has_failed, use.exit_code, use.error, use.replaced)
    folder = use.folder or head.cwd
    action = describe_action(head.id, None, _clean_time(use.at), use.tool, use.arguments, outcome, folder)
    if action is None:
        left_out[ONLY_READS] += 1
    else:
        yield PreparedAction(action, folder)


def clean_mark(mark: str, *, keeps_texts: bool = True) -> str:
    """Return a mark without secrets: a reader may note in it what was said and not yet answered.

    With `keeps_texts` off, nothing that was said stays in it.
    """
    try:
        fields, _ = redact_json(json.loads(mark))
    except ValueError:
        return redact(mark).text
    if not keeps_texts:
        fields["state"] = {}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _clean_time(at: str | None) -> str:
    try:
        return normalize_time(at) if at else ""
    except ValueError:
        return ""


def _name(head: SessionHead, messages: Sequence[PreparedMessage]) -> str | None:
    if head.title:
        return head.title
    first = next((message for message in messages if message.role is Role.USER), None)
    return None if first is None else name_session(first.content)
