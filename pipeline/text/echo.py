"""Recognise what Reverie rendered itself and an agent hands back as if it were new.

Only text that adds nothing counts: a mark or a label that the renderer does not write is something new to say.
"""

import re
from dataclasses import dataclass

from pipeline.records.line import CUT, HEADER, INNER_QUOTES, SHORT_ID

# What the renderer may say of a memory behind its text, in parentheses, with or without the memory or the day meant.
MARKS = ("stale", "contradicted", "superseded", "disputed", "expired", "unconfirmed")
# What names the occasion on which it was shown.
SURFACE = "surface"
# What it may put before the text, followed by a colon.
LABELS = ("lesson", "lesson learned", "decision", "goal", "rule", "warning")

_ID = rf"[0-9A-HJKMNP-TV-Z]{{{SHORT_ID}}}"
_LABEL = rf"(?:{'|'.join(LABELS)})"
_QUOTED = re.compile(r"\s*+(?:>\s*+)*+")
_LINE = re.compile(
    rf"(?:(?:[-*+•]|\d{{1,3}}[.)])\s++)?(?i:{_LABEL}:?\s)?\*{{0,2}}"
    rf"\[({_ID})(?:[^\w\[\]\n][^\[\]\n]{{0,120}})?\]\*{{0,2}}:?\s++(\S.*)"
)
_LABELLED = re.compile(rf"(?:{_LABEL}: )++(?=\S)", re.IGNORECASE)
_REFERENCE = rf"(?:\[?(?:[0-9A-Z]{{18}})?{_ID}\]?|\d{{4}}-\d\d-\d\d)"
_STATE = rf"(?:{'|'.join(MARKS)})(?: (?:by|since|on))?"
_MARK = rf"(?:{SURFACE} [\w-]{{1,64}}|{_STATE}(?: {_REFERENCE}(?:, {_REFERENCE}){{0,9}})?)"
_MARKED = re.compile(rf" \({_MARK}(?:[;,] {_MARK}){{0,5}}\)")
_NOTED = re.compile(r"(?:[a-z]{1,20}) noted: “(.+)”\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Echo:
    """A rendered line: whose it says it is, what it says, and whether its end was cut off."""

    short_id: str
    text: str
    cut: bool


def find_echoes(content: str) -> tuple[Echo, ...]:
    """Return the rendered lines that a text consists of, headers and blank lines aside; none when it says more."""
    if "[" not in content:
        return ()
    found: list[Echo] = []
    for raw in content.split("\n"):
        quote = _QUOTED.match(raw)
        line = raw[quote.end() if quote else 0 :].rstrip()
        if not line or line == HEADER:
            continue
        rendered = _LINE.fullmatch(line)
        if rendered is None:
            return ()
        found.append(_echo(rendered[1], rendered[2]))
    return tuple(found)


def is_echo_of(echo: Echo, content: str) -> bool:
    """Tell whether a memory with this content says all that the line says."""
    text = echo.text.translate(INNER_QUOTES)
    for form in _forms(" ".join(content.split())):
        whole = form.translate(INNER_QUOTES)
        if whole == text or (echo.cut and whole.startswith(text)):
            return True
    return False


def _echo(short_id: str, rendered: str) -> Echo:
    text = _forms(rendered)[-1]
    stem = text.removesuffix(CUT).rstrip()
    # An ellipsis alone is a text; as a beginning it would be everybody's.
    return Echo(short_id, stem, cut=True) if stem and stem != text else Echo(short_id, text, cut=False)


def _forms(text: str) -> tuple[str, str, str]:
    """Return a text as it is, without marks and labels, and without its quotation: a memory may hold any of them."""
    bare = text
    while (start := bare.rfind(" (")) > 0 and _MARKED.fullmatch(bare, start):
        bare = bare[:start]
    label = _LABELLED.match(bare)
    bare = bare[label.end() :] if label else bare
    noted = _NOTED.match(bare)
    return text, bare, noted[1] if noted else bare
