"""Find secrets in text and metadata and put a marker in their place.

Three layers: formats that a vendor fixed (detect-secrets' expressions and newer ones), credentials that a
position gives away (PEM blocks, URLs, headers), and values given to a name such as `password`. A rule runs
only when a plain substring wakes it, and every rule is linear in its input.

Left out of detect-secrets: the entropy and IP plugins (hashes, ULIDs and addresses are no secrets), Keyword
BasicAuth, GitHub, GitLab and PyPI, which the rules here widen, and PrivateKey, which sees the header only.
JWT, OpenAI, npm, Cloudant and IBM's backtrack quadratically on hostile text, so the rules here restate them.
"""

from pipeline.text.redaction.formats import preload
from pipeline.text.redaction.metadata import redact_json
from pipeline.text.redaction.text import Redaction, redact

__all__ = ["Redaction", "preload", "redact", "redact_json"]
