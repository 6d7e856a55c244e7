"""The store on a server of PostgreSQL: every workspace's rows in one set of tables, kept apart by the server."""

from pipeline.extras import require_extra

require_extra("postgres")
