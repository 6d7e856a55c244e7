"""The bar of lessons on made-up hits: which of several applies, and when none does."""

import pytest
from hypothesis import given, strategies as st

from pipeline.features.lessons.search import MOST_LESSONS, ComparedLesson, choose_lessons, may_any_apply
from pipeline.recall.relevance import calibrate
from pipeline.text.sentences import asks_information, list_activities

PUSH, MIGRATE, MAIL = "Run make check before every push", "Migrate in two releases", "Edit mails in emails/src"
NEAR, FAR = 0.2, 0.01


def hit(text, relevance):
    return ComparedLesson(1, text, None, relevance)


def choose(message, *lessons):
    return [lesson.text for lesson in choose_lessons(lessons, message)]


@pytest.mark.parametrize(
    ("message", "activity"),
    [
        ("push the branch when you are done", "push"),
        ("looks fine, get it up on origin", "push"),
        ("schieb den Branch hoch", "push"),
        ("pousse la branche quand tu as fini", "push"),
        ("sube la rama cuando termines", "push"),
        ("bring das heute noch live", "release"),
        ("kannst du das auf prod ausrollen", "release"),
        ("on peut mettre en prod ce soir ?", "release"),
        ("wipe it completely and start over", "delete"),
        ("roll the database back to 10:30", "restore"),
    ],
)
def test_an_activity_is_recognized_in_every_language(message, activity):
    assert activity in list_activities(message)


@pytest.mark.parametrize(
    "message",
    [
        "push the branch when you are done",
        "schieb den Branch hoch, ich muss los",
        "pousse la branche",
        "sube la rama cuando termines",
    ],
)
def test_lesson_about_the_activity_is_chosen_despite_low_relevance(message):
    assert choose(message, hit(PUSH, NEAR), hit(MIGRATE, FAR), hit(MAIL, FAR)) == [PUSH]


BUMP = "Before a release bump the version in pyproject.toml and in CHANGELOG.md, the pipeline reads both"
LOADDATA = "from now on never run manage.py loaddata against prod, it overwrites the berth table"
TAG = "Vor jedem Release den Tag signieren"


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("tag the release and push it when you are done", BUMP),
        ("mach bitte das Release fertig", TAG),
        ("push the branch when you are done", "Run make check before every push"),
        ("sube la rama con un push", "Antes de cada push ejecuta los tests"),
        ("fais un push de la branche", "Avant chaque push, lance les tests"),
    ],
)
def test_message_naming_the_condition_of_a_rule_selects_it(message, rule):
    others = [hit(LOADDATA, FAR), hit("Use kilograms", 0.0005), hit(MAIL, 0.0005)]
    assert choose(message, hit(rule, 0.0025), *others) == [rule]


@pytest.mark.parametrize(
    "message",
    ["how do we write the release notes?", "get the fixtures into prod", "rename the slot view"],
)
def test_message_not_naming_the_condition_of_a_rule_selects_nothing(message):
    assert choose(message, hit(BUMP, 0.0025), hit("Use kilograms", 0.0005), hit(MAIL, 0.0005)) == []


@pytest.mark.parametrize("message", ["thanks, that is all", "danke, passt", "rename tmp2 to total", "merci"])
def test_nothing_is_chosen_for_a_message_without_an_activity_of_a_lesson(message):
    assert choose(message, hit(PUSH, FAR), hit(MIGRATE, FAR), hit(MAIL, FAR)) == []


@pytest.mark.parametrize(
    "question",
    [
        "what exactly does --force-with-lease protect me from when I push",
        "wie viele Pushes gab es heute?",
        "quelle est la différence entre push et fetch ?",
        "¿qué hace git push -u?",
        "explain git push to me",
    ],
)
def test_a_question_gets_only_a_lesson_that_is_surely_relevant(question):
    assert asks_information(question)
    assert choose(question, hit(PUSH, NEAR), hit(MIGRATE, FAR)) == []
    assert choose(question, hit(PUSH, 0.95), hit(MIGRATE, FAR)) == [PUSH]


@pytest.mark.parametrize("order", ["push it", "please push the fix", "mach das Release fertig", "why not push it now?"])
def test_an_order_is_no_question(order):
    assert not asks_information(order)


def test_few_lessons_are_shown_at_once():
    many = [hit(f"Rule {number}", 0.95) for number in range(5)]
    assert len(choose("anything", *many)) == MOST_LESSONS


@given(
    st.lists(st.tuples(st.sampled_from([PUSH, MIGRATE, MAIL, BUMP, TAG]), st.floats(0, 1)), min_size=1),
    st.sampled_from(["push it", "what is a push?", "rename the slot view", "mach das Release fertig", "anything"]),
)
def test_no_lesson_is_chosen_whose_relevance_rules_out_all(lessons, message):
    lessons = [hit(text, relevance) for text, relevance in lessons]
    most = max(lesson.relevance for lesson in lessons)
    if not may_any_apply(most, message):
        # With a surely relevant lesson, the quick check passes, and the others are compared as before.
        assert choose(message, *lessons, hit("Other", 0.9)) == ["Other"]


def test_an_unlikely_lesson_is_ruled_out_without_comparing_texts():
    assert not may_any_apply(calibrate(0.3), "rename the slot view")
    assert not may_any_apply(calibrate(0.8), "what is a push?")
    assert may_any_apply(calibrate(0.001), "push it")
    assert may_any_apply(calibrate(0.9), "what is a push?")


def test_without_lessons_nothing_is_chosen():
    assert choose("push it") == []
