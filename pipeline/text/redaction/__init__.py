"""Find secrets in text and metadata and put a marker in their place.

Three layers: formats that a vendor fixed, credentials that a position gives away (PEM blocks, URLs, headers), and
values given to a name such as `password`. A rule runs only when a plain substring wakes it, and every rule is linear
in its input. Entropy and addresses decide nothing: hashes, ULIDs and IP addresses are no secrets.
"""

from pipeline.text.redaction.redact import Redaction, redact, redact_json

__all__ = ["Redaction", "redact", "redact_json"]
