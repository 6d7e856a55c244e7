"""Where migrations enter themselves, in order."""

from sqlite_utils import Migrations

MIGRATIONS = Migrations("reverie")
