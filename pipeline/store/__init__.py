"""The control plane: one SQLite file per workspace; all SQL is here."""
