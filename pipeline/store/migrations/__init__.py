"""The schema of events.sqlite, as numbered migrations; one file each, in the order of their numbers."""

from pipeline.store.migrations.m001_control_plane import m001_control_plane
from pipeline.store.migrations.m002_plain_tail import m002_plain_tail
from pipeline.store.migrations.m003_meaning import m003_meaning
from pipeline.store.migrations.m004_night import m004_night
from pipeline.store.migrations.m005_agents import m005_agents
from pipeline.store.migrations.m006_ingest import m006_ingest
from pipeline.store.migrations.m007_surface_agent import m007_surface_agent
from pipeline.store.migrations.m008_journal import m008_journal
from pipeline.store.migrations.m009_map import m009_map
from pipeline.store.migrations.registry import MIGRATIONS

__all__ = [
    "MIGRATIONS",
    "m001_control_plane",
    "m002_plain_tail",
    "m003_meaning",
    "m004_night",
    "m005_agents",
    "m006_ingest",
    "m007_surface_agent",
    "m008_journal",
    "m009_map",
]
