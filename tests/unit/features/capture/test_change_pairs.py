import pytest

from pipeline.features.capture.change_pairs import (
    LEAST,
    SaidChange,
    may_change,
    needs_context,
    read_untouched,
    split_clauses,
)


@pytest.mark.parametrize(
    "text",
    [
        "the gate moved to 5th street",
        "4 → 7",
        "the rule about hotfixes is gone",
        "scrap the thursday sync",
        "make it 12",
        "die Grenze gilt nicht mehr",
        "ab heute macht das Imke",
        "désormais on utilise Bun",
        "ya no usamos Bower",
        "Imke handed the newsletters to Ole",
        "we got rid of the thursday sync",
        "you may edit the fixtures again",
        "die Preise darf jetzt jeder ändern",
        "Imke ist in Rente",
    ],
)
def test_announcements_of_a_change_may_change_something(text):
    assert may_change(text)


@pytest.mark.parametrize(
    "text",
    [
        "is the limit 20 now?",
        "maybe we move to Bun",
        "what if we dropped the cache instead",
        "Imke wants to raise the limit to 20",
        "we switch to Bun next month",
        "ab 1. März gilt Bun statt npm",
        "vielleicht statt Bun doch npm",
        "add a button below the form",
        "on verra si on passe à Bun",
        "Bun comes with the next image",
        "I'm tempted to throw the cache out",
        "sobald der Vertrag da ist, nehmen wir Bun",
        "Imke findet Bun besser",
        "the port has moved to 81. " * 30,
    ],
)
def test_questions_proposals_plans_and_tasks_change_nothing(text):
    assert not may_change(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("make that 12", True), ("too long, 20", True), ("raise the batch size of the mailer to 12", False)],
)
def test_a_value_without_a_subject_needs_the_words_before_it(text, expected):
    assert needs_context(text) is expected


def test_the_words_before_a_message_give_it_a_subject():
    old = "the mailer sends batches of 8"
    alone, in_context = SaidChange("make it 12"), SaidChange("make it 12", "how big are batches of the mailer?")
    assert not alone.shares_subject(old)
    assert in_context.shares_subject(old)
    assert not in_context.names_subject(old)
    assert in_context.weigh(old, 0.6) > LEAST


def test_another_unit_is_another_value():
    old = "the mailer pauses 10 seconds"
    change = "the mailer pauses {} now"
    assert SaidChange(change.format("20 s")).weigh(old, 0.5) > SaidChange(change.format("20 MB")).weigh(old, 0.5)


def test_a_lasting_statement_needs_no_announcement():
    text = "the mailer sends batches of 12"
    assert may_change(text, lasts=0.9)
    assert not may_change(text, lasts=0.1)


def test_the_state_of_a_thing_is_no_new_value():
    old = "the mailer sends with postmark"
    assert (
        SaidChange("the mailer is slow now").weigh(old, 0.5)
        < LEAST
        < SaidChange("the mailer sends with ses now").weigh(old, 0.5)
    )


def test_a_permission_ends_a_prohibition():
    change = SaidChange("fixtures can be edited by hand")
    assert change.weigh("never edit the fixtures by hand", 0.6) > LEAST > change.weigh("fixtures are in yaml", 0.4)


def test_an_addition_leaves_the_earlier_statement():
    old = "the mailer logs to loki"
    assert SaidChange("the mailer also logs to stdout now").weigh(old, 0.6) < SaidChange(
        "the mailer logs to stdout now"
    ).weigh(old, 0.6)


@pytest.mark.parametrize(
    ("text", "older", "expected"),
    [
        ("make it 12", "the mailer sends batches of 8", "the mailer sends batches of 12 (“make it 12”)"),
        ("zu wenig, nimm 20", "anhänge bis 8 MB", "anhänge bis 20 MB (“zu wenig, nimm 20”)"),
        ("batches of 12 now", "the mailer sends batches of 8", "batches of 12 now"),
        ("make it 12", "8 workers, 2 boxes", "8 workers, 2 boxes → make it 12"),
    ],
)
def test_a_bare_value_is_stated_with_its_subject(text, older, expected):
    assert SaidChange(text).restate(older) == expected


@pytest.mark.parametrize(
    ("said", "older", "restated"),
    [
        ("make it 8", "null threshold for alerts 5%", "null threshold for alerts 8% (“make it 8”)"),
        ("ok make that two", "train window: 3 years", "train window: 2 years (“ok make that two”)"),
        ("make that 18 months", "train window: 2 years", "train window: 18 months (“make that 18 months”)"),
        ("make it 9", "the cap is 8 MB (“bump that to 8 then”)", "the cap is 9 MB (“make it 9”)"),
        ("make it 9", "ports 80 and 443", "ports 80 and 443 → make it 9"),
    ],
)
def test_a_bare_value_is_restated_with_its_subject(said, older, restated):
    assert SaidChange(said).restate(older) == restated


def test_message_without_a_value_is_restated_with_the_answers_value():
    change = SaidChange.read("the tracking port is switched now", 0.5, answer="Updated the URI to port 5600.")
    stated = "the tracking port is switched now (Updated the URI to port 5600.)"
    assert change.restate("the tracking server is on port 5500") == stated
    assert change.restate("the tracking port is closed to guests") == "the tracking port is switched now"


@pytest.mark.parametrize("text", ["hm was heißt GPX überhaupt", "what is the limit now", "ok so how far back do we go"])
def test_a_question_without_its_mark_changes_nothing(text):
    assert not may_change(text, 0.9)


def test_a_condition_announces_nothing_and_a_new_goal_reaches_no_other():
    refreshed = SaidChange("staging is refreshed on mondays, so don't wonder when test data is gone", lasts=0.9)
    assert refreshed.measure("test data lives in the staging folder", 0.3)["ended"] == 0
    goal = SaidChange("second thing I want: CI under 8 minutes, it's at 14 now", lasts=0.9)
    assert goal.measure("goal for this week: the waitlist is done in minutes", 0.3)["ended"] == 0


def test_the_value_of_another_thing_is_no_other_value():
    limit = SaidChange("photo limit back to 8, the server is full", lasts=0.7)
    assert not limit.measure("the server runs on port 8443", 0.3)["another number"]
    assert limit.measure("photo limit is 12", 0.3)["another number"]


def test_clauses_are_read_with_their_short_neighbours():
    assert split_clauses("pnpm here, always (9 at the moment)") == ["pnpm here, always (9 at the moment"]
    text = "the nightly job runs at 03:00 utc, owner is Sanna from platform"
    assert split_clauses(text) == ["the nightly job runs at 03:00 utc", "owner is Sanna from platform"]
    assert read_untouched(text, "owner is Sanna from platform") == "the nightly job runs at 03:00 utc"
