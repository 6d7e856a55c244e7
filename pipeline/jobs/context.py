"""One workspace, as its jobs reach it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from config.paths import WorkspacePaths
from config.process import is_alive
from config.settings import Settings
from pipeline.errors import IndexUnavailable
from pipeline.index.shared_segments import SharedSegments
from pipeline.index.vectors import VectorRows, VectorTable
from pipeline.jobs import indexes
from pipeline.jobs.model import JobModel, ModelEndpoint
from pipeline.jobs.runner import reap
from pipeline.jobs.shared_snapshots import SharedSnapshots
from pipeline.jobs.snapshot import scrub_snapshots
from pipeline.records import Stage
from pipeline.store.database import Database

# LanceDB reads every fragment of a table: appends that left a few are merged on the clock,
# and at once where they have left many.
FEW_FRAGMENTS = 8
MANY_FRAGMENTS = 64


@dataclass(frozen=True, slots=True)
class JobContext:
    """A workspace's settings, files and database; its vector table loads the encoder."""

    settings: Settings
    paths: WorkspacePaths
    database: Database
    table: Callable[[], VectorTable]
    # Takes a component's name and what is wrong.
    log_problem: Callable[[str, str], None]
    # Where lexical segments lie that other machines read too.
    segments: SharedSegments | None = None
    # Snapshots of a store that is on a server.
    snapshots: SharedSnapshots | None = None

    @property
    def is_silent(self) -> bool:
        """Tell whether nothing new is written here by anybody."""
        return self.settings.incognito or self.settings.read_only

    def model(self) -> JobModel | None:
        """Return the optional model, None where no endpoint is configured or the workspace is incognito."""
        settings = self.settings
        if settings.incognito or not settings.llm_url:
            return None
        endpoint = ModelEndpoint(
            settings.llm_url,
            settings.llm_model,
            settings.llm_api_key.reveal(),
            daily_tokens=settings.llm_daily_tokens,
        )
        return JobModel(self.database, endpoint)

    def ask_model(self, job: str) -> Callable[[str, str], str | None] | None:
        """Return what sends a job's (system, text) to the model, None where there is none."""
        model = self.model()
        return None if model is None else partial(model.complete, job)

    def vectors(self, seqs: Sequence[int]) -> VectorRows:
        """Return the passages of memories, none where the index is not there."""
        try:
            return self.table().vectors(seqs)
        except IndexUnavailable as error:
            self.on_problem(str(error))
            return VectorRows.empty(self.table().dimension)

    def on_problem(self, problem: str) -> None:
        """Log what is wrong with the workspace."""
        self.log_problem("maintenance", problem)

    def reap(self) -> list[Stage]:
        """Release what dead processes hold, and wake the workers of what can be claimed; return those stages."""
        return reap(self.database, is_alive)

    def list_needed_jobs(self, *, tidy: bool = False) -> list[str]:
        """Return the jobs that the state of the indexes asks for; to tidy, a single fresh row is enough."""
        return [name for name in ("segment", "vectors") if self.is_needed(name, tidy=tidy)]

    def is_needed(self, name: str, *, tidy: bool = False) -> bool:
        """Tell whether the state of the indexes asks for a job."""
        match name:
            case "segment":
                return indexes.needs_segment(self.database, 1 if tidy else self.settings.segment_tail_rows)
            case "vectors":
                return indexes.needs_compaction(self.table(), FEW_FRAGMENTS if tidy else MANY_FRAGMENTS)
            case _:
                return False

    def rebuild_segment(self) -> int:
        """Build the lexical segment anew; return how many memories it holds, 0 where there was no need."""
        return indexes.rebuild_segment(self.database, self.paths.lexical, self.segments)

    def repair_vectors(self) -> int:
        """Queue again what the vector index should hold and does not; return how many memories."""
        log = partial(self.log_problem, "vectors")
        return indexes.repair_vectors(self.database, self.table(), log)

    def compact_vectors(self) -> bool:
        """Merge what appends to the vector index have left behind, if that is worth it; return whether it was."""
        needed = indexes.needs_compaction(self.table(), FEW_FRAGMENTS)
        if needed:
            indexes.compact_vectors(self.table())
        return needed

    def scrub_snapshots(self) -> int:
        """Take every purged memory out of the snapshots; return how many held one."""
        on_problem = partial(self.log_problem, "snapshot")
        if self.snapshots is not None:
            return self.snapshots.scrub(self.database, on_problem)
        return scrub_snapshots(self.database, self.paths.snapshots, on_problem)
