"""Measure the judge of acts against labels of another hand."""

import json
from pathlib import Path

import pytest

from pipeline.features.obedience.acts import Act
from pipeline.features.obedience.judge import judge_act
from pipeline.features.obedience.rules import is_decidable

ACTS = Path(__file__).parents[3] / "data" / "acts"
# A little below what was measured. The forms of rules were chosen on all parts except the last.
FLOORS = {
    ("obedience_dev", None): (0.97, 0.7),
    ("obedience_test", None): (0.9, 0.53),
    ("fresh_obedience", "dev"): (0.82, 0.48),
    ("fresh_obedience", "test"): (0.87, 0.36),
}


def find_root(calls):
    """Return the folder of the project, which hooks send as `cwd`."""
    path = next((path for call in calls if (path := call["input"].get("file_path"))), "")
    return "/".join(path.split("/")[:4])


def decide(rule, calls):
    """Return the verdict of the report and the number of the call that decides it."""
    root = find_root(calls)
    acts = [Act.of_call(call["tool"], call["input"], root) for call in calls]
    verdicts = [judge_act(rule, act, acts[:number]) for number, act in enumerate(acts)]
    for name, is_kept in (("broken", False), ("kept", True)):
        if is_kept in verdicts:
            return name, verdicts.index(is_kept)
    return None, None


@pytest.mark.parametrize(("name", "part"), FLOORS)
def test_verdicts_about_labelled_acts_are_mostly_right(name, part):
    lines = (ACTS / f"{name}.jsonl").read_text("utf-8").splitlines()
    labelled = [label for label in map(json.loads, lines) if label.get("part") == part]
    decided = [(decide(label["rule"], label["calls"]), (label["verdict"], label["at"])) for label in labelled]
    right = sum(verdict == label for verdict, label in decided)
    claimed = sum(verdict is not None for (verdict, _), _ in decided)
    wanted = sum(verdict in ("kept", "broken") for _, (verdict, _) in decided)
    precision, recall = FLOORS[name, part]
    assert right / claimed >= precision, (right, claimed)
    assert right / wanted >= recall, (right, wanted)


@pytest.mark.parametrize("rule", ["keep it simple", "antworte kurz", "think before you act", "sei vorsichtig"])
def test_a_vague_rule_is_not_decidable(rule):
    assert not is_decidable(rule)
