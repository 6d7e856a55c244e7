"""Hook events of hosts over HTTP: one file per host."""
