"""The store: one database per workspace; all SQL is here."""
