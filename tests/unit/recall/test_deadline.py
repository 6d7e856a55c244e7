from pipeline.kernel.records.recall import ChannelReport, ChannelState, Step
from pipeline.recall.deadline import Deadline


def test_steps_are_skipped_only_after_the_deadline_and_reported_late():
    now = [5.0]
    deadline = Deadline(250, clock=lambda: now[0])
    assert not deadline.must_skip(Step.CURRENCY)
    assert (deadline.remaining_s, deadline.late) == (0.25, {})
    now[0] = 5.3
    assert deadline.must_skip(Step.CURRENCY)
    assert deadline.must_skip(Step.CURRENCY)
    assert (deadline.remaining_s, deadline.late) == (0.0, {"currency": ChannelReport(ChannelState.LATE, 300.0)})
