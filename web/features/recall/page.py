"""Recall lab: run a query, explain its ranking and timing, and compare two sets of settings.

Queries of this page are not recorded and do not affect ranking.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from flask import request, url_for
from pydantic import Field, StringConstraints

from pipeline.features.memories.usecases import get_memory
from pipeline.kernel.records import Filter, Kind, Memory
from pipeline.kernel.records.people import qualified_name
from pipeline.kernel.records.recall import SEARCHED_CHANNELS, Answer, Channel, MemoryExplanation, Query
from pipeline.recall.query import parse_query
from pipeline.recall.rank import FEATURES_OF_GROUP
from pipeline.recall.usecases import explain_memory, list_likely_questions, measure_recall
from web.dashboard import score_bars, view as page
from web.http.bodies import SessionId

section = page.Section("recall", link=page.Link("Recall lab", "recall_lab", "Memory"))

MAX_K = 20
MAX_BUDGET_MS = 10_000
MAX_QUESTION_CHARS = 4000
SETTINGS = ("k", "kinds", "since", "until", "as_of", "session", "budget", "only")
EXAMPLES = 8
MATCHES = 5
# Number of results whose scores are explained on the page; others are explained on request.
EXPLAINED = 10
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)

Results = Annotated[int, Field(ge=1, le=MAX_K)]
Budget = Annotated[int, Field(ge=1, le=MAX_BUDGET_MS)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_QUESTION_CHARS)]


class LabQuery(page.Query):
    """A question, a memory missing from its results, and one or two sets of settings."""

    q: Text = ""
    why: Text = ""
    compare: bool = False
    k: Results = 10
    kinds: tuple[Kind, ...] = ()
    since: page.Moment | None = None
    until: page.Moment | None = None
    as_of: page.Moment | None = None
    session: SessionId | None = None
    budget: Budget | None = None
    only: Channel | None = None
    b_k: Results = 10
    b_kinds: tuple[Kind, ...] = ()
    b_since: page.Moment | None = None
    b_until: page.Moment | None = None
    b_as_of: page.Moment | None = None
    b_session: SessionId | None = None
    b_budget: Budget | None = None
    b_only: Channel | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of settings with its results and its explanation of the missing memory."""

    name: str
    prefix: str
    query: Query
    answer: Answer
    verdict: MemoryExplanation | None


@section.page("/recall", LabQuery)
def lab(view: page.View) -> str:
    """Show the results of a query and their explanation."""
    asked: LabQuery = view.query
    missed = _find_missed(view, asked.why) if asked.q and asked.why else None
    trials = _trials(view, missed) if asked.q else []
    explained = [hit.signals for trial in trials for hit in trial.answer.hits if hit.signals is not None]
    explained += [t.verdict.signals for t in trials if t.verdict is not None and t.verdict.signals is not None]
    return page.show(
        "recall.html",
        view,
        title="Recall lab",
        trials=trials,
        question=parse_query(asked.q, view.now) if asked.q else None,
        moves=score_bars.moves(trials[0].answer.hits, trials[1].answer.hits) if len(trials) == 2 else {},
        missed=missed,
        matches=_matches(view, asked.why) if asked.q and asked.why and missed is None else [],
        examples=[] if asked.q else list_likely_questions(view.workspace, EXAMPLES),
        score_bars=score_bars,
        features_of_group=FEATURES_OF_GROUP,
        scale=score_bars.scale_of(explained),
        address=_address,
        compared=_compare_address(asked),
        tuned=asked.compare or any(getattr(asked, name) not in (None, (), "") for name in SETTINGS if name != "k"),
        kinds=list(Kind),
        channels=SEARCHED_CHANNELS,
        usual_budget=view.workspace.settings.recall_budget_ms,
        limits={"k": MAX_K, "budget": MAX_BUDGET_MS, "text": MAX_QUESTION_CHARS, "explained": EXPLAINED},
    )


def _trials(view: page.View, missed: Memory | None) -> list[Trial]:
    prefixes = {"A": "", "B": "b_"} if view.query.compare else {"A": ""}
    return [_trial(view, name, prefix, missed) for name, prefix in prefixes.items()]


def _trial(view: page.View, name: str, prefix: str, missed: Memory | None) -> Trial:
    query, contexts = _query(view, prefix), view.container.contexts
    answer = measure_recall(view.workspace, contexts, query)
    explanation = None if missed is None else explain_memory(view.workspace, contexts, query, missed.id)
    return Trial(name, prefix, query, answer, explanation)


def _query(view: page.View, prefix: str) -> Query:
    options = {name: getattr(view.query, prefix + name) for name in SETTINGS}
    return Query(
        text=view.query.q,
        k=options["k"],
        filter=Filter(
            kinds=options["kinds"],
            session_id=qualified_name(view.workspace.person_id, options["session"] or None),
            since=options["since"],
            until=options["until"],
            as_of=options["as_of"],
            viewer=view.workspace.onlooker,
        ),
        budget_ms=options["budget"] or view.workspace.settings.recall_budget_ms,
        explain=True,
        channels=tuple(Channel) if options["only"] is None else (options["only"],),
    )


def _find_missed(view: page.View, named: str) -> Memory | None:
    """Return the memory with this id, None if the text is not an id."""
    if not _ID.fullmatch(named):
        return None
    return get_memory(view.workspace, named.upper())


def _matches(view: page.View, words: str) -> Sequence[Memory]:
    query = Query(words, k=MATCHES, filter=Filter(viewer=view.workspace.onlooker))
    answer = measure_recall(view.workspace, view.container.contexts, query)
    return [hit.memory for hit in answer.hits]


def _address(**changes: Any) -> str:
    """Return the address of this page with changed parameters; None removes a parameter."""
    parameters = {**request.args.to_dict(flat=False), **changes}
    return url_for(
        "dashboard.recall_lab", **{name: value for name, value in parameters.items() if value not in (None, "", [""])}
    )


def _compare_address(asked: LabQuery) -> str:
    """Return the address that compares these settings with a copy of them."""
    copied = {f"b_{name}": getattr(asked, name) for name in SETTINGS if name in asked.model_fields_set}
    return _address(compare=1, **copied)
