"""What agent programs do around hooks, as it was observed (`behavior.toml`)."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

# The value of `act_context` for a host whose agent never reads it.
NOT_AT_ALL = "not at all"


@cache
def load_behavior() -> Mapping[str, Mapping[str, Any]]:
    """Return the observations of each host."""
    return tomllib.loads(Path(__file__).with_name("behavior.toml").read_text(encoding="utf-8"))


def reads_context_of_acts(host: str) -> bool:
    """Return whether the agent of a host was seen to read what a hook before a tool adds."""
    return str(load_behavior().get(host, {}).get("act_context", NOT_AT_ALL)) != NOT_AT_ALL
