"""Distillation: propose the lessons of a session to a person.

They come from corrections, reverted edits, failures that were fixed, and repeated statements.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipeline.features.capture.model import MAX_CALLS, ModelContext, choose_related, list_open, word_lessons
from pipeline.features.capture.proposals import list_sentences
from pipeline.features.lessons.job import Wording
from pipeline.features.model.extractor import open_model
from pipeline.kernel.records import CAPTURED_TAG, Draft, Filter, Kind, Receipt, Source, Viewer
from pipeline.kernel.records.access import WritePolicy
from pipeline.kernel.records.people import owner_of
from pipeline.kernel.store import agent_sessions, memories, refusals, turns
from pipeline.kernel.store.agent_sessions import Action, ActionType
from pipeline.kernel.store.turns import Role, Turn
from pipeline.kernel.workspace import Workspace, is_incognito
from pipeline.text.sentences import corrects
from pipeline.text.tokens import search_tokens
from pipeline.write.accept import commit
from pipeline.write.prepare import prepare
from pipeline.write.tool_actions import shorten_command

IMPORTANCE = 0.6
MOST_PROPOSED = 10
MAX_FILES_LISTED = 3
# Minimum share of the shorter remark's words that the other must contain.
MIN_SHARED_WORDS = 0.6
MIN_COMMON_WORDS = 3
_REVERT = re.compile(r"\bgit\s+(?:revert|restore|reset\s+--hard|checkout\s+(?:--|HEAD|\.)|stash\s+drop)")


def propose_lessons(
    session_id: str, turns: Sequence[Turn], did: Sequence[Action], worded: Sequence[Wording] = ()
) -> list[Draft]:
    """Return the lessons that a session suggests, without duplicates; `turns` and `did` are in order.

    `worded` are the lessons that a model worded.
    """
    lessons: dict[str, Draft] = {}
    for wording in worded:
        text = f"{wording.applies_when} → {wording.rule}"
        lessons[text] = _draft(session_id, text, {"reason": "model"}, wording.model_dump())
    corrections = (("correction", *remark) for remark in _remarks(turns))
    for reason, text, turn in (*corrections, *_repeated(turns), *_mended(did), *_reverts(turns, did)):
        metadata = {"reason": reason} | ({"turn": turn.seq} if turn is not None else {})
        lessons.setdefault(text, _draft(session_id, text, metadata, {"rule": text}))
    return list(lessons.values())[:MOST_PROPOSED]


def _draft(session_id: str, text: str, metadata: Mapping[str, Any], details: Mapping[str, str]) -> Draft:
    return Draft(
        text,
        kind=Kind.LESSON,
        importance=IMPORTANCE,
        tags=(CAPTURED_TAG, "distilled"),
        metadata=metadata,
        session_id=session_id,
        source=Source.AMBIENT,
        details=details,
    )


Found = Iterator[tuple[str, str, Turn | None]]


def _remarks(turns: Sequence[Turn]) -> list[tuple[str, Turn]]:
    """Return the sentences in which a person corrects the agent, after the agent spoke."""
    spoken = [before for before in turns if before.role is Role.ASSISTANT]
    first = spoken[0].seq if spoken else None
    return [
        (sentence, turn)
        for turn in turns
        if turn.role is Role.USER and first is not None and turn.seq > first
        for sentence in list_sentences(turn.content)
        if corrects(sentence)
    ]


def _repeated(turns: Sequence[Turn]) -> Found:
    """Yield statements that a person repeated in a session, in the words of the later turn."""
    sentences = [
        (sentence, frozenset(search_tokens(sentence)), turn)
        for turn in turns
        if turn.role is Role.USER
        for sentence in list_sentences(turn.content)
        if not sentence.rstrip().endswith("?")
    ]
    for number, (sentence, words, turn) in enumerate(sentences):
        for _, earlier, other in sentences[:number]:
            common = len(words & earlier)
            least = min(len(words), len(earlier)) or 1
            if other.seq != turn.seq and common >= MIN_COMMON_WORDS and common / least >= MIN_SHARED_WORDS:
                yield "said again", sentence, turn
                break


def _mended(did: Sequence[Action]) -> Found:
    """Yield commands that failed and succeeded after files were edited."""
    failed: dict[str, int] = {}
    for index, action in enumerate(did):
        if action.type not in (ActionType.TEST, ActionType.COMMAND):
            continue
        if not action.ok:
            failed.setdefault(action.target, index)
        elif action.target in failed:
            between = did[failed.pop(action.target) : index]
            edited = dict.fromkeys(
                action_between.target
                for action_between in between
                if action_between.type is ActionType.EDIT and action_between.ok
            )
            if edited:
                files = ", ".join(list(edited)[:MAX_FILES_LISTED])
                yield (
                    "mended",
                    f"When `{shorten_command(action.target)}` fails, look at {files}: editing it helped.",
                    None,
                )


def _reverts(turns: Sequence[Turn], did: Sequence[Action]) -> Found:
    """Yield edits that were reverted at once, with the remark that asked for it."""
    for before, action in pairwise(did):
        if before.type is not ActionType.EDIT or not action.ok or not _REVERT.search(action.target):
            continue
        asked = [(sentence, turn) for sentence, turn in _remarks(turns) if before.at <= turn.at <= action.at]
        why = f" {asked[-1][0]}" if asked else ""
        turn = asked[-1][1] if asked else None
        yield "reverted", f"An edit of {before.target} was reverted (`{shorten_command(action.target)}`).{why}", turn


LOOKED_AT = 200


def distill_session(workspace: Workspace, session_id: str, *, asks_model: bool = False) -> list[Receipt]:
    """Propose the lessons of a session for review, except known or refused ones.

    With `asks_model`, the caller waits for the optional model, if capture may use it.
    """
    if is_incognito(workspace, [session_id]):
        return []
    with workspace.database.read() as db:
        session_turns = list(reversed(turns.page(db, session_id, LOOKED_AT, None)))
        did = agent_sessions.list_actions(db, session_id, "", LOOKED_AT)
    worded = _ask_model(workspace, session_turns, did) if asks_model else []
    with workspace.database.read() as db:
        offered = [prepare(draft) for draft in propose_lessons(session_id, session_turns, did, worded)]
        new = [
            item
            for item in offered
            if memories.find_active_text(db, item.memory.scope, item.memory.content_hash) is None
            and refusals.find(db, item.memory.content_hash) is None
        ]
    return commit(workspace.database, new, WritePolicy(suggest=True)) if new else []


def _ask_model(workspace: Workspace, session_turns: Sequence[Turn], did: Sequence[Action]) -> list[Wording]:
    model = open_model(workspace.database, workspace.settings) if workspace.settings.capture_llm else None
    if model is None or not session_turns:
        return []
    session_id = session_turns[-1].session_id
    viewer = Viewer(person=owner_of(session_id), session=session_id, only_normal=True)
    with workspace.database.read() as db:
        known = list_open(db, Filter(kinds=(Kind.LESSON,), viewer=viewer, current=True))
    related = choose_related(known, " ".join(turn.content for turn in session_turns))
    return word_lessons(model, session_turns, ModelContext(did[-MAX_CALLS:], related))
