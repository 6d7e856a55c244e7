"""Texts of different tools contradict each other by a denial or by another choice of a tool."""

import pytest

from pipeline.text.similarity.choices import find_contradiction


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Always use npm in this project.", "Use pnpm for installs, never npm."),
        ("The package manager is npm.", "Install packages with `pnpm`."),
        ("We migrated from npm to pnpm.", "The project uses npm"),
        ("Prefer pnpm over npm", "Install with npm"),
        ("Indent with tabs", "Use spaces for indentation"),
        ("Run the tests with jest.\n\n**Why:** it is fast.", "- Tests are run with vitest"),
        ("The server listens on port 8080", "The server listens on port 9090"),
        ("Deploying on Fridays is allowed.", "Deploying on Fridays is not allowed."),
    ],
)
def test_they_contradict_each_other_in_both_orders(first, second):
    assert find_contradiction(first, second)
    assert find_contradiction(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Use npm", "Use npm"),
        ("Use npm or pnpm", "Use yarn"),
        ("We migrated from npm to pnpm.", "The project uses pnpm"),
        ("Use pnpm", "The npm registry is slow"),
        ("If you are in docs/, use npm", "Use pnpm"),
        ("Run the tests with pytest", "Use pnpm"),
        ("Use the vite-plugin-inspect package", "Use webpack"),
        ("", "Use pnpm"),
    ],
)
def test_others_do_not(first, second):
    assert find_contradiction(first, second) is None
    assert find_contradiction(second, first) is None
