import re
from typing import Final

from pipeline.text.redaction.rules import NOTHING

# fmt: off
_PLACEHOLDER: Final = re.compile(r"""
    <[A-Za-z][^<>]{0,80}>?.* | \$[A-Z_][A-Z0-9_]* | \$[a-z_]+ | \$[({].* | \{[\w .:!{"'].* | \[[\w -]{1,40}\]?
  | %s | %\(\w+\)s? | %\w+% | x{3,} | your[-_ ][\w -]* | example | placeholder | dummy | redacted | hidden | masked
  | [\w-]{0,12}(?:\.{3}|\u2026|\*{3,}|x{4,}) | [A-Za-z_][\w.]*\([^()]*\)
  | (?:vault|op|secret|env|file|arn|ssm|sops|keyring):.*
  | !(?:vault|secret|ref|sub|getatt|env|env_var|include)\b.* | ENC\[.*
  | (?:/(?:run|etc|var|home|usr|opt|tmp|mnt|root|proc|dev)|~|\.\.?)/.* | [A-Za-z]:\\.*
  | (?:argon2(?:id|i|d)?|s?bcrypt|scrypt|pbkdf2|(?:hs|rs|es|ps)(?:256|384|512)|sha-?\d{1,3}|hmac|md5|ed25519|eddsa
      |rsa|aes|oauth ?[12]?|oidc|saml ?2?|jwt|jwe|base64|base32|hex|uuid[1-7]?|ulid|m?tls|utf-?8)(?:[-_/].*)?
  | v?\d+(?:\.\d+)+ | \d{4}-\d\d-\d\d.*
  | (?:[a-z]+[-_])*(?:pass|pw|passw(?:or)?d|pwd|token|secret|api[-_ ]?key|key|auth)s?
    """, re.IGNORECASE | re.VERBOSE | re.DOTALL)
_CODE: Final = re.compile(r"""
    [A-Za-z_][\w.:]*(?:\(|\[(?!REDACTED:)).* | [A-Z]\w*<.* | &?mut\b.* | [&*](?:str|string).* | \(.*
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
_QUANTITY: Final = re.compile(r"-?\d{1,5}(?:\.\d+)?(?:ms|s|m|h|d|k|kb|mb|%)?", re.IGNORECASE)
_FEW_WORDS: Final = 2


def is_placeholder(value: str) -> bool:
    """Say whether a value stands for a secret without being one."""
    return len(value) <= 1 or value.lower() in _WORDS or bool(NOTHING.fullmatch(value) or _PLACEHOLDER.fullmatch(value))


def is_harmless(value: str, after: str, *, quoted: bool, tight: bool, is_password: bool) -> bool:
    """Say whether a value is a placeholder, a word of prose or an expression in code."""
    core = value.rstrip("!?.,;:)]}>") if not quoted and value[:1] not in "<{[$" else value
    if is_placeholder(core) or (not is_password and _QUANTITY.fullmatch(core)):
        return True
    if quoted:
        has_words = len(core.split()) > _FEW_WORDS and bool(_FUNCTION_WORD.search(core))
        return value[0] in " \t,)]};:" or (has_words and not tight)
    if _CODE.fullmatch(value) or _PLACEHOLDER.fullmatch(value + after[:3]):
        return True
    if value.isidentifier() and _UNION_AFTER.match(after):
        return True
    return not tight and bool(_PLAIN.fullmatch(core) and value[-1] not in "!?" and _PROSE_AFTER.match(after))
