"""The jobs of the night over one workspace, each with what it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from config.paths import WorkspacePaths
from config.settings import Settings
from pipeline.errors import IndexUnavailable
from pipeline.index.vectors import VectorRows, VectorTable
from pipeline.jobs.archive import archive
from pipeline.jobs.arcs import arcs
from pipeline.jobs.consolidate import consolidate
from pipeline.jobs.decay import decay
from pipeline.jobs.dedup import dedup
from pipeline.jobs.edges import edges
from pipeline.jobs.health import health
from pipeline.jobs.layout import layout
from pipeline.jobs.lessons import lessons
from pipeline.jobs.model import NightModel
from pipeline.jobs.model_call import Endpoint
from pipeline.jobs.night import Job, Report
from pipeline.jobs.predict import predict
from pipeline.jobs.snapshot import snapshot
from pipeline.jobs.vectors import compact_vectors, needs_compaction
from pipeline.store.database import Database

# LanceDB reads every fragment of a table: appends that left a few are merged on the clock.
FEW_FRAGMENTS = 8


@dataclass(frozen=True, slots=True)
class Workshop:
    """One workspace, as the jobs reach it."""

    settings: Settings
    paths: WorkspacePaths
    database: Database
    table: Callable[[], VectorTable]
    ring_due: Callable[[], int]
    rebuild_segment: Callable[[], int]
    heal: Callable[[], int]
    on_problem: Callable[[str], None]

    def model(self) -> NightModel | None:
        """Return the optional model, None where no endpoint is configured or the workspace is off the record."""
        settings = self.settings
        if settings.incognito or not settings.llm_url:
            return None
        return NightModel(
            self.database,
            Endpoint(
                settings.llm_url,
                settings.llm_model,
                settings.llm_api_key.get_secret_value(),
                settings.llm_timeout_s,
                settings.llm_daily_tokens,
            ),
        )

    def vectors(self, seqs: Sequence[int]) -> VectorRows:
        """Return the passages of memories, none where the index is not there."""
        try:
            return self.table().vectors(seqs)
        except IndexUnavailable as error:
            self.on_problem(str(error))
            return VectorRows.empty(self.table().dimension)


def jobs_of(shop: Workshop) -> Mapping[str, Job]:
    """Return the jobs of a workspace by name."""
    model = shop.model()
    return {
        "snapshot": partial(snapshot, folder=shop.paths.snapshots),
        "sweep": lambda _night: Report({"rung": shop.ring_due()}),
        "segment": lambda _night: Report({"memories": shop.rebuild_segment()}),
        "vectors": lambda _night: _tend_vectors(shop),
        "dedup": partial(dedup, ask=None if model is None else partial(model.complete, "dedup")),
        "edges": partial(edges, vectors=shop.vectors),
        "arcs": partial(arcs, vectors=shop.vectors),
        "predict": predict,
        "decay": decay,
        "archive": archive,
        "consolidate": _unless_silent(shop, partial(consolidate, tables=shop.table, model=model)),
        "lessons": _unless_silent(shop, partial(lessons, model=model)),
        "layout": layout,
        "health": partial(health, paths=shop.paths, heal_vectors=shop.heal, on_problem=shop.on_problem),
    }


def _unless_silent(shop: Workshop, job: Job) -> Job:
    # Off the record nothing new is written, by nobody.
    return (lambda _night: Report()) if shop.settings.incognito else job


def _tend_vectors(shop: Workshop) -> Report:
    # A table that cannot be read is deleted by the healing, and there is nothing to compact then.
    queued = shop.heal()
    table = shop.table()
    compacted = needs_compaction(table, FEW_FRAGMENTS)
    if compacted:
        compact_vectors(table)
    return Report({"compacted": int(compacted), "queued": queued})
