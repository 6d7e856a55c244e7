"""The one decision about what a request may change, store and show, in every combination of caller and settings."""

from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import pytest

from config.settings import Settings
from pipeline.kernel.errors import ReadOnly
from pipeline.kernel.records.access import Access, decide_access
from pipeline.kernel.records.people import HOME_OWNER, Caller, Person, Role, caller_of

ADA = Person("ada", "Ada")
CALLERS = {
    "home": HOME_OWNER,
    "admin": Caller(replace(ADA, is_admin=True), "t", "admin"),
    **{role.value: Caller(ADA, "t", "person", {"team": role}) for role in Role},
    "none": Caller(ADA, "t", "person", {"elsewhere": Role.OWNER}),
}
WRITERS = frozenset({"home", "admin", "writer", "owner"})
# Each value of a switch that gives less than the other.
SETTINGS = {
    "enabled": False,
    "hook_recall": False,
    "journal": False,
    "write_tools": False,
    "read_only": True,
    "incognito": True,
    "capture": "off",
}
REQUEST = {"is_agent": True, "is_incognito": True, "is_read_only": True}
STRICTEST = SETTINGS | REQUEST
BANS = frozenset({"is_reader", "is_incognito", "is_read_only", "is_silent", "refusal"})
CASES = [
    (who, {**dict(zip(STRICTEST, values, strict=True)), "capture": capture})
    for who, capture in product(CALLERS, ("off", "suggest", "on"))
    for values in product((False, True), repeat=len(STRICTEST))
    if values[list(STRICTEST).index("capture")]
]


def decide(who, on):
    settings = Settings(home=Path("/nowhere"), **{name: on[name] for name in SETTINGS})
    return decide_access("team", settings, replace(CALLERS[who], **{name: on[name] for name in REQUEST}))


def list_grants(access):
    return {field.name for field in fields(access) if bool(getattr(access, field.name)) is (field.name not in BANS)}


def test_access_follows_its_rules_in_every_combination():
    for who, on in CASES:
        access, is_reader = decide(who, on), who not in WRITERS
        is_kept_out, is_incognito = on["read_only"] or on["is_read_only"], on["incognito"] or on["is_incognito"]
        is_read_only, is_off = is_kept_out or is_reader, not (on["enabled"] and on["write_tools"])
        assert access == Access(
            is_enabled=on["enabled"],
            # Recall works for every role, in an incognito and in a read-only workspace.
            recalls=on["enabled"] and on["hook_recall"],
            is_reader=is_reader,
            is_incognito=is_incognito,
            is_read_only=is_read_only,
            is_silent=is_incognito or is_read_only,
            captures=on["capture"] != "off" and not (is_incognito or is_read_only),
            keeps_journal=on["enabled"] and on["journal"] and not is_read_only,
            # The sessions of a reader are their own.
            notes_sessions=not is_kept_out,
            refusal=access.refusal,
        )
        assert (access.refusal is not None) is (is_read_only or (on["is_agent"] and is_off))


def test_no_restriction_gives_a_right():
    for who, on in CASES:
        grants = list_grants(decide(who, on))
        for name, strictest in STRICTEST.items():
            assert list_grants(decide(who, on | {name: strictest})) <= grants, (who, on, name)
        assert list_grants(decide("none", on)) <= grants


@pytest.mark.parametrize(
    ("workspace", "caller", "is_reader"),
    [
        ("me", HOME_OWNER, False),
        ("me.ada", caller_of("ada"), False),
        ("me.ada", CALLERS["reader"], False),
        ("me.bob", caller_of("ada"), True),
        ("me.bob", CALLERS["admin"], True),
        ("me", CALLERS["admin"], True),
        ("team", caller_of("ada"), True),
    ],
)
def test_personal_store_is_changed_by_its_person_alone(workspace, caller, is_reader):
    assert decide_access(workspace, Settings(home=Path("/nowhere")), caller).is_reader is is_reader


def test_role_is_decided_for_each_workspace_that_a_request_enters(container):
    team = container.workspace("team").of(CALLERS["writer"])
    assert [other.access.is_reader for other in (team, team.sibling("other"), team.person)] == [False, True, False]
    with pytest.raises(ReadOnly, match="Workspace other is read-only"):
        team.sibling("other").write_policy()
