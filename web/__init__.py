"""Every door: HTTP API, hooks, CLI; each module is imported by the door that needs it."""
