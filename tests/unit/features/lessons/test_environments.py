import pytest

from pipeline.kernel.records import Draft, Kind
from pipeline.features.lessons.command_rules import list_environments
from pipeline.prompt.tool_calls.turn import forbids, is_about_other_environment
from pipeline.write.prepare import prepare
from pipeline.write.tool_actions import find_target_for_guard

RULE = "From now on never run manage.py migrate against prod"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("--database prod", {"production"}),
        ("DJANGO_ENV=production", {"production"}),
        ("db_prod_1", {"production"}),
        ("gegen die Produktion", {"production"}),
        ("en producción", {"production"}),
        ("pre-prod", {"staging"}),
        ("staging then prod", {"staging", "production"}),
        ("pytest tests/", {"test"}),
        ("products delivery", set()),
    ],
)
def test_environment_names_match_only_complete_words(text, named):
    assert list_environments(text) == named


def is_spared(rule, command):
    lesson = prepare(Draft(rule, Kind.LESSON)).memory
    return is_about_other_environment(lesson, find_target_for_guard("Bash", {"command": command}, is_whole=True))


@pytest.mark.parametrize(
    ("command", "spared"),
    [
        ("python manage.py migrate --database staging", True),
        ("python manage.py migrate --database prod", False),
        ("python manage.py migrate", False),
        ("python manage.py migrate --database staging && python manage.py migrate --database prod", False),
    ],
)
def test_a_rule_about_production_does_not_apply_to_other_environments(command, spared):
    assert is_spared(RULE, command) is spared


def test_a_rule_without_an_environment_applies_to_all():
    assert not is_spared("Never run manage.py migrate by hand", "python manage.py migrate --database staging")


def test_only_a_call_that_names_the_environment_is_clearly_forbidden():
    lesson = prepare(Draft(RULE, Kind.LESSON)).memory
    for command, forbidden in (("--database prod", True), ("--database staging", False), ("", False)):
        call = {"command": f"python manage.py migrate {command}"}
        assert forbids(lesson, find_target_for_guard("Bash", call, is_whole=True)) is forbidden
