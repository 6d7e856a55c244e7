"""The services of a worker: stages and jobs over every workspace."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property

from config.owner import is_alive, process_owner
from config.settings import Settings, SettingsError, environment_of, load_settings
from config.threads import limit_threads
from pipeline.bootstrap.clockwork import appointments
from pipeline.bootstrap.nightwork import FEW_FRAGMENTS, Workshop, jobs_of
from pipeline.bootstrap.parts import load_encoder, mask, off_the_record, vector_table
from pipeline.digest.dedup import DedupStage
from pipeline.digest.digest import DigestPolicy
from pipeline.digest.embed import EmbedStage
from pipeline.digest.entities import EntitiesStage, SpacyTagger, Tagger
from pipeline.digest.purge import PurgeStage
from pipeline.digest.stages import StageRegistry
from pipeline.index.dense import DenseIndex
from pipeline.index.encoder import Encoder, is_compiled
from pipeline.index.vectors import VectorTable
from pipeline.jobs.due import asked_jobs, due_jobs
from pipeline.jobs.night import Job
from pipeline.jobs.run import Outcome, Progress, run_job, silently
from pipeline.jobs.segment import needs_segment, rebuild_segment
from pipeline.jobs.snapshot import scrub_snapshots
from pipeline.jobs.sweep import free_locks, sweep
from pipeline.jobs.vectors import heal_vectors, needs_compaction
from pipeline.records import Stage
from pipeline.store import work
from pipeline.store.database import Databases, WriterProfile
from pipeline.store.operations import Operations

log = logging.getLogger(__name__)

CHECKPOINT_PAGES = 1_000
# Work items that a worker claims at once: enough for the encoder to batch, few enough for others to have their turn.
WORK_BATCH = 64
# LanceDB reads every fragment of a table: when appends have left many, they are merged at once.
MANY_FRAGMENTS = 64
# What a person or an agent waits for.
FOREGROUND = frozenset({Stage.EMBED, Stage.ENTITIES, Stage.PURGE})


def nobody_listens(_workspace_id: str, _stage: Stage) -> None:
    """Ring where there is no queue: the sweep finds the work without it."""


class Back:
    """Everything that a worker needs: stages and jobs over every workspace."""

    def __init__(self, settings: Settings, ring: Callable[[str, Stage], object] = nobody_listens) -> None:
        settings.paths.ensure()
        self.settings = settings
        self.ring = ring
        self.owner = process_owner()
        self.operations = Operations(settings.paths.operations, mask)
        self.databases = Databases(settings.paths, WriterProfile("NORMAL", CHECKPOINT_PAGES, settings.busy_timeout_ms))
        self.policy = DigestPolicy(WORK_BATCH, settings.lease_s, settings.backoff_s)
        self._dense: dict[str, tuple[Encoder, DenseIndex]] = {}

    @cached_property
    def encoder(self) -> Encoder:
        """Return the encoder, compiling it on first use."""
        from pipeline.index.compile import compile_encoder

        if not is_compiled(self.settings.embedding_model, self.settings.paths.models):
            log.info("compiling the encoder %s; this happens once", self.settings.embedding_model)
            compile_encoder(self.settings.embedding_model, self.settings.paths.models)
        return load_encoder(self.settings)

    @cached_property
    def tagger(self) -> Tagger:
        """Return the named-entity tagger."""
        tagger = SpacyTagger.load()
        limit_threads(self.settings.encoder_threads)
        return tagger

    def vectors(self, workspace_id: str) -> VectorTable:
        """Return a workspace's vector table."""
        return vector_table(self.settings.paths.workspace(workspace_id), self.encoder)

    def dense(self, workspace_id: str) -> DenseIndex:
        """Return a workspace's dense index, which takes in by itself what workers embed."""
        encoder = self.encoder
        known = self._dense.get(workspace_id)
        if known is None or known[0] is not encoder:
            index = DenseIndex(self.vectors(workspace_id), self.settings.dense_exact_rows, encoder.background)
            known = self._dense[workspace_id] = (encoder, index)
        return known[1]

    def stages(self, workspace_id: str) -> StageRegistry:
        """Return the stages of a workspace."""
        database = self.databases.get(workspace_id)
        return {
            Stage.EMBED: EmbedStage(database, lambda: self.vectors(workspace_id), lambda: self.encoder),
            Stage.ENTITIES: EntitiesStage(database, lambda: self.tagger),
            Stage.DEDUP: DedupStage(database, lambda: self.vectors(workspace_id), lambda: self.dense(workspace_id)),
            Stage.PURGE: PurgeStage(
                database,
                lambda: self.vectors(workspace_id),
                lambda: self.rebuild_segment(workspace_id),
                lambda: self.scrub_snapshots(workspace_id),
            ),
        }

    def jobs(self, workspace_id: str) -> Mapping[str, Job]:
        """Return the jobs of a workspace by name."""
        return jobs_of(
            Workshop(
                self._workspace_settings(workspace_id),
                self.settings.paths.workspace(workspace_id),
                self.databases.get(workspace_id),
                lambda: self.vectors(workspace_id),
                lambda: self.ring_due(workspace_id),
                lambda: self.rebuild_segment(workspace_id),
                lambda: self.heal(workspace_id),
                lambda problem: self.operations.record_error("night", problem, workspace=workspace_id),
            )
        )

    def _workspace_settings(self, workspace_id: str) -> Settings:
        if not self.settings.paths.workspace(workspace_id).config.is_file():
            return self.settings
        try:
            return load_settings(environment_of(self.settings.paths), workspace_id)
        except SettingsError as error:
            self.operations.record_error("settings", str(error), workspace=workspace_id)
            return off_the_record(self.settings)

    def run_job(
        self, workspace_id: str, name: str, pausing: Callable[[], bool], on_progress: Progress = silently
    ) -> Outcome | None:
        """Run a job once; return None when somebody else runs it now."""
        free_locks(self.databases.get(workspace_id), is_alive)
        return run_job(
            name,
            self.jobs(workspace_id)[name],
            self.databases.get(workspace_id),
            self.owner,
            pausing=pausing,
            on_error=lambda message: self.operations.record_error(f"job.{name}", message, workspace=workspace_id),
            on_progress=on_progress,
        )

    def foreground_waits(self, workspace_id: str) -> bool:
        """Tell whether written memories wait to be digested."""
        with self.databases.get(workspace_id).read() as db:
            return not FOREGROUND.isdisjoint(work.due(db, time.time()))

    def ring_due(self, workspace_id: str) -> int:
        """Ring for the stages that have something to claim; return how many."""
        due = self.due_stages(workspace_id)
        for stage in due:
            self.ring(workspace_id, stage)
        return len(due)

    def heal(self, workspace_id: str) -> int:
        """Queue again what the vector index should hold and does not; return how many memories."""
        queued = heal_vectors(
            self.databases.get(workspace_id),
            self.vectors(workspace_id),
            self.settings.paths.workspace(workspace_id).vectors,
            self.encoder.name,
            lambda message: self.operations.record_error("vectors", message, workspace=workspace_id),
        )
        if queued:
            self.ring(workspace_id, Stage.EMBED)
        return queued

    def due_stages(self, workspace_id: str) -> list[Stage]:
        """Free the leases of dead workers; return the stages that have something to claim."""
        for worker in self.operations.workers():
            if not is_alive(worker.owner):
                self.operations.forget_worker(worker.owner)
        return sweep(self.databases.get(workspace_id), is_alive)

    def asked_jobs(self, workspace_id: str) -> list[str]:
        """List the jobs that somebody asked for and that have not begun."""
        with self.databases.get(workspace_id).read() as db:
            return asked_jobs(db)

    def is_due(self, workspace_id: str, name: str) -> bool:
        """Tell whether a job was asked for, was interrupted, has its time, or is needed by a workspace's state."""
        own = [one for one in appointments(self.settings) if one.name == name]
        with self.databases.get(workspace_id).read() as db:
            if due_jobs(db, own, datetime.now(UTC)):
                return True
        needed = self._needs(workspace_id).get(name)
        return needed is not None and needed()

    def needed_jobs(self, workspace_id: str, *, tidy: bool = False) -> list[str]:
        """Return the maintenance jobs that a workspace's state asks for; to tidy, a single fresh row is enough."""
        return [name for name, needed in self._needs(workspace_id, tidy=tidy).items() if needed()]

    def _needs(self, workspace_id: str, *, tidy: bool = False) -> Mapping[str, Callable[[], bool]]:
        rows = 1 if tidy else self.settings.segment_tail_rows
        fragments = FEW_FRAGMENTS if tidy else MANY_FRAGMENTS
        return {
            "segment": lambda: needs_segment(self.databases.get(workspace_id), rows),
            "vectors": lambda: needs_compaction(self.vectors(workspace_id), fragments),
        }

    def rebuild_segment(self, workspace_id: str) -> int:
        """Build a workspace's lexical segment anew."""
        return rebuild_segment(self.databases.get(workspace_id), self.settings.paths.workspace(workspace_id).lexical)

    def scrub_snapshots(self, workspace_id: str) -> int:
        """Take every purged memory out of a workspace's snapshots; return how many held one."""
        return scrub_snapshots(
            self.databases.get(workspace_id),
            self.settings.paths.workspace(workspace_id).snapshots,
            lambda message: self.operations.record_error("snapshot", message, workspace=workspace_id),
        )

    def close(self) -> None:
        """Let go of every file."""
        for _, index in self._dense.values():
            index.close()
        self.databases.close()
        self.operations.close()
