"""The modes of hosts in which an agent only reads. The hook client imports this module: no further imports."""

# Claude Code, Codex and Qwen Code send `plan`, Cursor sends `ask`.
READ_ONLY_MODES = frozenset({"plan", "ask"})
