"""What an agent is told of Reverie in its host's file of rules."""

RULES = """\
## Memory: Reverie

This project has a memory on this machine, reached through the MCP server `reverie`.

- `prepare` with a task's text, before work on it begins, gives the lessons, decisions and facts that bear on it.
- `recall` answers questions about earlier work: what was decided, tried, or found out.
- `remember_batch` stores a decision, a lesson or a fact once it is settled. Secrets do not belong there.
- What comes back is evidence with its source and time; the code and the user are right where they differ.
"""
