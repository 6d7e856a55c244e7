"""Find secrets in text and metadata and put a marker in their place.

Three layers: formats that a vendor fixed (detect-secrets' expressions and newer ones), credentials that a
position gives away (PEM blocks, URLs, headers), and values given to a name such as `password`. A rule runs
only when a plain substring wakes it, and every rule is linear in its input.

Left out of detect-secrets: the entropy and IP plugins (hashes, ULIDs and addresses are no secrets), Keyword
and BasicAuth, which the rules here widen, and PrivateKey, which sees the header only. JWT, OpenAI, npm,
Cloudant and the IBM plugins backtrack quadratically on hostile text, so their formats are restated here.
"""

import base64
import importlib
import re
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, NamedTuple

_MAX_PASSES: Final = 8  # a second pass settles what the first one uncovered; more is never seen in practice
_ALNUM: Final = string.ascii_letters + string.digits
_MARKER: Final = r"\[REDACTED:[a-z0-9-]+\]"
_NOTHING: Final = re.compile(rf"(?:{_MARKER}|[\W_])*+")  # markers and punctuation only
_CUT_MARKER: Final = re.compile(r"\[REDACTED:[a-z0-9-]+\Z")
_IDENTIFIER: Final = re.compile(  # a hash, a ULID or a UUID
    r"[0-9a-f]{16,}|[0-9A-F]{16,}|[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)


@dataclass(frozen=True)
class Redaction:
    """A text without its secrets, and the kinds that were taken out, sorted."""

    text: str
    kinds: tuple[str, ...]


class _Found(NamedTuple):
    start: int
    end: int
    kind: str


_Finder = Callable[[str], Iterator[_Found]]
# Whether a match is real, given the letters and digits glued to its left, and the whole token.
_Genuine = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class _Rule:
    triggers: tuple[str, ...]
    find: _Finder
    folds_case: bool = False


# --- Formats that a vendor fixed ------------------------------------------------------------------------


def _always(_head: str, _token: str) -> bool:
    return True


def _has_digit(_head: str, token: str) -> bool:
    return any(letter in string.digits for letter in token)


def _looks_random(_head: str, token: str) -> bool:
    return any(_has_digit("", run) for run in re.findall(r"[A-Za-z0-9]{10,}", token))


def _stands_alone(head: str, _token: str) -> bool:
    return not head


def _not_an_identifier(head: str, token: str) -> bool:
    return not _IDENTIFIER.fullmatch((head + token).rpartition(":")[2])


def _find_tokens(pattern: re.Pattern[str], group: int, kind: str, genuine: _Genuine, text: str) -> Iterator[_Found]:
    for match in pattern.finditer(text):
        token = match[group].strip()
        start = match.start(group) + match[group].index(token)
        # Stretched to where the token ends: a format that grew must not leave its tail behind.
        ahead = text[start + len(token) : start + len(token) + 1024]
        token += ahead[: len(ahead) - len(ahead.lstrip(_ALNUM + "_-"))]
        behind = text[max(0, start - 64) : start]
        if genuine(behind[len(behind.rstrip(_ALNUM)) :], token):
            yield _Found(start, start + len(token), kind)


@cache
def _denylist(plugin: str) -> tuple[re.Pattern[str], ...]:
    # detect-secrets imports an HTTP client: the first text that needs a plugin pays for it, not every start.
    module, _, name = plugin.partition(".")
    return tuple(getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name).denylist)


def _plugin(kind: str, plugin: str, *triggers: str, number: int | None = None, genuine: _Genuine = _always) -> _Rule:
    def find(text: str) -> Iterator[_Found]:
        patterns = _denylist(plugin)
        for pattern in patterns if number is None else patterns[number : number + 1]:
            yield from _find_tokens(pattern, 0 if number is None else pattern.groups, kind, genuine, text)

    return _Rule(triggers, find, folds_case=all(trigger.islower() for trigger in triggers))


def _format(kind: str, expression: str, *triggers: str, genuine: _Genuine = _always) -> _Rule:
    return _Rule(triggers, partial(_find_tokens, re.compile(expression), 0, kind, genuine))


_VENDOR_PREFIXES: Final = """
    dop_v1_ doo_v1_ shpat_ shpca_ shppa_ shpss_ lin_api_ dapi hvs. hvb. sbp_ PMAK- gsk_ xai- r8_ pplx- NRAK- glsa_
    glc_ pscale_tkn_ pscale_pw_ figd_ ntn_ tskey- dckr_pat_ ATATT3 ya29. GOCSPX- whsec_ dp.pt. api_org_ xapp-
"""
_VENDORS: Final = _VENDOR_PREFIXES.split()
_GITLAB: Final = (
    "glpat-",
    "gldt-",
    "glft-",
    "glsoat-",
    "glrt-",
    "glcbt-",
    "glimt-",
    "glptt-",
    "glagent-",
    "gloas-",
)
# fmt: off
_FORMATS: Final = (
    _plugin("aws-access-key", "aws.AWSKeyDetector", "AKIA", "ASIA", "ABIA", "ACCA", "A3T", number=0,
            genuine=_not_an_identifier),
    _plugin("aws-secret-key", "aws.AWSKeyDetector", "aws", number=1, genuine=_not_an_identifier),
    _plugin("artifactory-token", "artifactory.ArtifactoryDetector", "AKC", "AP", genuine=_has_digit),
    _plugin("connection-string", "azure_storage_key.AzureStorageKeyDetector", "AccountKey="),
    _plugin("discord-token", "discord.DiscordBotTokenDetector", "."),
    _plugin("github-token", "github_token.GitHubTokenDetector", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _plugin("gitlab-token", "gitlab_token.GitLabTokenDetector", "GR1348941", *_GITLAB),
    _plugin("mailchimp-key", "mailchimp.MailchimpDetector", "-us", genuine=_stands_alone),
    _plugin("pypi-token", "pypi_token.PypiTokenDetector", "pypi-Ag"),
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
    _format("gitlab-token", r"gl(?:pat|dt|ft|soat|rt|cbt|ptt|agent|oas)-[\w-]{20,}", *_GITLAB),
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


# --- Credentials that a position gives away -------------------------------------------------------------

# Base64 of `{"` and a letter, or of `{ "`. Possessive, with an optional tail, so that a run is read only once.
_JWT_HEADER: Final = re.compile(r"eyJ[h-z0-6][YZa-eIN]|eyAi")
_JWT: Final = re.compile(rf"(?:{_JWT_HEADER.pattern})[\w=-]{{7,}}+(?P<claims>\.[\w=-]{{6,}}+(?:\.[\w=+/.-]*+)?+)?+")
_PEM: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<body>[^-]*+(?:-(?!----)[^-]*+)*+(?=-----END )"
    r"|(?:(?:\s|\\[nrt]|[>|\"'+,])*+(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n]*+|[\w+/]{16,}+=*+))*+"
    r"(?:\s*+[\w+/]{1,15}=*+(?=\s*\Z))?)"
    r"(?:-----END [A-Z0-9 ]{0,48}(?:-----)?)?"
)
_PUTTY: Final = re.compile(r"Private-Lines:[ \t]*+\d++\s*+(?P<body>(?:[\w+/=]++(?:\r?\n|\Z))++)")
_KEY_MATERIAL: Final = re.compile(r"[\w+/]{16}")
_URL: Final = re.compile(
    r"(?P<scheme>\w{1,20})?://[^\s:/?#@\[\]\"'<>]{0,128}:"
    r"(?:(?P<short>(?:(?!://)[^\s/?#\"'<>]){1,256})@|(?!\d{1,5}(?:[/?#\s]|$))(?P<long>(?:(?!://)[^\s\"'<>]){1,256}?)@)"
    r"(?!sha\d+:)"
)
_CURL: Final = re.compile(
    r"\b(?:curl|wget|http)\b[^\n]{0,200}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$]{1,64}:"
    r"(?P<value>[^\s\"'/]{2,256})"
)
_CLIENT: Final = re.compile(
    r"\b(?:sshpass[ ]-p[ ]?|(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,120}?[ ]-p)"
    r"[\"']?(?P<value>[^\s\"'-]\S{2,255})"
)
_SCHEME: Final = re.compile(r"\b(?P<name>Bearer|Basic)[ \t]{1,8}(?P<value>[\w.~+/-]{8,}+=*+)", re.IGNORECASE)
_SIGNATURE: Final = re.compile(
    r"[?&](?:sig|signature|key|X-(?:Amz|Goog)-(?:Signature|Security-Token))=(?P<value>[^\s&#\"'<>\[\]]{16,})",
    re.IGNORECASE,
)
_DATABASES: Final = (
    "postgres",
    "mysql",
    "mariadb",
    "mongo",
    "redis",
    "amqp",
    "mssql",
    "oracle",
    "sqlserver",
    "clickhouse",
)


def _find_jwts(text: str) -> Iterator[_Found]:
    for match in _JWT.finditer(text):
        if not match["claims"]:
            continue
        for header in _JWT_HEADER.finditer(text, match.start(), match.start("claims")):
            if _decodes_to_text(text[header.start() : min(header.start() + 16, match.start("claims"))]):
                yield _Found(header.start(), match.end(), "jwt")
                break


def _decodes_to_text(encoded: str) -> bool:
    whole = encoded[: len(encoded) // 4 * 4].rstrip("=")
    decoded = base64.urlsafe_b64decode(whole + "=" * (-len(whole) % 4))
    return decoded.isascii() and decoded.decode().isprintable()


def _find_private_keys(text: str) -> Iterator[_Found]:
    for match in _PEM.finditer(text):
        if _KEY_MATERIAL.search(match["body"]):
            yield _Found(match.start(), match.end(), "private-key")
    for match in _PUTTY.finditer(text):
        yield _Found(*match.span("body"), "private-key")


def _find_url_passwords(text: str) -> Iterator[_Found]:
    for match in _URL.finditer(text):
        group = "short" if match["short"] else "long"
        if not _is_placeholder(match[group]):
            is_database = (match["scheme"] or "").lower().startswith(_DATABASES)
            yield _Found(*match.span(group), "connection-string" if is_database else "basic-auth")


def _find_client_passwords(text: str) -> Iterator[_Found]:
    for pattern, kind in ((_CURL, "basic-auth"), (_CLIENT, "password")):
        for match in pattern.finditer(text):
            if not _is_placeholder(match["value"]):
                yield _Found(*match.span("value"), kind)


def _find_schemes(text: str) -> Iterator[_Found]:
    for match in _SCHEME.finditer(text):
        value = match["value"]
        if match["name"].lower() == "bearer":
            if _looks_random("", value):
                yield _Found(*match.span("value"), "bearer-token")
        elif _encodes_user_and_password(value):
            yield _Found(*match.span("value"), "basic-auth")


def _encodes_user_and_password(value: str) -> bool:
    if len(value) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+=*", value):
        return False
    decoded = base64.b64decode(value + "==")
    return b":" in decoded and decoded.isascii()


def _find_signatures(text: str) -> Iterator[_Found]:
    for match in _SIGNATURE.finditer(text):
        if _has_digit("", match["value"]) and not _IDENTIFIER.fullmatch(match["value"]):
            yield _Found(*match.span("value"), "signature")


# --- Values given to a name -----------------------------------------------------------------------------

# fmt: off
_CORE: Final = re.compile("pass|pwd|pw|key|token|secret|auth|contrase|senha|пароль|密码")
_NAME: Final = r"""(?P<name>(?P<password>passw(?:or)?d|passphrase|passwort|pass|pwd?|contrase[nñ]a|senha|пароль|密码)
    | (?P<key>key(?:[_-]?base)?) | (?P<token>token) | (?P<secret>secret) | (?P<header>authorization) | (?P<auth>auth)
    )(?:[_-]?(?:[0-9]{1,3}|prod|production|dev|staging|live|test|value|old|new|base64|b64))?"""
_ASSIGNED: Final = re.compile(_NAME + r"""
    (?:\\{0,3}["'`]\]?)?\??[*_]{0,2}(?:[ ]\([^()\n]{1,30}\))?
    (?: (?P<assign>[ \t]{0,8}(?:=>|:=|=(?![=~>])
            |:[ \t]{0,4}[A-Za-z][\w.]{0,30}(?:\[\w{1,20}\])?(?:[ ]?\|[ ]?None)?[ \t]{0,4}=(?!=)
            |[:\uff1a](?!:|//))[ \t]{0,8}(?:[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,16})?)
      | (?P<tag>>)
      | (?P<verb>(?:[ \t]{1,4}(?:is|was|now|has|been|set|changed|reset|updated|to|equals)){1,6}[ \t:]{1,4}
            |[ \t](?:for|of|to|on|at)[ \t][^\n:=]{1,40}?(?::|[ \t](?:is|was))[ \t]{1,4}
            |[ \t]{0,8}\|[ \t]{1,8} | \((?=["']))
      | (?P<gap>,?[ \t]{1,4}) )
    \*{0,2}[ \t]{0,2}""", re.IGNORECASE | re.VERBOSE)
_WHOLE_NAME: Final = re.compile(_NAME + r"\Z", re.IGNORECASE | re.VERBOSE)
_KEY_OF: Final = re.compile(r"""(?:
    (?:secret[ _-]?(?:access[ _-]?)?
        |(?:private|priv|encryption|signing|master|auth|shared(?:[_-]?access)?|client|storage)[_-]?)
  | (?P<api>(?:api|access)[ _-]?|(?:account|service|db|database|subscription)[_-]?)
  | (?<![a-z])(?:softlayer|sl|cloudant|clou|cl|ibm|iam|cos)(?:[_-]?(?:cloud|iam|hmac|api)){0,3}[_-]?
    )\Z""", re.IGNORECASE | re.VERBOSE)
_OTHER_TOKEN: Final = re.compile(
    r"(?:pad|eos|bos|unk|cls|sep|mask|special|next|page|continuation|stop|max|num|cancellation|sub|image)[_ -]?\Z"
    r"|(?:\A|\n)[ \t]*(?:\w+, )+\w*\Z",  # targets of an unpacking
    re.IGNORECASE)
_FLAG: Final = re.compile(r"""(?:\A|[\s"'`(\[=,])--?[\w-]*\Z""")
_BARE_LETTER: Final = rf"(?:{_MARKER}|" + r"""
    [^\s"'`<&,;\\] | <(?!/) | [&,;](?!\s|\Z|["']|[\w.-]{1,40}[ ]?[=:]) | \\(?![nrt"'\\]) )"""
_BARE_HEAD: Final = re.compile(_BARE_LETTER + "{1,200}+", re.VERBOSE)  # enough to judge by; rejection stays cheap
_BARE: Final = re.compile(_BARE_LETTER + "++", re.VERBOSE)
_QUOTED: Final = {quote: re.compile(rf"(?:[^{quote}\\\n]|\\.)*+") for quote in "\"'`"}
_ESCAPED: Final = re.compile(r"[^\"'`\\\n]*+")
_OPENING: Final = re.compile(r"""\\{0,3}["'`]""")
_AUTH_SCHEME: Final = re.compile(r"(bearer|basic|token|api-?key|digest|bot)[ \t]{1,4}", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"""
    <[^<>]{1,80}>?.* | \$[A-Z_][A-Z0-9_]* | \$[a-z_]+ | \$[({].* | \{[\w .:!{"'].* | %\(?\w+\)?[s%]? | \[[\w -]{1,40}\]?
  | [xX]{3,} | your[-_ ]?[\w -]* | example | placeholder | dummy | redacted | hidden | masked
  | [\w-]{0,12}(?:\.{3}|\u2026|\*{3,}|x{4,}) | [A-Za-z_][\w.]*\([^()]*\)
  | (?:vault|op|secret|env|file|arn|ssm|sops|keyring):.* | !\w+ | ENC\[.*
  | (?:/(?:run|etc|var|home|usr|opt|tmp|mnt|root|proc|dev)|~|\.\.?)/.* | [A-Za-z]:\\.*
  | (?:argon2(?:id|i|d)?|s?bcrypt|scrypt|pbkdf2|(?:hs|rs|es|ps)(?:256|384|512)|sha-?\d{1,3}|hmac|md5|ed25519|eddsa
      |rsa|aes|oauth ?[12]?|oidc|saml ?2?|jwt|jwe|base64|base32|hex|uuid[1-7]?|ulid|m?tls|utf-?8)(?:[-_/].*)?
  | v?\d+(?:\.\d+)+ | \d{4}-\d\d-\d\d.*
  | (?:[a-z]+[-_])*(?:pass|pw|passw(?:or)?d|pwd|token|secret|api[-_ ]?key|key|auth)s?
    """, re.IGNORECASE | re.VERBOSE | re.DOTALL)
_CODE: Final = re.compile(r"""
    [A-Za-z_][\w.:]*[(\[].* | [A-Z]\w*<.* | &?mut\b.* | [&*](?:str|string).* | \(.*
  | (?:self|this|cls|os|process|config|cfg|settings|env|args|opts|options|params|request|req|res|resp|response|ctx
      |context|user|data|app|state|session|secrets|vars|var|local|props|client|event|module|token|secret|auth|creds
      |credentials)\??\.[\w.?!]*
  | (?:[A-Za-z_.]*(?:[._]|(?<=[a-z])(?=[A-Z])))?
      (?i:password|passwd|pwd|pass|token|secret|key|auth|credentials?|value|header|env)s?(?:[)\]}][\[.,:;)\]}].*)?
    """, re.VERBOSE | re.DOTALL)
_WORD_LIST: Final = """
    none null nil undefined true false yes no on off n/a na tbd todo str string bytes int integer bool boolean
    number float any object text varchar char uuid optional required requires needs takes accepts expects missing
    invalid incorrect expired wrong empty unset set changed reset enabled disabled unknown revoked valid rejected
    refused denied accepted failed ok generated default here below above encrypted hashed stored rotated refreshed
    validated verified leaked unchanged see from in is are was the a an to for of not with by via and or if when at
    it this that we you be will can may must should has have still never always only use uses used auto automatic
    inherit include omit same-origin basic bearer oauth digest flag flags option options argument parameter field
    header value name type length policy file path await new lambda async function func self return secretstr sealed
    manual prompt stdin ask login system internal public read write
"""
# fmt: on
_WORDS: Final = frozenset(_WORD_LIST.split())
_WORD: Final = r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*"
_PLAIN: Final = re.compile(rf"{_WORD}|\d{{1,3}}")
_PROSE_AFTER: Final = re.compile(rf",?(?:[ \t]+\(?{_WORD}(?![\w:='\u2019-])[,.;!?)]*){{2}}")
_UNION_AFTER: Final = re.compile(r" \| (?:None|null|undefined|[A-Z])")
_FUNCTION_WORD: Final = re.compile(
    r"\b(?:must|should|is|are|be|the|an?|to|of|at|for|in|your|with|not|and|or|this|will|can|please)\b",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_QUANTITY: Final = re.compile(r"-?\d{1,5}(?:\.\d+)?(?:ms|s|m|h|d|k|kb|mb|%)?", re.IGNORECASE)
_ASCII_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_OTHER_KINDS: Final = (
    ("token", "token"),
    ("secret", "secret"),
    ("header", "authorization"),
    ("auth", "auth"),
)
_SHORT_PATH: Final = 32
_FEW_WORDS: Final = 2


def _is_placeholder(value: str) -> bool:
    return (
        len(value) <= 1 or value.lower() in _WORDS or bool(_NOTHING.fullmatch(value) or _PLACEHOLDER.fullmatch(value))
    )


def _is_harmless(value: str, after: str, *, quoted: bool, tight: bool, is_password: bool) -> bool:
    """Say whether a value is a placeholder, a word of prose or an expression in code."""
    core = value.rstrip("!?.,;:)]}>") if not quoted and value[:1] not in "<{[$" else value
    if _is_placeholder(core) or (not is_password and _QUANTITY.fullmatch(core)):
        return True
    if quoted:
        has_words = len(core.split()) > _FEW_WORDS and bool(_FUNCTION_WORD.search(core))
        return value[0] in " \t,)]};:" or (has_words and not tight)
    if _CODE.fullmatch(value) or _PLACEHOLDER.fullmatch(value + after[:3]):
        return True
    if value.isidentifier() and _UNION_AFTER.match(after):
        return True
    return not tight and bool(_PLAIN.fullmatch(core) and value[-1] not in "!?" and _PROSE_AFTER.match(after))


def _is_strong(value: str, least: int) -> bool:
    """Say whether a value looks like a secret by itself, where its position alone proves little."""
    has_letter = any(letter.isalpha() for letter in value)
    has_other = any(letter in "0123456789!#$%^&*+=~" for letter in value)
    is_place = "://" in value or (len(value) < _SHORT_PATH and "/" in value) or _EMAIL.fullmatch(value[:100])
    return len(value) >= least and has_letter and has_other and not is_place


def _kind_of_name(before: str, name: re.Match[str]) -> str | None:
    """Answer the kind of secret that a name announces, with what stands before it, or None."""
    if _OTHER_TOKEN.search(before):
        return None
    if name["key"]:
        owner = _KEY_OF.search(before)
        return ("api-key" if owner["api"] else "secret-key") if owner else None
    if name["password"]:
        is_short = name["password"].lower() in ("pass", "pw")
        return None if is_short and before[-1:] not in ("_", "-") else "password"
    return next(kind for group, kind in _OTHER_KINDS if name[group])


def _is_given(text: str, name: re.Match[str], start: int, end: int, *, quoted: bool) -> bool:
    """Say whether the way a value follows its name makes it that name's value."""
    value = text[start:end]
    if name["tag"]:
        return text.startswith("</", end)
    if name["assign"]:
        return not name["auth"] or _is_strong(value, 8)
    if name["verb"]:
        return _is_strong(value, 6)
    if _FLAG.search(text[max(0, name.start() - 40) : name.start()]):
        return not value.startswith("-") and (quoted or "," not in name["gap"])
    least = 6 if name["password"] or quoted else 16
    return "," not in name["gap"] and _is_strong(value, least) and not _IDENTIFIER.fullmatch(value)


def _end_of_value(text: str, start: int, body: re.Pattern[str], *, quoted: bool) -> int:
    match = body.match(text, start)
    if match is None or quoted:
        return match.end() if match else start
    kept = match[0].rstrip(".,;:)]}>*")
    return start + len(kept) + bool(_CUT_MARKER.search(kept))


def _value_of(text: str, name: re.Match[str]) -> _Found | None:
    start = name.end()
    opening = _OPENING.match(text, start)
    body, quoted = _BARE_HEAD, opening is not None
    if opening:
        start, body = opening.end(), _QUOTED.get(opening[0], _ESCAPED)
    scheme = _AUTH_SCHEME.match(text, start)
    start = scheme.end() if scheme else start
    end = _end_of_value(text, start, body, quoted=quoted)
    if start == end or not _is_given(text, name, start, end, quoted=quoted):
        return None
    kind = _kind_of_name(text[max(0, name.start() - 32) : name.start()], name)
    tight = "=" in (name["assign"] or "") and not name["assign"][-1].isspace()
    value, after, is_password = text[start:end], text[end : end + 200], kind == "password"
    if kind is None or _is_harmless(value, after, quoted=quoted, tight=tight, is_password=is_password):
        return None
    if scheme:
        kind = {"basic": "basic-auth", "bearer": "bearer-token"}.get(scheme[1].lower(), kind)
    return _Found(start, end if quoted else _end_of_value(text, start, _BARE, quoted=False), kind)


def _find_assigned(text: str) -> Iterator[_Found]:
    # Twenty times faster than ignoring case; but a few capitals grow when lowered, and places must agree.
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate(_ASCII_LOWER)
    position = 0
    for core in _CORE.finditer(lowered):
        name = _ASSIGNED.match(text, core.start()) if core.start() >= position else None
        found = _value_of(text, name) if name else None
        if found:
            yield found
            position = found.end


# --- The whole ------------------------------------------------------------------------------------------

_RULES: Final = (
    _Rule(("PRIVATE KEY", "Private-Lines"), _find_private_keys),
    *_FORMATS,
    _Rule(("eyJ", "eyA"), _find_jwts),
    _Rule(("://",), _find_url_passwords),
    _Rule(("curl", "wget", "http ", "sshpass", "mysql", "mariadb"), _find_client_passwords),
    _Rule(("bearer", "basic"), _find_schemes, folds_case=True),
    _Rule(("sig=", "signature=", "key=", "security-token="), _find_signatures, folds_case=True),
    _Rule(
        ("pass", "pw", "key", "token", "secret", "auth", "contrase", "senha", "пароль", "密码"),
        _find_assigned,
        folds_case=True,
    ),
)


_EXACT: Final = tuple((t, n) for n, rule in enumerate(_RULES) if not rule.folds_case for t in rule.triggers)
_FOLDED: Final = tuple((t, n) for n, rule in enumerate(_RULES) if rule.folds_case for t in rule.triggers)


def _woken_by(text: str) -> list[_Rule]:
    lowered = text.lower()
    numbers = {number for trigger, number in _EXACT if trigger in text}
    numbers |= {number for trigger, number in _FOLDED if trigger in lowered}
    return [_RULES[number] for number in sorted(numbers)]


def _replace(text: str, found: Iterator[_Found], kinds: set[str]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, kind in found:
        if start >= position and not _NOTHING.fullmatch(text, start, end):
            pieces += (text[position:start], f"[REDACTED:{kind}]")
            position = end
            kinds.add(kind)
    return "".join((*pieces, text[position:])) if pieces else text


def redact(text: str) -> Redaction:
    """Replace every secret by `[REDACTED:<kind>]`; redacting the result again changes nothing."""
    kinds: set[str] = set()
    for _ in range(_MAX_PASSES):
        before = text
        for rule in _woken_by(text):
            text = _replace(text, rule.find(text), kinds)
        if text == before:
            break
    return Redaction(text, tuple(sorted(kinds)))


def preload() -> None:
    """Load every detect-secrets plugin now, so that the first text does not wait for them."""
    for rule in _FORMATS:
        for _ in rule.find(""):
            pass


def redact_json(value: Any) -> tuple[Any, tuple[str, ...]]:
    """Redact strings and keys of a JSON-like value, and whatever stands under a key that names a secret.

    Answers a copy (tuples become lists) and the sorted kinds. Nesting may be of any depth.
    """
    kinds: set[str] = set()
    root: list[Any] = [value]
    waiting: list[tuple[Any, Any, Any, str | None]] = [(root, 0, value, None)]
    while waiting:
        holder, place, item, kind = waiting.pop()
        if isinstance(item, Mapping):
            copy: Any = {}
            for key, child in item.items():
                clean = _free_key(copy, key, kinds)
                copy[clean] = None
                waiting.append((copy, clean, child, kind or _kind_of_key(key)))
        elif isinstance(item, list | tuple):
            copy = [None] * len(item)
            waiting.extend((copy, number, child, kind) for number, child in enumerate(item))
        else:
            copy = _redact_scalar(item, kind, kinds)
        holder[place] = copy
    return root[0], tuple(sorted(kinds))


def _redact_scalar(item: Any, kind: str | None, kinds: set[str]) -> Any:
    is_text = isinstance(item, str)
    is_number = isinstance(item, int | float) and not isinstance(item, bool)
    is_secret = is_text and not _is_harmless(item, "", quoted=True, tight=True, is_password=True) if item else False
    if kind and (is_secret or is_number):
        kinds.add(kind)
        return f"[REDACTED:{kind}]"
    if not is_text:
        return item
    redaction = redact(item)
    kinds.update(redaction.kinds)
    return redaction.text


def _kind_of_key(key: Any) -> str | None:
    if not isinstance(key, str):
        return None
    for core in _CORE.finditer(key.translate(_ASCII_LOWER)):
        name = _WHOLE_NAME.match(key, core.start())
        if name and not name["auth"]:
            return _kind_of_name(key[: name.start()][-32:], name)
    return None


def _free_key(taken: Mapping[Any, Any], key: Any, kinds: set[str]) -> Any:
    if not isinstance(key, str):
        return key
    redaction = redact(key)
    kinds.update(redaction.kinds)
    # Two secrets used as keys may turn into one marker; neither entry is lost for it.
    clean, number = redaction.text, 2
    while clean in taken:
        clean, number = f"{redaction.text}#{number}", number + 1
    return clean
