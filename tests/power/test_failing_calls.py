"""When a call to the system fails, the operation says so, and nothing that was acknowledged is lost."""

import pytest

from tests.power.recording import fail_calls

pytestmark = pytest.mark.timeout(600)


# `make test-power` does it with every operation.
@pytest.mark.parametrize("operation", ["write", "snapshot", "restore/sync", "encryption/sync", "sync/sync"])
def test_failed_call_loses_no_acknowledged_memory(recorder, tmp_path, operation):
    *problems, summary = fail_calls(recorder, tmp_path.resolve() / "watched", operation)
    assert problems == []
    failed = int(summary.split()[1])
    assert failed > 20, summary
