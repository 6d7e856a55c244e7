"""Logging: one line an event on standard error, secrets masked by the given function."""

import logging
from collections.abc import Callable

LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class RedactingFormatter(logging.Formatter):
    """Format a record, then mask what the given function calls secret."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(LINE)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line without secrets."""
        return self._redact(super().format(record))


def configure_logging(level: str, redact: Callable[[str], str]) -> None:
    """Send every log line to standard error through the redacting formatter."""
    handler = logging.StreamHandler()
    handler.setFormatter(RedactingFormatter(redact))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These report every request, job tick and task at INFO, which would bury what matters.
    for noisy in ("apscheduler", "huey", "sentence_transformers", "waitress.queue"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))
