"""What a person typed is told from the template of a command, however a host fills it."""

import pytest

from pipeline.sessions.command_files import find_arguments

BODY = "Check the changes of the ticket.\n\n- We always deploy with ops/fast.sh.\n- Nobody runs the linter.\n\n"


@pytest.mark.parametrize(
    ("message", "template", "arguments"),
    [
        (BODY, BODY, ""),
        (BODY + "Ticket: APP-7", BODY + "Ticket: $ARGUMENTS", "APP-7"),
        (BODY + "Ticket: APP-7 and APP-8", BODY + "Ticket: $1", "APP-7 and APP-8"),
        (BODY + "From main to next.", BODY + "From {{base}} to {{head}}.", "main\nnext"),
        (BODY + "Be quick, we use pnpm", BODY, "Be quick, we use pnpm"),
        ("Ticket: one\nmore of it\n" + BODY, "Ticket: {{args}}\n" + BODY, "one\nmore of it"),
        ("Diff:\n+ we never test\n- a\nGo on with APP-7", "Diff:\n!`git diff`\nGo on with $ARGUMENTS", "APP-7"),
        (BODY.replace("\n", "\r\n"), BODY, ""),
        ("# review\n\n" + BODY, BODY, ""),
        ("We use pnpm here", BODY, None),
        ("Check the changes of the ticket.", BODY, None),
        ("Nobody runs the linter.", BODY, None),
        ("We use pnpm here", "$ARGUMENTS", None),
        ("go", "go", None),
        ("", BODY, None),
    ],
)
def test_only_the_arguments_are_the_persons(message, template, arguments):
    assert find_arguments(message, template) == arguments
