"""The stored form of a message, and the name of a session after its first message."""

from pipeline.kernel.records import MAX_CONTENT_CHARS
from pipeline.kernel.store.turns import Role
from pipeline.text.normalize import normalize_text, shorten
from pipeline.text.own_words import drop_host_text, drop_private, list_own_lines
from pipeline.text.redaction import redact

LONGEST_NAME = 80
# The rest of a longer message is not read.
LONGEST_SAID = 200_000
# Far more than is stored, so that a secret that is cut here is not stored.
REDACTED_CHARS = 2 * MAX_CONTENT_CHARS


def clean_said(role: Role, content: str) -> str:
    """Return the stored form of a message: without secrets, and a user's without private and the host's text."""
    text = content[:LONGEST_SAID]
    if role is Role.USER:
        text = drop_host_text(drop_private(text))
    # Redact before truncating, because redaction does not recognize half of a secret.
    return redact(normalize_text(text[:REDACTED_CHARS])).text[:MAX_CONTENT_CHARS]


def name_session(prompt: str) -> str:
    """Return the name of a session that starts with a prompt."""
    return shorten(" ".join((" ".join(list_own_lines(prompt)) or prompt).split()), LONGEST_NAME)
