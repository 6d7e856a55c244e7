"""The modes of hosts in which an agent only reads. The hook client imports this module: no further imports."""

# Claude Code, Codex and Qwen Code send it. In other modes of hosts, an agent asks before it changes a file.
READ_ONLY_MODES = frozenset({"plan"})
