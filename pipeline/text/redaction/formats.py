import importlib
import re
import string
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from pipeline.text.redaction.rules import IDENTIFIER, Found, Rule, has_digit, looks_random

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


def _find_tokens(pattern: re.Pattern[str], group: int, kind: str, genuine: _Genuine, text: str) -> Iterator[Found]:
    for match in pattern.finditer(text):
        token = match[group].lstrip(' \t\r\n\f\v=":').rstrip(' \t\r\n\f\v"')
        start = match.start(group) + match[group].index(token)
        # Stretched to where the token ends: a format that grew must not leave its tail behind.
        ahead = text[start + len(token) : start + len(token) + 1024]
        token += ahead[: len(ahead) - len(ahead.lstrip(_ALNUM + "_-"))]
        behind = text[max(0, start - 64) : start]
        if genuine(behind[len(behind.rstrip(_ALNUM)) :], token):
            yield Found(start, start + len(token), kind)


@cache
def _denylist(plugin: str) -> tuple[re.Pattern[str], ...]:
    # detect-secrets imports an HTTP client: `preload` or the first text that needs a plugin pays, not the import.
    module, _, name = plugin.partition(".")
    return tuple(getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name).denylist)


def _plugin(kind: str, plugin: str, *triggers: str, number: int | None = None, genuine: _Genuine = _always) -> Rule:
    def find(text: str) -> Iterator[Found]:
        patterns = _denylist(plugin)
        for pattern in patterns if number is None else patterns[number : number + 1]:
            yield from _find_tokens(pattern, 0 if number is None else pattern.groups, kind, genuine, text)

    return Rule(triggers, find, folds_case=all(trigger.islower() for trigger in triggers))


def _format(kind: str, expression: str, *triggers: str, genuine: _Genuine = _always) -> Rule:
    return Rule(triggers, partial(_find_tokens, re.compile(expression, re.ASCII), 0, kind, genuine))


_VENDOR_PREFIXES: Final = """
    dop_v1_ doo_v1_ shpat_ shpca_ shppa_ shpss_ lin_api_ dapi hvs. hvb. sbp_ PMAK- gsk_ xai- r8_ pplx- NRAK- glsa_
    glc_ pscale_tkn_ pscale_pw_ figd_ ntn_ tskey- dckr_pat_ ATATT3 ya29. GOCSPX- whsec_ dp.pt. api_org_ xapp-
"""
_VENDORS: Final = _VENDOR_PREFIXES.split()
# fmt: off
FORMATS: Final = (
    _plugin("aws-access-key", "aws.AWSKeyDetector", "AKIA", "ASIA", "ABIA", "ACCA", "A3T", number=0,
            genuine=_not_an_identifier),
    _plugin("aws-secret-key", "aws.AWSKeyDetector", "aws", number=1, genuine=_not_an_identifier),
    _plugin("artifactory-token", "artifactory.ArtifactoryDetector", "AKC", "AP", genuine=_has_digit),
    _plugin("connection-string", "azure_storage_key.AzureStorageKeyDetector", "AccountKey="),
    _plugin("discord-token", "discord.DiscordBotTokenDetector", "."),
    _plugin("mailchimp-key", "mailchimp.MailchimpDetector", "-us", genuine=_stands_alone),
    _plugin("sendgrid-key", "sendgrid.SendGridDetector", "SG."),
    _plugin("slack-token", "slack.SlackDetector", "xox", "hooks.slack.com"),
    _plugin("softlayer-key", "softlayer.SoftlayerDetector", "api.softlayer.com", number=1),
    _plugin("square-secret", "square_oauth.SquareOAuthDetector", "sq0csp-"),
    _plugin("stripe-key", "stripe.StripeDetector", "sk_live_", "rk_live_"),
    _plugin("telegram-token", "telegram_token.TelegramBotTokenDetector", ":", genuine=_not_an_identifier),
    _plugin("twilio-key", "twilio.TwilioKeyDetector", "AC", "SK"),
    _format("anthropic-key", r"sk-ant-[\w-]{16,}", "sk-ant-"),
    _format("openai-key", r"sk-(?:proj|svcacct|admin|or)-[\w-]{16,}|(?<![A-Za-z0-9_-])sk-[A-Za-z0-9]{20,}"
                          r"|sk-[\w-]{0,120}?T3BlbkFJ[\w-]*", "sk-"),
    _format("google-api-key", r"AIza[\w-]{30,}", "AIza"),
    _format("github-token", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
            "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    _format("gitlab-token", r"(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)[\w-]{20,}",
            *("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glimt-", "glptt-", "glagent-", "gloas-"),
            "GR1348941"),
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


def preload() -> None:
    """Load every detect-secrets plugin now, so that the first text does not wait for them."""
    for rule in FORMATS:
        for _ in rule.find(""):
            pass
