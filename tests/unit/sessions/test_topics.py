import pytest

from pipeline.sessions.orders.commands import CommandType, read_commands, read_line


@pytest.mark.parametrize(
    ("said", "topic"),
    [
        ("forget what I said about yarn", "yarn"),
        ("forget what I told you about the staging database.", "the staging database"),
        ("Please forget everything about yarn", "yarn"),
        ("forget everything I said about yarn, please", "yarn"),
        ("Vergiss, was ich über yarn gesagt habe.", "yarn"),
        ("vergiss alles über yarn", "yarn"),
        ("olvida lo que te dije sobre yarn", "yarn"),
        ("olvida lo de yarn", "yarn"),
        ("oublie ce que j'ai dit sur yarn", "yarn"),
        ("oublie tout sur yarn", "yarn"),
    ],
)
def test_a_command_to_forget_a_topic_means_all_statements(said, topic):
    (command,) = read_commands(said)
    assert (command.type, command.text, command.is_about_topic) == (CommandType.FORGET, topic, True)


@pytest.mark.parametrize("said", ["forget that we use pnpm", "forget: the pnpm rule", "vergiss, dass wir yarn nutzen"])
def test_a_command_to_forget_one_statement_has_no_topic(said):
    assert not any(command.is_about_topic for command in read_commands(said))


@pytest.mark.parametrize("said", ["forget that I said that", "oublie que j'ai dit ça", "olvida que dije eso"])
def test_forget_that_i_said_that_names_no_topic(said):
    assert read_commands(said) == []


@pytest.mark.parametrize(
    ("said", "topic", "rest"),
    [
        ("forget the retention thing from this morning, ops does that now", "retention", "ops does that now"),
        ("forget the thing with the classes. they're ok after all", "the classes", "they're ok after all"),
        ("pls forget the metabase thing", "metabase", ""),
        ("forget about the naming idea, too much work", "naming", "too much work"),
        ("forget that I said I'm bad at css, embarrassing", "I'm bad at css", "embarrassing"),
        ("vergiss das mit den Klassen, geht jetzt doch", "den Klassen", "geht jetzt doch"),
        ("vergiss die yarn-Regel bitte", "yarn", ""),
        ("oublie l'histoire avec yarn", "yarn", ""),
        ("olvida la regla de yarn, ya no", "yarn", "ya no"),
    ],
)
def test_a_loose_order_names_its_topic_and_leaves_the_rest_to_be_read(said, topic, rest):
    (command,), left = read_line(said)
    assert (command.text, command.is_loose, left) == (topic, True, rest)


@pytest.mark.parametrize(
    "said",
    [
        "forget the tests for now, just make it compile",
        "forget the rule about tests for now",
        "forget the migration, do the route first",
        "forget the last part",
        "forget the yarn thing?",
        "forget it",
        "vergiss die Regel erstmal",
    ],
)
def test_postponed_work_is_no_forget_command(said):
    assert read_commands(said) == []


def test_the_reason_is_no_part_of_the_topic():
    (command,), rest = read_line("forget what I said about the train, they changed the timetable and I drive now")
    assert (command.text, rest) == ("the train", "they changed the timetable and I drive now")
