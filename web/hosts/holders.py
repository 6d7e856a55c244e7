"""Which files of hosts hold a token, and whether it is still the one that opens the server."""

import re
from dataclasses import dataclass
from pathlib import Path

from web.hosts import ledger

# What stands for a variable begins with `$` and is no token.
_BEARER = re.compile(r"Bearer ([A-Za-z0-9_-]+)")


@dataclass(frozen=True, slots=True)
class Holder:
    """A file in which a setup has written the token, for which hosts, and whether that is the present one."""

    path: Path
    hosts: tuple[str, ...]
    current: bool


def token_holders(root: Path, token: str) -> list[Holder]:
    """List the files that a setup of this home has written a token into; one that cannot be read is left out."""
    found = []
    for file, record in sorted(ledger.read(root).items()):
        held = _tokens(Path(file))
        if held:
            found.append(Holder(Path(file), tuple(sorted(record.hosts)), held == {token}))
    return found


def _tokens(file: Path) -> set[str]:
    try:
        return set(_BEARER.findall(file.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return set()
