"""Values: where they start and end, how much they look like secrets, and placeholders."""

import re
from enum import IntEnum
from typing import Final, NamedTuple

from pipeline.text.lexicon import load_lexicon
from pipeline.text.redaction.formats import IDENTIFIER, MARKER, NOTHING, has_digit, looks_random

_LEXICON: Final = load_lexicon("redaction")


class Evidence(IntEnum):
    """How strongly the context of a value suggests a secret; weaker evidence requires a more suspicious value."""

    SURE = 0  # anything except placeholders, prose and code
    LIKELY = 1  # letters with digits or symbols among them
    WEAK = 2  # a long run of letters and digits
    FAINT = 3  # the same, except hashes and identifiers


class Value(NamedTuple):
    """The position of a value in a text, and whether it is quoted."""

    start: int
    end: int
    quoted: bool


# Start and end of a value

# fmt: off
_OPENING: Final = re.compile(r"""
    <!\[CDATA\[ | (?:[@$bBrRuUfFLN]|[bB][rR]|[rR][bB])?(?:\"{3}|'{3})
  | (?:[@$bBrRuUfFLN]|[bB][rR]|[rR][bB])?\\{0,7}["'`] | &(?:quot|apos|\#0{0,3}3[49]|\#[xX]0{0,3}2[27]);
    """, re.VERBOSE)
_PREFIX: Final = "@$bBrRuUfFLN"
# A shell word continues after its quotation marks: 'it'\''s'. A key that is split into lines continues on the next.
_BROKEN: Final = r"""(?:(?:\r?\n[ \t]*+[^\s"'`\\]{8,}+)++(?=["'`]))?"""
_BODIES: Final = {
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+' + _BROKEN),
    "'": re.compile(r"""(?:[^'\\\n]|\\.)*+(?:'(?:\\'|"'")'(?:[^'\\\n]|\\.)*+)*+""" + _BROKEN),
    "`": re.compile(r"(?:[^`\\\n]|\\.)*+"),
}
_BARE_MARK: Final = MARKER + r"""
  | \[ | <(?!/|!|\w{1,10}\s?/?>) | ["'`](?=[^\W_])
  | [,;](?!\s|\Z|["']|[\w.-]{1,40}[ ]?[=:])
  | &(?!\s|\Z|["']|(?:amp;)?[\w.-]{1,40}[ ]?[=:]|(?:quot|apos|lt|gt|\#\w{1,5});) | \\(?![nrt"'\\])"""
_BARE_LETTER: Final = r"[^\s\"'`<&,;\\\[]"
_BARE: Final = re.compile(rf"(?:{_BARE_LETTER}++|{_BARE_MARK})++", re.VERBOSE)
# fmt: on
_CUT_MARKER: Final = re.compile(r"\[REDACTED:[a-z0-9-]+\Z")
ENOUGH: Final = 200  # characters by which a value is judged, so that rejection stays cheap
_LONGEST: Final = 4096  # maximum distance of a closing mark of several letters


def read_value(text: str, start: int, opening: str = "") -> Value:
    """Return the value that starts at a position, or after an opening mark before it.

    An unquoted value is only read as far as needed to judge it; `finish_value` returns its end.
    """
    if not opening and (match := _OPENING.match(text, start)):
        opening, start = match[0].lstrip(_PREFIX), match.end()
    if not opening:
        head = _BARE.match(text, start, start + ENOUGH)
        return Value(start, _without_closing(text, start, head.end()) if head else start, quoted=False)
    if body := _BODIES.get(opening):
        read = body.match(text, start)
        return Value(start, read.end() if read else start, quoted=True)
    closing = "]]>" if opening.startswith("<") else opening
    end = text.find(closing, start, start + _LONGEST)
    if end < 0:
        end = text.find("\n", start, start + _LONGEST)
    return Value(start, end if end >= 0 else min(len(text), start + _LONGEST), quoted=True)


def finish_value(text: str, value: Value) -> int:
    """Return the end of a value that was read far enough to judge it."""
    whole = None if value.quoted else _BARE.match(text, value.start)
    return _without_closing(text, value.start, whole.end()) if whole else value.end


def _without_closing(text: str, start: int, end: int) -> int:
    """Return the end without punctuation that closes a sentence or a bracket."""
    trimmed = text[start:end].rstrip(".,;:)]}>*")
    return start + len(trimmed) + bool(_CUT_MARKER.search(trimmed[-40:]))


# Resemblance to a secret

# A top-level domain has no digits, unless it is in Punycode.
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}+@(?:[\w-]{1,64}+\.)++(?:[^\W\d_]{2,63}|xn--[\w-]{1,59})")
_OTHER_LETTERS: Final = re.compile(r"[0-9!#$%^&*+=~@]")
_LETTERS: Final = re.compile(r"[^\W\d_]")
_LEAST: Final = {Evidence.SURE: 0, Evidence.LIKELY: 6, Evidence.WEAK: 16, Evidence.FAINT: 16}


def is_strong(value: str, least: int) -> bool:
    """Return whether a value looks like a secret by itself, if its position alone is weak evidence."""
    if len(value) < least or not (_LETTERS.search(value) and _OTHER_LETTERS.search(value)):
        return False
    return not ("://" in value or _is_path(value) or _EMAIL.fullmatch(value))


def _is_path(value: str) -> bool:
    """Return whether a value is words between slashes, none of which mixes small letters, capitals and digits."""
    return "/" in value and not any(
        has_digit(part) and part not in (part.lower(), part.upper()) for part in value.split("/")
    )


def is_convincing(value: str, evidence: Evidence) -> bool:
    """Return whether a value looks enough like a secret, given the evidence of its position."""
    if evidence is Evidence.SURE:
        return True
    if not is_strong(value, _LEAST[evidence]):
        return False
    if evidence is Evidence.LIKELY:
        return True
    if evidence is Evidence.FAINT and (IDENTIFIER.fullmatch(value) or "." in value):
        return False
    return looks_random(value)


# Placeholders

# fmt: off
_PLACEHOLDER: Final = re.compile(r"""
    <[A-Za-z%][^<>]{0,80}>?.* | \$[A-Z_][A-Z0-9_]*+ | \$[a-z_]++ | \$[({].* | \{[\w .:!{"'].* | \[[\w -]{1,40}+\]?
  | %s | %\(\w+\)s? | %\w+% | x{3,} | your[-_ ][\w -]* | example | placeholder | dummy | redacted | hidden | masked
  | [\w-]{0,12}(?:\.{3}|\u2026|\*{3,}|x{4,}) | [A-Za-z_][\w.]*+\([^()]*+\)
  | (?:vault|op|secret|env|file|arn|ssm|sops|keyring):.*
  | !(?:vault|secret|ref|sub|getatt|env|env_var|include)\b.* | ENC\[.*
  | (?:/(?:run|etc|var|home|usr|opt|tmp|mnt|root|proc|dev)|~|\.\.?)/.* | [A-Za-z]:\\.*
  | v?\d+(?:\.\d+)++ | \d{4}-\d\d-\d\d.*
  | (?:[a-z]++[-_])*+(?:pass|pw|passw(?:or)?d|pwd|token|secret|api[-_ ]?key|key|auth)s?
  | (?:""" + _LEXICON.alternatives("algorithms") + r""")(?:[-_/].*)?
    """, re.IGNORECASE | re.VERBOSE | re.DOTALL)
_CODE: Final = re.compile(r"""
    [A-Za-z_][\w.:]*+(?:\(|\[(?!REDACTED:)).* | [A-Z]\w*+<.* | &?mut\b.* | [&*](?:str|string).* | \(.*
  | (?:""" + _LEXICON.alternatives("code_objects") + r""")\??\.[\w.?!]*+
  | (?:[A-Za-z_.]*(?:[._]|(?<=[a-z])(?=[A-Z])))?
      (?i:password|passwd|pwd|pass|token|secret|key|auth|credentials?|value|header|env)s?(?:[)\]}][\[.,:;)\]}].*)?
    """, re.VERBOSE | re.DOTALL)
# fmt: on
HARMLESS_WORDS: Final = frozenset(_LEXICON.words("harmless_words"))
_WORD: Final = r"[^\W\d_]++(?:['\u2019-][^\W\d_]++)*+"
_PLAIN: Final = re.compile(rf"{_WORD}|\d{{1,3}}")
_PROSE_AFTER: Final = re.compile(rf",?(?:[ \t]+\(?{_WORD}(?![\w:='\u2019-])[,.;!?)]*+){{2}}")
_EXPRESSION_AFTER: Final = re.compile(r" (?:\| (?:None|null|undefined|[A-Z])|[=!]= )")
_PATTERN: Final = re.compile(r"\(\?[:<=!P]|\[(?:\^|0-9|a-z|A-Z)|\\[dws][+*{]")  # of an expression like this one
_FUNCTION_WORD: Final = re.compile(rf"\b(?:{_LEXICON.alternatives('function_words')})\b", re.IGNORECASE)
_QUANTITY: Final = re.compile(r"-?\d{1,5}(?:\.\d+)?(?:ms|s|m|h|d|k|kb|mb|%)?", re.IGNORECASE)
_FEW_WORDS: Final = 2


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder for a secret."""
    if len(value) <= 1 or value.lower() in HARMLESS_WORDS:
        return True
    return bool(NOTHING.fullmatch(value) or _PLACEHOLDER.fullmatch(value))


def is_harmless(value: str, after: str, *, quoted: bool, tight: bool, is_password: bool) -> bool:
    """Return whether a value is a placeholder, a word of prose or an expression in code."""
    core = value.rstrip("!?.,;:)]}>") if not quoted and value[:1] not in "<{[$" else value
    if is_placeholder(core) or _PATTERN.search(value) or (not is_password and _QUANTITY.fullmatch(core)):
        return True
    if quoted:
        has_words = len(core.split()) > _FEW_WORDS and bool(_FUNCTION_WORD.search(core))
        return value[0] in " \t,)]};:" or (has_words and not tight)
    if _CODE.fullmatch(value) or _PLACEHOLDER.fullmatch(value + after[:3]):
        return True
    if value.isidentifier() and _EXPRESSION_AFTER.match(after):
        return True
    return not tight and bool(_PLAIN.fullmatch(core) and value[-1] not in "!?" and _PROSE_AFTER.match(after))
