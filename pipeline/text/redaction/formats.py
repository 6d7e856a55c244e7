"""Fixed secret formats of vendors, the types of rules, and values: their extent, their look, and placeholders."""

import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple

from pipeline.text.lexicon import load_lexicon

MARKER: Final = r"\[REDACTED:[a-z0-9-]+\]"
NOTHING: Final = re.compile(rf"(?:{MARKER}|[\W_])*+")  # only markers and punctuation
IDENTIFIER: Final = re.compile(  # a hash, a ULID or a UUID
    r"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)


class FoundSecret(NamedTuple):
    """The position of a secret in a text, and its kind."""

    start: int
    end: int
    kind: str


Finder = Callable[[str], Iterator[FoundSecret]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A finder, and the substrings (lower case if case is ignored) of which the text must contain one.

    `least` is the minimum length of the word that contains the substring, if a match is a single word.
    """

    triggers: tuple[str, ...]
    find: Finder
    folds_case: bool = False
    least: int = 0


_DIGIT: Final = re.compile("[0-9]")
_WORD: Final = 12  # length of the shortest vendor token
_LONG_WORD: Final = 36
_RUN: Final = re.compile("[A-Za-z0-9]{10,}+")
_DIGESTS: Final = ("sha1", "sha2", "sha3", "sha5", "md5")


def has_digit(token: str) -> bool:
    """Return whether a token contains a digit."""
    return _DIGIT.search(token) is not None


def looks_random(token: str) -> bool:
    """Return whether a run of letters and digits, too long for a word, contains a digit."""
    return any(has_digit(run) for run in _RUN.findall(token))


_ALNUM: Final = string.ascii_letters + string.digits
# Predicate on a match, given the letters and digits to its left, and the full token.
_Genuine = Callable[[str, str], bool]


def _always(_head: str, _token: str) -> bool:
    return True


def _has_digit(_head: str, token: str) -> bool:
    return has_digit(token)


def _looks_random(_head: str, token: str) -> bool:
    return looks_random(token)


def _not_an_identifier(head: str, token: str) -> bool:
    return not IDENTIFIER.fullmatch((head + token).rpartition(":")[2])


def _mixes_letters(head: str, token: str) -> bool:
    run = token[1:]
    is_word = head.islower() and not head.startswith(_DIGESTS)
    return is_word and has_digit(run) and run not in (run.lower(), run.upper())


def _find_tokens(pattern: re.Pattern[str], kind: str, genuine: _Genuine, text: str) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        # If a prefix is required before a token, the token is a group.
        token, start = match[pattern.groups], match.start(pattern.groups)
        # Extended to the token's end: if a vendor lengthens a format, its tail must not remain.
        ahead = text[start + len(token) : start + len(token) + 1024]
        token += ahead[: len(ahead) - len(ahead.lstrip(_ALNUM + "_-"))]
        behind = text[max(0, start - 64) : start]
        if genuine(behind[len(behind.rstrip(_ALNUM)) :], token):
            yield FoundSecret(start, start + len(token), kind)


def _format(kind: str, expression: str, *triggers: str, genuine: _Genuine = _always, least: int = _WORD) -> SecretRule:
    return SecretRule(triggers, partial(_find_tokens, re.compile(expression, re.ASCII), kind, genuine), least=least)


_WORDS: Final = load_lexicon("redaction")
_VENDORS: Final = _WORDS.words("vendor_prefixes")
_GITLAB: Final = _WORDS.words("gitlab_prefixes")
# Every expression starts with a fixed letter or a token boundary, and never backtracks: the work per position is
# bounded, and a run of letters is read once.
FORMATS: Final = (
    _format(
        "aws-access-key",
        r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
        "AKIA",
        "ASIA",
        "ABIA",
        "ACCA",
        "A3T",
        genuine=_not_an_identifier,
    ),
    _format(
        "artifactory-token",
        r"(?<![^\s=:\"])(?:AKC[a-zA-Z0-9]{10,}+|AP[\dA-F][a-zA-Z0-9]{8,}+)(?![^\s\"])",
        "AKC",
        "AP",
        genuine=_has_digit,
    ),
    _format("connection-string", r"AccountKey=[a-zA-Z0-9+/=\\]{88}", "AccountKey="),
    _format("discord-token", r"[MNO](?<![\w-].)[\w-]{23,27}+\.[\w-]{6}\.[\w-]{27}", ".", least=_LONG_WORD),
    _format("webhook", r"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/([\w-]{20,}+)", "/webhooks/"),
    _format("webhook", r"\.webhook\.office\.com/webhookb2/([\w@/-]{40,}+)", "/webhookb2/"),
    _format("webhook", r"hooks\.zapier\.com/hooks/catch/(\d+/\w+)", "hooks.zapier.com"),
    _format("mailchimp-key", r"(?<![0-9A-Za-z])[0-9A-Za-z]{32}-us[0-9]{1,2}", "-us", least=_LONG_WORD),
    _format("mailgun-key", r"(?<![0-9A-Za-z])[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])", "-", least=_LONG_WORD),
    _format("sendgrid-key", r"SG\.[\w-]{22}\.[\w-]{43}", "SG."),
    _format(
        "slack-token",
        r"xox[abposr]-(?:\d++-)++[A-Za-z0-9]++"
        r"|https://hooks\.slack\.com/(?:services/T\w+/B\w+/\w+|(?:workflows|triggers)/[\w/]+)",
        "xox",
        "hooks.slack.com",
    ),
    _format("softlayer-key", r"https?://api\.softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{64})", "api.softlayer.com"),
    _format("square-secret", r"sq0[a-z]{3}-[\w\\-]{22,}+", "sq0"),
    _format("square-secret", r"(?<![A-Za-z0-9_-])EAAA[\w-]{60}", "EAAA"),
    _format("stripe-key", r"[rs]k_live_[0-9a-zA-Z]{24}", "sk_live_", "rk_live_"),
    _format("telegram-token", r"[0-9](?<![0-9].)\d{7,9}+:[\w-]{35}", ":", genuine=_not_an_identifier, least=_LONG_WORD),
    _format("twilio-key", r"(?:AC|SK)(?:[a-z0-9]{32}|[A-F0-9]{32})", "AC", "SK", genuine=_not_an_identifier),
    _format("anthropic-key", r"sk-ant-[\w-]{16,}+", "sk-ant-"),
    _format("openai-key", r"sk-(?:proj|svcacct|admin|or)-[\w-]{16,}+|(?<![A-Za-z0-9_-])sk-[A-Za-z0-9]{20,}+", "sk-"),
    _format("openai-key", r"(?<![A-Za-z0-9])sk-[\w-]++", "T3BlbkFJ", genuine=lambda _, token: "T3BlbkFJ" in token),
    _format("google-api-key", r"AIza[\w-]{30,}+", "AIza"),
    _format(
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
    ),
    _format("gitlab-token", rf"(?:{'|'.join(_GITLAB)})[\w-]{{20,}}+", *_GITLAB),
    _format("slack-token", r"xox[a-z]-(?=[\w-]{0,40}\d)[\w-]{10,}+", "xox"),
    _format("stripe-key", r"(?<![a-z])[srp]k_(?:live|test)_[A-Za-z0-9]{16,}+", "k_live_", "k_test_"),
    _format("npm-token", r"npm_[A-Za-z0-9]{30,}+", "npm_"),
    _format("pypi-token", r"pypi-Ag[\w-]{40,}+", "pypi-Ag"),
    _format("huggingface-token", r"hf_[A-Za-z0-9]{30,}+", "hf_"),
    _format("reverie-token", r"rvp_[\w-]{40,}+", "rvp_"),
    _format("age-key", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{20,}+", "AGE-SECRET-KEY-"),
    _format("azure-devops-token", r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", "AZDO"),
    _format("azure-secret", r"(?<![\w~.-])[\w~.-]{3}[78]Q~[\w~.-]{31,34}+(?![\w~-])", "Q~"),
    _format("terraform-token", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}+", ".atlasv1."),
    _format("salesforce-token", r"(?<![A-Za-z0-9])00D[a-zA-Z0-9]{9,15}![\w.]{80,}+", "00D"),
    _format(
        "meta-token", r"(?<![A-Za-z0-9])(?:EAA[A-Z]|IGQ[A-Z])[A-Za-z0-9_-]{60,}+", "EAA", "IGQ", genuine=_has_digit
    ),
    _format(
        "nkey-seed",
        r"(?<![A-Za-z0-9])S[ACNOUX][A-Z2-7]{56}(?![A-Za-z0-9])",
        "SA",
        "SC",
        "SN",
        "SO",
        "SU",
        "SX",
        genuine=_has_digit,
    ),
    _format("newrelic-key", r"(?<![A-Za-z0-9])[A-Za-z0-9]{36}NRAL(?![A-Za-z0-9])", "NRAL"),
    _format("nuget-key", r"(?<![A-Za-z0-9])oy2[a-z0-9]{43}(?![A-Za-z0-9])", "oy2"),
    _format("cratesio-token", r"(?<![A-Za-z0-9])cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", "cio", genuine=_has_digit),
    _format("braintree-token", r"access_token\$(?:production|sandbox)\$\w+\$\w+", "access_token$"),
    _format("docker-swarm-token", r"SWMTKN-1-[\w-]{40,}+", "SWMTKN-1-"),
    _format("grafana-key", r"eyJrIjoi[A-Za-z0-9_-]{50,}+={0,2}", "eyJrIjoi"),
    _format("ntlm-token", r"TlRMTVNTUAA[A-Za-z0-9+/]{20,}+={0,2}", "TlRMTVNTUAA"),
    _format("mapbox-token", r"(?<![A-Za-z0-9])[pst]k\.eyJ[\w-]{20,}+\.[\w-]{10,}+", "k.eyJ"),
    _format("plaid-token", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}", "access-"),
    _format("hubspot-token", r"(?<![A-Za-z0-9])pat-(?:na|eu|ap)\d-[0-9a-f-]{36}", "pat-"),
    _format(
        "api-key",
        rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, _VENDORS))})[\w-][\w.-]{{19,}}+",
        *_VENDORS,
        genuine=_looks_random,
    ),
    # The common format of recent vendors: a short word, and a long run of letters in both cases and digits.
    _format("api-key", r"[_-][A-Za-z0-9]{30,}+(?![+/])", "_", "-", genuine=_mixes_letters, least=_LONG_WORD),
)


# Values: where they start and end, how much they look like secrets, and placeholders

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
_PLAIN_WORD: Final = r"[^\W\d_]++(?:['\u2019-][^\W\d_]++)*+"
_PLAIN: Final = re.compile(rf"{_PLAIN_WORD}|\d{{1,3}}")
_PROSE_AFTER: Final = re.compile(rf",?(?:[ \t]+\(?{_PLAIN_WORD}(?![\w:='\u2019-])[,.;!?)]*+){{2}}")
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
