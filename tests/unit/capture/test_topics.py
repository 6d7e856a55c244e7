import pytest

from pipeline.capture.commands import CommandType, read_commands


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
