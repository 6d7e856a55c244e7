"""The view of one workspace that its jobs use."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from config.paths import WorkspacePaths
from config.process import is_alive
from config.settings import Settings
from pipeline.features.indexing import job as indexes
from pipeline.features.model.extractor import JobModel, open_model
from pipeline.features.snapshots.job import scrub_snapshots
from pipeline.features.snapshots.shared import SharedSnapshots
from pipeline.index.documents import TURNS
from pipeline.index.encoder import Encoder
from pipeline.index.storage import SharedSegments
from pipeline.index.vectors import VectorRows, VectorTable
from pipeline.kernel.errors import EncoderPending, IndexUnavailable
from pipeline.kernel.job_runs import reap
from pipeline.kernel.records import Stage
from pipeline.kernel.records.recall import Answer, Query
from pipeline.kernel.store.database import Database

# LanceDB reads every fragment of a table. The schedule merges a few fragments; many fragments are merged at once.
FEW_FRAGMENTS = 8
MANY_FRAGMENTS = 64


@dataclass(frozen=True, slots=True)
class JobContext:
    """A workspace's settings, files and database; its vector tables and `encoder` load the encoder."""

    settings: Settings
    paths: WorkspacePaths
    database: Database
    table: Callable[[], VectorTable]
    turn_table: Callable[[], VectorTable]
    encoder: Callable[[], Encoder]
    # Takes the name of a component and a description of the problem.
    log_problem: Callable[[str, str], None]
    # Locations of the lexical segments that other machines also read.
    segments: SharedSegments | None = None
    turn_segments: SharedSegments | None = None
    # Snapshots of a store that is on a server.
    snapshots: SharedSnapshots | None = None
    # Opens a function that searches with indexes that it reads anew.
    open_search: Callable[[], AbstractContextManager[Callable[[Query], Answer]]] | None = None

    def model(self) -> JobModel | None:
        """Return the optional model; None if no endpoint is configured or the workspace is incognito."""
        return open_model(self.database, self.settings)

    def ask_model(self, job: str) -> Callable[[str, str], str | None] | None:
        """Return a function that sends a job's (system, text) to the model; None without a model."""
        model = self.model()
        return None if model is None else partial(model.complete, job)

    def vectors(self, seqs: Sequence[int]) -> VectorRows:
        """Return the passages of memories; none if there is no index."""
        try:
            return self.table().vectors(seqs)
        except IndexUnavailable as error:
            self.on_problem(str(error))
            return VectorRows.empty(self.table().dimension)

    def on_problem(self, problem: str) -> None:
        """Log a problem of the workspace."""
        self.log_problem("maintenance", problem)

    def reap(self) -> list[Stage]:
        """Release leases and locks of dead processes, and wake the workers; return the stages that can be claimed."""
        return reap(self.database, is_alive)

    def list_needed_jobs(self, *, tidy: bool = False) -> list[str]:
        """Return the jobs that the indexes need; with `tidy`, a single new row is enough."""
        return [name for name in ("segment", "vectors") if self.is_needed(name, tidy=tidy)]

    def is_needed(self, name: str, *, tidy: bool = False) -> bool:
        """Tell whether the indexes need a job."""
        match name:
            case "segment":
                rows = self.settings.segment_tail_rows
                return indexes.needs_segment(self.database, 1 if tidy else rows) or self._needs_turn_segment()
            case "vectors":
                return self._needs_compaction(FEW_FRAGMENTS if tidy else MANY_FRAGMENTS)
            case "predict":
                from pipeline.features.predictions.job import list_unanswered

                return self.open_search is not None and bool(list_unanswered(self.database))
            case _:
                return False

    def _needs_compaction(self, fragments: int) -> bool:
        try:
            return indexes.needs_compaction(self.table(), fragments)
        except EncoderPending:
            # Nothing is added to the index before the encoder is made.
            return False

    def rebuild_segment(self) -> int:
        """Rebuild the lexical segment; return its number of memories, 0 if no rebuild was needed."""
        return indexes.rebuild_segment(self.database, self.paths.lexical, self.segments)

    def rebuild_turn_segment(self) -> int:
        """Rebuild the lexical segment of turns; return its number of turns, 0 if too few turns are outside of it."""
        if not self._needs_turn_segment():
            return 0
        count = indexes.rebuild_segment(self.database, self.paths.turn_segments, self.turn_segments, TURNS)
        # Many turns are new: their vectors need not wait for the next night.
        indexes.request_vectors(self.database)
        return count

    def rebuild_segments(self) -> None:
        """Rebuild the segments of memories and turns where necessary."""
        self.rebuild_segment()
        self.rebuild_turn_segment()

    def _needs_turn_segment(self) -> bool:
        return indexes.needs_segment(self.database, self.settings.segment_tail_rows, TURNS)

    def repair_vectors(self) -> int:
        """Queue memories that are missing from the vector index; return their number."""
        log = partial(self.log_problem, "vectors")
        try:
            return indexes.repair_vectors(self.database, self.table(), log)
        except EncoderPending:
            return 0

    def repair_turn_vectors(self) -> int:
        """Queue turns that are missing from the vector index; return their number."""
        try:
            return indexes.repair_turn_vectors(self.database, self.turn_table())
        except EncoderPending:
            return 0

    def compact_vectors(self) -> bool:
        """Merge the fragments of the vector index if there are enough; return whether it merged any."""
        needed = indexes.needs_compaction(self.table(), FEW_FRAGMENTS)
        if needed:
            indexes.compact_vectors(self.table())
        return needed

    def scrub_snapshots(self) -> int:
        """Remove every purged memory from the snapshots; return the number of snapshots that contained one."""
        on_problem = partial(self.log_problem, "snapshot")
        if self.snapshots is not None:
            return self.snapshots.scrub(self.database, on_problem)
        return scrub_snapshots(self.database, self.paths.snapshots, on_problem)
