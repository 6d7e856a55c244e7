"""The schema of events.sqlite, as numbered migrations; one file each, in the order of their numbers."""

from pipeline.store.migrations.m001_control_plane import m001_control_plane
from pipeline.store.migrations.m002_plain_tail import m002_plain_tail
from pipeline.store.migrations.m003_meaning import m003_meaning
from pipeline.store.migrations.m004_night import m004_night
from pipeline.store.migrations.m005_agents import m005_agents
from pipeline.store.migrations.registry import MIGRATIONS

__all__ = ["MIGRATIONS", "m001_control_plane", "m002_plain_tail", "m003_meaning", "m004_night", "m005_agents"]
