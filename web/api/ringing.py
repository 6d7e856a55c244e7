"""Ring for the work that a request left behind."""

from collections.abc import Sequence

from pipeline.records import Outcome, Receipt, Stage
from pipeline.write.accept import DIGESTION
from web.endpoint import Call


def ring_for_receipts(call: Call, receipts: Sequence[Receipt]) -> None:
    """Ring for what was written, if anything was."""
    if any(receipt.outcome in (Outcome.CREATED, Outcome.CANDIDATE) for receipt in receipts):
        ring_for(call, DIGESTION)


def ring_for(call: Call, stages: Sequence[Stage]) -> None:
    """Ring for stages."""
    for stage in stages:
        call.front.ring(call.workspace, stage)
