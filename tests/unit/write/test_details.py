import pytest

from pipeline.kernel.errors import InvalidField
from pipeline.kernel.kinds import TRAITS
from pipeline.kernel.records import Kind, Tier
from pipeline.write.fields import Details, check_details, find_details

KEY = {"subject": "staging", "attribute": "port"}
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def find_problems(kind, given):
    with pytest.raises(InvalidField) as caught:
        check_details(kind, given, "details")
    return {error.loc: error.msg for error in caught.value.errors}


def test_every_kind_has_fields_and_traits():
    assert set(TRAITS) == set(Kind)
    assert [kind for kind in Kind if find_details(kind) is Details] == [Kind.FACT]


@pytest.mark.parametrize("kind", Kind)
def test_a_kind_starts_with_sensible_traits(kind):
    traits = TRAITS[kind]
    assert 0 < traits.importance < 1
    assert traits.half_life_days > 0
    if traits.tier is Tier.WORKING:
        assert traits.half_life_days <= 30


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        (Kind.FACT, {}),
        (Kind.DECISION, {}),
        (Kind.LESSON, {"severity": "warning"}),
        (Kind.GOAL, {"status": "open", "progress": 0.0}),
        (Kind.ACTIVITY, {}),
        (Kind.MILESTONE, {}),
        (Kind.QA, {}),
        (Kind.CODE, {}),
        (Kind.DOCUMENT, {}),
        (Kind.EPISODE, {}),
    ],
)
def test_missing_details_get_defaults(kind, defaults):
    assert check_details(kind, {}, "details") == defaults


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Kind.DECISION, {"reason": "it is faster", "alternatives": ["Redis", "Kafka"]}),
        (Kind.LESSON, {"rule": "Run the linter", "applies_when": "pushing", "severity": "critical"}),
        (Kind.GOAL, {"status": "in_progress", "progress": 0.5, "due_at": "2026-01-02T03:04:05.000Z"}),
        (Kind.ACTIVITY, {"tool": "pytest", "succeeded": False}),
        (Kind.MILESTONE, {"chain": "release 2"}),
        (Kind.QA, {"question": "Which port?", "answer": "8123"}),
        (Kind.CODE, {"language": "python", "symbol": "Pool.take"}),
        (Kind.DOCUMENT, {"title": "Runbook", "uri": "https://wiki.example/runbook"}),
        (Kind.EPISODE, {"started_at": "2026-01-02T03:04:05.000Z", "ended_at": "2026-01-02T04:00:00.000Z"}),
        (Kind.KEYED_FACT, {**KEY, "value": 8123}),
    ],
)
def test_given_details_are_kept(kind, given):
    assert check_details(kind, given, "details") == given


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, ["subject", "attribute", "value"]),
        ({"subject": "cdn"}, ["attribute", "value"]),
        ({"attribute": "port"}, ["subject", "value"]),
        ({"value": 1}, ["subject", "attribute"]),
        ({"subject": "cdn", "value": "Bunny"}, ["attribute"]),
        (KEY, ["value"]),
    ],
)
def test_a_keyed_fact_with_a_missing_part_is_refused_and_the_part_is_named(given, missing):
    assert find_problems(Kind.KEYED_FACT, given) == {
        f"details.{name}": "a keyed_fact needs this field" for name in missing
    }


@pytest.mark.parametrize("kind", Kind)
def test_an_unknown_field_is_refused_by_name(kind):
    given = {"nonsense": 1} | ({**KEY, "value": 1} if kind is Kind.KEYED_FACT else {})
    assert find_problems(kind, given) == {"details.nonsense": f"a {kind} has no such field"}


@pytest.mark.parametrize(
    ("kind", "given", "loc"),
    [
        (Kind.DECISION, {"reason": ""}, "details.reason"),
        (Kind.DECISION, {"reason": " \n"}, "details.reason"),
        (Kind.DECISION, {"reason": "x" * 2001}, "details.reason"),
        (Kind.DECISION, {"alternatives": ["Redis", ""]}, "details.alternatives.1"),
        (Kind.DECISION, {"alternatives": ["x"] * 21}, "details.alternatives"),
        (Kind.LESSON, {"severity": "deadly"}, "details.severity"),
        (Kind.GOAL, {"status": "finished"}, "details.status"),
        (Kind.GOAL, {"progress": 1.01}, "details.progress"),
        (Kind.GOAL, {"progress": -0.01}, "details.progress"),
        (Kind.GOAL, {"progress": 50}, "details.progress"),
        (Kind.GOAL, {"progress": float("nan")}, "details.progress"),
        (Kind.GOAL, {"progress": "0.5"}, "details.progress"),
        (Kind.GOAL, {"due_at": "tomorrow"}, "details.due_at"),
        (Kind.GOAL, {"due_at": "2026-01-01T00:00:00"}, "details.due_at"),
        (Kind.GOAL, {"due_at": 1_700_000_000}, "details.due_at"),
        (Kind.GOAL, {"due_at": "0001-01-01T00:00:00+14:00"}, "details.due_at"),
        (Kind.ACTIVITY, {"succeeded": "yes"}, "details.succeeded"),
        (Kind.MILESTONE, {"chain": "x" * 501}, "details.chain"),
        (Kind.QA, {"question": 1}, "details.question"),
        (Kind.EPISODE, {"started_at": "2026-01-02T00:00:00Z", "ended_at": "2026-01-01T00:00:00Z"}, "details.ended_at"),
        (Kind.KEYED_FACT, {"subject": "staging", "value": 1}, "details.attribute"),
        (Kind.KEYED_FACT, {**KEY, "value": [1]}, "details.value"),
        (Kind.KEYED_FACT, {**KEY, "value": float("inf")}, "details.value"),
        (Kind.KEYED_FACT, {**KEY, "value": ""}, "details.value"),
    ],
)
def test_invalid_details_are_rejected_by_name(kind, given, loc):
    assert list(find_problems(kind, given)) == [loc]


@pytest.mark.parametrize("value", [0, 1, 1.0, True, False, "1", "true", 10**20, -0.5])
def test_fact_value_keeps_its_type(value):
    kept = check_details(Kind.KEYED_FACT, {**KEY, "value": value}, "details")["value"]
    assert (type(kept), kept) == (type(value), value)


def test_secrets_are_cut_out_of_every_field():
    kept = check_details(
        Kind.DECISION, {"reason": f"it logs in with {TOKEN}", "alternatives": [f"use {TOKEN} instead"]}, "details"
    )
    assert TOKEN not in str(kept)
    assert "[REDACTED:" in kept["reason"]
    assert "[REDACTED:" in kept["alternatives"][0]


def test_texts_are_normalized():
    kept = check_details(Kind.LESSON, {"rule": " Cafe\u0301 \u202efirst\x00 "}, "details")
    assert kept["rule"] == "Café first"


def test_due_time_is_stored_in_utc():
    kept = check_details(Kind.GOAL, {"due_at": "2026-01-01T01:30:00+02:00"}, "details")
    assert kept["due_at"] == "2025-12-31T23:30:00.000Z"
