"""Environments that a rule or a command names: production, staging, test, development."""

import re

# Closed classes; the first alternative that matches counts, so that "pre-prod" is not production.
_NAMES = (
    ("staging", r"pre-?prod\w*|stag(?:e|ing)|stg|uat"),
    ("production", r"prod|production|prd|live|produktion|produktiv\w*|producci[oó]n"),
    ("test", r"tests?|testing|qa|ci"),
    ("development", r"dev|devel|development|local|localhost|sandbox|entwicklung|desarrollo|d[eé]veloppement"),
)
_ENVIRONMENT = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _NAMES)})(?![^\W_])", re.IGNORECASE
)


def list_environments(text: str) -> frozenset[str]:
    """Return the environments that a text names."""
    return frozenset(match.lastgroup for match in _ENVIRONMENT.finditer(text) if match.lastgroup)
