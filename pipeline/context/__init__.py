"""Context for agents: what is put before them, and how it is rendered."""
