"""Which arc of before a thread goes on as, so that ids stay as threads grow, merge and split."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.store.arcs import StoredArc

# So many members must have been in an arc for its id to go on; the rule looks at nothing that writing one of the new
# arcs changes for another, so that a run that was interrupted there is completed with the same ids.
LEAST_OVERLAP = 2


@dataclass(frozen=True, slots=True)
class Succession:
    """For each thread the arc that goes on in it, and for each arc, by row, the thread that takes its older members."""

    arcs: tuple[StoredArc | None, ...]
    heirs: Mapping[int, int]


def succession(threads: Sequence[Sequence[int]], stored: Sequence[StoredArc]) -> Succession:
    """Match threads (row numbers of memories) to arcs by the members that they share, the largest share first.

    So on a merge the id of the arc that brings most lives on, and on a split the part that keeps most has the id.
    """
    home = {seq: arc for arc in stored for seq in arc.arc.members}
    shares = Counter((number, home[seq].seq) for number, seqs in enumerate(threads) for seq in seqs if seq in home)
    rows = {arc.seq: arc for arc in stored}
    arcs: list[StoredArc | None] = [None] * len(threads)
    heirs: dict[int, int] = {}
    ranked = sorted(shares, key=lambda pair: (-shares[pair], pair[1], pair[0]))
    for number, arc_seq in ranked:
        if arcs[number] is None and arc_seq not in heirs and shares[number, arc_seq] >= LEAST_OVERLAP:
            arcs[number] = rows[arc_seq]
            heirs[arc_seq] = number
    # What is left of an arc whose id ended goes where most of it went.
    for number, arc_seq in ranked:
        heirs.setdefault(arc_seq, number)
    return Succession(tuple(arcs), heirs)
