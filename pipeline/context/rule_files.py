"""Leave out memories that repeat a rule file, which the agent's host loads itself."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from pipeline.recall.relevance import RELEVANT
from pipeline.records import Kind, Memory
from pipeline.records.recall import Hit
from pipeline.store import ingested, memories
from pipeline.store.database import Database
from pipeline.text.similarity.pair_classifier import MERGE_COSINE, Relation, classify_pair
from pipeline.text.tokens import search_tokens

# Enough for long rule files; each is compared with the few memories that may be shown.
MAX_STATEMENTS = 1000
# A longer text says more than one statement.
MAX_CHARS: Final = 600
# The share of a statement's words that the other must contain before both are compared closely.
LEAST_SHARED: Final = 0.7
_CONTAINED: Final = ("one contains more",)


def list_rules(*databases: Database | None) -> list[str]:
    """Return the statements of the indexed rule files of the project and the user."""
    rules: list[str] = []
    for database in databases:
        if database is not None:
            with database.read() as db:
                seqs = ingested.list_rule_statements(db, MAX_STATEMENTS)
                rules += memories.contents(db, seqs).values() if seqs else ()
    return rules


def leave_out_rules(databases: Sequence[Database], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the results that may be injected and do not repeat a rule file."""
    shown = tuple(hit for hit in hits if hit.memory.may_be_injected)
    # The others are not shown, and outlines of code repeat no rule.
    certain = [hit for hit in shown if hit.relevance >= RELEVANT and hit.memory.kind is not Kind.CODE]
    rules = list_rules(*databases) if certain else []
    repeated = {hit.memory.id for hit in certain if repeats_rule(hit.memory, rules)}
    return tuple(hit for hit in shown if hit.memory.id not in repeated)


def leave_out_rules_of_groups(databases: Sequence[Database], groups: Sequence[Sequence[Hit]]) -> list[tuple[Hit, ...]]:
    """Leave out the results of each group as `leave_out_rules` does, but read the rules once."""
    shown = frozenset(map(id, leave_out_rules(databases, [hit for hits in groups for hit in hits])))
    return [tuple(hit for hit in hits if id(hit) in shown) for hits in groups]


def repeats_rule(memory: Memory, rules: Sequence[str]) -> bool:
    """Return whether a rule file says what a memory says."""
    return any(is_repeated(memory.content, rule) for rule in rules)


def is_repeated(statement: str, other: str) -> bool:
    """Return whether another statement says the same, or the same and more."""
    if max(len(statement), len(other)) > MAX_CHARS:
        return False
    words, others = _words_of(statement), _words_of(other)
    if not words or len(words & others) < LEAST_SHARED * len(words):
        return False
    judgement = classify_pair(statement, other, MERGE_COSINE)
    return judgement.relation is Relation.SAME or (judgement.reasons == _CONTAINED and words <= others)


@lru_cache(maxsize=4000)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(search_tokens(text))
