"""The jobs of the night, in the order in which a whole night runs."""

from collections.abc import Mapping
from datetime import timedelta

from pipeline.jobs.calendar import Appointment

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)

APPOINTMENTS: tuple[Appointment, ...] = (
    Appointment("snapshot", "keeps a verified copy of the store: 7 daily, 4 weekly"),
    Appointment("sweep", "rings for work whose doorbell was lost, frees expired leases", 30 * SECOND),
    Appointment("touches", "writes buffered access counts", 5 * SECOND),
    Appointment("segment", "folds new writes into the lexical segment", 5 * MINUTE),
    Appointment("vectors", "compacts the vector index and embeds again what is missing", 15 * MINUTE, idle=True),
    Appointment("dedup", "verifies pairs that may be one", 10 * MINUTE),
    Appointment("edges", "finds causes, contradictions and supersessions between recent memories", 10 * MINUTE),
    Appointment("arcs", "gathers memories into threads", HOUR),
    Appointment("predict", "foresees the next questions", HOUR, idle=True),
    Appointment("decay", "lets importance fade with time and rise with use", idle=True),
    Appointment("archive", "archives what is cold, old and unimportant", idle=True),
    Appointment("consolidate", "makes one memory of many related episodes"),
    Appointment("lessons", "proposes lessons from repeated corrections and from failures and their fixes"),
    Appointment("layout", "draws the map of what memories mention"),
    Appointment("health", "checks invariants across store and indexes, repairs what is derived", HOUR, idle=True),
)

BY_NAME: Mapping[str, Appointment] = {appointment.name: appointment for appointment in APPOINTMENTS}
