"""The store on a server of PostgreSQL: every workspace's rows in one set of tables, kept apart by the server."""
