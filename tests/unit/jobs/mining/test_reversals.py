import pytest

from pipeline.jobs.mining.reversals import find_returned, reverses


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("We're back to yarn after all.", "We moved from yarn to pnpm because of the disk space."),
        ("we use Jenkins again, the new runners were too slow", "CI: we switched from Jenkins to GitHub Actions."),
        ("We reverted to Redis.", "We replaced Redis with Valkey."),
        ("Wir sind zurück bei Jenkins.", "Wir haben Jenkins durch GitLab ersetzt."),
        ("Wir nehmen doch wieder MySQL.", "Wir nutzen Postgres statt MySQL."),
        ("Volvemos a yarn.", "Pasamos de yarn a pnpm."),
        ("Finalement on garde MySQL.", "On utilise Postgres au lieu de MySQL."),
        ("On revient à yarn.", "On a remplacé yarn par pnpm."),
    ],
)
def test_a_return_reverses_the_decision_that_left(newer, older):
    assert reverses(newer, older)
    assert not reverses(older, newer)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("We're back to yarn after all.", "We moved from npm to pnpm."),
        ("Should we go back to yarn?", "We moved from yarn to pnpm."),
        ("The user goes back to the cart.", "We replaced the basket with a cart."),
        ("We use pnpm.", "We moved from yarn to pnpm."),
        ("We're back to pnpm.", "We moved from yarn to pnpm."),
    ],
)
def test_other_statements_reverse_nothing(newer, older):
    assert not reverses(newer, older)


def test_a_text_without_a_return_names_nothing():
    assert find_returned("We moved from yarn to pnpm.") == ()
