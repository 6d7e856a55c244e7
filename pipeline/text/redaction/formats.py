"""What a secret found in a text is, and the formats that a vendor fixed."""

import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from pipeline.text.lexicon import load_lexicon

MARKER: Final = r"\[REDACTED:[a-z0-9-]+\]"
NOTHING: Final = re.compile(rf"(?:{MARKER}|[\W_])*+")  # markers and punctuation only
IDENTIFIER: Final = re.compile(  # a hash, a ULID or a UUID
    r"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)


class FoundSecret(NamedTuple):
    """Where a secret stands in a text, and its kind."""

    start: int
    end: int
    kind: str


Finder = Callable[[str], Iterator[FoundSecret]]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A finder and the substrings, lower case where case is folded, of which one must wake it."""

    triggers: tuple[str, ...]
    find: Finder
    folds_case: bool = False


def has_digit(token: str) -> bool:
    """Say whether a token holds a digit."""
    return any(letter in string.digits for letter in token)


def looks_random(token: str) -> bool:
    """Say whether a run of letters and digits, long enough to be no word, holds a digit."""
    return any(has_digit(run) for run in re.findall(r"[A-Za-z0-9]{10,}", token))


_ALNUM: Final = string.ascii_letters + string.digits
# Whether a match is real, given the letters and digits glued to its left, and the whole token.
_Genuine = Callable[[str, str], bool]


def _always(_head: str, _token: str) -> bool:
    return True


def _has_digit(_head: str, token: str) -> bool:
    return has_digit(token)


def _looks_random(_head: str, token: str) -> bool:
    return looks_random(token)


def _stands_alone(head: str, _token: str) -> bool:
    return not head


def _not_an_identifier(head: str, token: str) -> bool:
    return not IDENTIFIER.fullmatch((head + token).rpartition(":")[2])


def _find_tokens(pattern: re.Pattern[str], kind: str, genuine: _Genuine, text: str) -> Iterator[FoundSecret]:
    for match in pattern.finditer(text):
        # Where something must stand before a token, the token is a group.
        token, start = match[pattern.groups], match.start(pattern.groups)
        # Stretched to where the token ends: a format that grew must not leave its tail behind.
        ahead = text[start + len(token) : start + len(token) + 1024]
        token += ahead[: len(ahead) - len(ahead.lstrip(_ALNUM + "_-"))]
        behind = text[max(0, start - 64) : start]
        if genuine(behind[len(behind.rstrip(_ALNUM)) :], token):
            yield FoundSecret(start, start + len(token), kind)


def _format(
    kind: str, expression: str, *triggers: str, genuine: _Genuine = _always, flags: re.RegexFlag = re.ASCII
) -> SecretRule:
    find = partial(_find_tokens, re.compile(expression, flags), kind, genuine)
    return SecretRule(triggers, find, folds_case=bool(flags & re.IGNORECASE))


_WORDS: Final = load_lexicon("redaction")
_VENDORS: Final = _WORDS.words("vendor_prefixes")
_GITLAB: Final = _WORDS.words("gitlab_prefixes")
# fmt: off
FORMATS: Final = (
    _format("aws-access-key", r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
            "AKIA", "ASIA", "ABIA", "ACCA", "A3T", genuine=_not_an_identifier),
    _format("aws-secret-key", r"aws.{0,20}?(?:key|pwd|pw|password|pass|token).{0,20}?['\"]([0-9a-z/+]{40})['\"]",
            "aws", genuine=_not_an_identifier, flags=re.IGNORECASE),
    _format("artifactory-token", r"(?<![^\s=:\"])(?:AKC[a-zA-Z0-9]{10,}|AP[\dA-F][a-zA-Z0-9]{8,})(?![^\s\"])",
            "AKC", "AP", genuine=_has_digit, flags=re.UNICODE),
    _format("connection-string", r"AccountKey=[a-zA-Z0-9+/=\\]{88}", "AccountKey="),
    _format("discord-token", r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}", "."),
    _format("mailchimp-key", r"[0-9a-z]{32}-us[0-9]{1,2}", "-us", genuine=_stands_alone),
    _format("sendgrid-key", r"SG\.[\w-]{22}\.[\w-]{43}", "SG."),
    _format("slack-token", r"xox[abposr]-(?:\d+-)+[a-z0-9]+|https://hooks\.slack\.com/services/T\w+/B\w+/\w+",
            "xox", "hooks.slack.com", flags=re.ASCII | re.IGNORECASE),
    _format("softlayer-key", r"https?://api\.softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{64})",
            "api.softlayer.com", flags=re.IGNORECASE),
    _format("square-secret", r"sq0csp-[\w\\-]{43}", "sq0csp-"),
    _format("stripe-key", r"[rs]k_live_[0-9a-zA-Z]{24}", "sk_live_", "rk_live_"),
    _format("telegram-token", r"\d{8,10}:[\w-]{35}", ":", genuine=_not_an_identifier),
    _format("twilio-key", r"(?:AC|SK)[a-z0-9]{32}", "AC", "SK"),
    _format("anthropic-key", r"sk-ant-[\w-]{16,}", "sk-ant-"),
    _format("openai-key", r"sk-(?:proj|svcacct|admin|or)-[\w-]{16,}|(?<![A-Za-z0-9_-])sk-[A-Za-z0-9]{20,}"
                          r"|sk-[\w-]{0,120}?T3BlbkFJ[\w-]*", "sk-"),
    _format("google-api-key", r"AIza[\w-]{30,}", "AIza"),
    _format("github-token", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
            "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    _format("gitlab-token", rf"(?:{'|'.join(_GITLAB)})[\w-]{{20,}}", *_GITLAB),
    _format("slack-token", r"xox[a-z]-(?=[\w-]{0,40}\d)[\w-]{10,}", "xox"),
    _format("stripe-key", r"(?<![a-z])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}", "k_live_", "k_test_"),
    _format("npm-token", r"npm_[A-Za-z0-9]{30,}", "npm_"),
    _format("pypi-token", r"pypi-Ag[\w-]{40,}", "pypi-Ag"),
    _format("huggingface-token", r"hf_[A-Za-z0-9]{30,}", "hf_"),
    _format("age-key", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{20,}", "AGE-SECRET-KEY-"),
    _format("api-key", rf"(?<![a-z])(?:{'|'.join(map(re.escape, _VENDORS))})[\w-][\w.-]{{23,}}", *_VENDORS,
            genuine=_looks_random),
)
# fmt: on
