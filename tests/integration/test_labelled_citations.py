"""The check agrees with labels about this repository's own history; `make bench-citations` judges other histories."""

import pytest

from tests.support.labelled_citations import (
    FOLDER,
    clone_labelled_commit,
    find_missing_history,
    judge_labels,
    read_labels,
)

LEAST_PRECISION, LEAST_RECALL = 0.95, 0.80


def test_reports_about_this_repository_agree_with_their_labels(tmp_path):
    if (reason := find_missing_history()) is not None:
        pytest.skip(reason)
    labels = [label for label in read_labels(FOLDER / "citations.jsonl") if label.repository == "reverie"]
    assert len(labels) >= 150
    agreement = judge_labels(clone_labelled_commit(tmp_path / "clone"), labels)
    assert agreement.precision >= LEAST_PRECISION, agreement.false
    assert agreement.recall >= LEAST_RECALL, agreement.missed
