import pytest

from pipeline.features.capture.exchanges import Exchange, drop_settled, find_settled, settle_values
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.statements import AGENT_MARK, Label, Statement


def weigh(*lasting):
    """Return a classifier that takes these sentences of the agent for lasting."""
    return lambda sentences: [
        Statement(sentence, 0.9 if sentence.removeprefix(AGENT_MARK) in lasting else 0.1, Label.FACT, 0.9)
        for sentence in sentences
    ]


def settle(said, after, before="", *, lasts=0.1, kept=()):
    statements = [Statement(said, lasts, Label.FACT, 0.9)]
    exchange = Exchange(before, Turn("s", Role.USER, said, "", 1), after)
    return [one.sentence for one in find_settled(exchange, statements, kept, weigh(after))]


@pytest.mark.parametrize(
    ("said", "before", "after"),
    [
        ("make it 8", "It's 5 s.", "Set the lock timeout to 8 seconds."),
        ("30", "How long are links valid?", "Links are valid for 30 minutes."),
        ("hm zu wenig. mach 25 draus", "Es sind 10.", "Das Limit für Anhänge liegt jetzt bei 25 MB."),
        ("yes, do that", "Thumbnails could be resized to 320 px.", "Thumbnails are resized to 320 px."),
        ("ja genau", "Ich würde Berichte nachts erzeugen.", "Berichte werden künftig nachts erzeugt."),
        ("it's 90 s, right?", "", "Yes, the lease takes 90 s."),
    ],
)
def test_statement_referenced_by_a_short_message_is_taken_from_the_answer(said, before, after):
    assert settle(said, after, before) == [after]


@pytest.mark.parametrize(
    ("said", "before", "after"),
    [
        ("thanks", "The lease takes 90 s.", "You're welcome, enjoy the evening."),
        ("run it", "I can measure both.", "The first one takes 610 ms."),
        ("what is a lease?", "", "A lease is a lock with an end."),
        ("make it 8", "It's 5 s.", "Sorry, which one do you mean?"),
        ("evaluate the weekly thing", "The weekly thing is built.", "The weekly thing has an error of 0.121."),
        ("", "", "Set the lock timeout to 8 seconds."),
        ("a " * 20 + "8", "", "Set the lock timeout to 8 seconds."),
    ],
)
def test_an_answer_to_something_else_settles_nothing(said, before, after):
    assert settle(said, after, before) == []


def test_a_word_is_taken_up_only_from_a_message_that_may_state_something():
    assert settle("lets use valibot", "Forms are checked with valibot now.", lasts=0.5) != []
    assert settle("explain valibot", "Forms are checked with valibot now.", lasts=0.1) == []


def test_complete_statement_is_not_repeated_in_the_agents_words():
    said = Statement("the lock timeout is 8 seconds now", 0.9, Label.FACT, 0.9)
    assert settle(said.sentence, "The lock timeout is 8 seconds now.", kept=[said]) == []


def test_settled_statement_replaces_the_short_sentence_it_contains():
    short, other = Statement("make it 8", 0.7, Label.FACT, 0.9), Statement("we use tabs", 0.9, Label.RULE, 0.9)
    settled = [Statement("The lock timeout is 8 seconds now.", 0.9, Label.FACT, 0.9, agreed=True)]
    assert drop_settled([short, other], settled) == [other]
    assert drop_settled([short, other], []) == [short, other]


@pytest.mark.parametrize(
    ("said", "settled"),
    [
        (
            ["train window: 3 years", "hm wait covid", "make it 2"],
            ["train window: 2 years (“make it 2”)", "hm wait covid"],
        ),
        (
            ["links are valid for 30 minutes", "too long, make it 10"],
            ["links are valid for 10 minutes (“too long, make it 10”)"],
        ),
        (["ports are 80 and 443", "make it 2"], ["ports are 80 and 443", "make it 2"]),
        (["make it 2"], ["make it 2"]),
        (["the window is 3 years", "the cache is 5 minutes"], ["the window is 3 years", "the cache is 5 minutes"]),
    ],
)
def test_a_value_belongs_to_the_sentence_before_it(said, settled):
    assert settle_values(said) == settled
