"""A repetition keeps the stronger severity, pin, sensitivity and expiry, and its receipt says so."""

import pytest

from pipeline.kernel.records import Draft, Kind, Outcome, Revision, Sensitivity, Source
from pipeline.kernel.store import memories
from pipeline.write import revise
from pipeline.write.accept import accept
from tests.fakes.in_process import scratch_database
from web.http.receipt_text import describe_kept

SOON, LATER = "2099-01-01T00:00:00Z", "2099-06-01T00:00:00Z"
RULES = [
    "Never run manage.py migrate against prod.",
    "From now on never run manage.py migrate against prod",
    "Niemals gate/edifact_codes.py von Hand ändern.",
    "Ne lance jamais prisma migrate reset sur la prod.",
    "Nunca ejecutes terraform apply sin revisar el plan.",
    "never run cargo espflash without --monitor",
]


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


def lesson(text, severity=None, **fields):
    return Draft(text, Kind.LESSON, details={} if severity is None else {"severity": severity}, **fields)


def store(database, *drafts):
    """Write drafts of one text; return the last receipt and the memory."""
    receipt = [accept(database, draft) for draft in drafts][-1]
    with database.read() as db:
        return receipt, memories.get(db, receipt.id)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("source", [Source.AMBIENT, Source.USER, Source.AGENT])
def test_a_repetition_makes_a_rule_critical(database, rule, source):
    receipt, memory = store(database, lesson(rule, source=source), lesson(rule, "critical"))
    assert (receipt.outcome, receipt.kept) == (Outcome.MERGED, {"severity": "critical"})
    assert memory.details["severity"] == "critical"


@pytest.mark.parametrize("later", [None, "info", "warning"])
def test_a_repetition_never_weakens_a_rule(database, later):
    receipt, memory = store(database, lesson(RULES[0], "critical"), lesson(RULES[0], later))
    assert receipt.kept == {"severity": "critical"}
    assert memory.details["severity"] == "critical"


def test_a_rule_keeps_its_other_fields(database):
    details = {"rule": "Use the backup.", "applies_when": "when restoring"}
    _, memory = store(
        database,
        Draft("The backup is complete.", Kind.LESSON, details=details),
        lesson("The backup is complete.", "critical"),
    )
    assert memory.details == {**details, "severity": "critical"}


@pytest.mark.parametrize(
    ("stored", "repeated", "kept"),
    [
        ({}, {"sensitivity": Sensitivity.PRIVATE}, {"sensitivity": "private"}),
        ({"sensitivity": Sensitivity.PRIVATE}, {}, {"sensitivity": "private"}),
        ({"expires_at": SOON}, {"expires_at": LATER}, {"expires_at": LATER}),
        ({"expires_at": LATER}, {"expires_at": SOON}, {"expires_at": LATER}),
        ({"expires_at": SOON}, {}, {"expires_at": None}),
        ({}, {"expires_at": SOON}, {"expires_at": None}),
        ({}, {}, None),
    ],
)
@pytest.mark.parametrize("kind", [Kind.FACT, Kind.LESSON])
def test_the_stronger_of_two_values_is_kept_and_reported(database, kind, stored, repeated, kept):
    receipt, memory = store(
        database, Draft("The office is closed.", kind, **stored), Draft("The office is closed.", kind, **repeated)
    )
    assert receipt.kept == kept
    assert {name: getattr(memory, name) for name in kept or {}} == (kept or {})


def test_a_repetition_keeps_the_pin(database):
    first = accept(database, Draft("The office is closed."))
    revise.edit(database, first.id, Revision(pinned=True))
    receipt, memory = store(database, Draft("The office is closed."))
    assert (receipt.kept, memory.pinned) == ({"pinned": True}, True)


def test_a_fact_that_a_person_repeats_as_a_lesson_becomes_one(database):
    receipt, memory = store(database, Draft(RULES[0]), lesson(RULES[0], "critical"))
    assert receipt.outcome is Outcome.MERGED
    assert (memory.kind, memory.details["severity"]) == (Kind.LESSON, "critical")


def test_an_agent_cannot_change_the_kind(database):
    _, memory = store(database, Draft(RULES[0]), lesson(RULES[0], "critical", source=Source.AGENT))
    assert memory.kind is Kind.FACT


def test_a_command_reports_the_stronger_values_that_were_kept():
    kept = {"severity": "critical", "pinned": True, "expires_at": None, "sensitivity": "private"}
    assert describe_kept({"kept": kept}) == "; kept: no expiry, pinned, sensitivity private, severity critical"
    assert describe_kept({"kept": {"expires_at": SOON}}) == f"; kept: expires {SOON}"
    assert describe_kept({}) == ""
