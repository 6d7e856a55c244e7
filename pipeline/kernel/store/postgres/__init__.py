"""The store on a PostgreSQL server: rows of all workspaces in one set of tables, separated by row level security."""

from pipeline.kernel.extras import require_extra

require_extra("postgres")
