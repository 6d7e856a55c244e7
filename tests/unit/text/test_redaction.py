import base64
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipeline.text.redaction import Redaction, redact, redact_json
from tests.fakes.properties import examples

# Samples are put together here so that no scanner takes this file for a leak.
LOWER = "q7w2e9r4t1y6u3i8o5p0a7s2d9f4g1h6j3k8l5z0"
MIXED = "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1fG3hJ5kL7"
HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
KEY_BODY = "\n".join([("MIIEpAIBAAKCAQEA" + MIXED)[:64]] * 3)


def pem(label: str, body: str = KEY_BODY, *, end: bool = True) -> str:
    whole = f"-----BEGIN {label}" + "PRIVATE KEY-----\n" + body + "\n"
    return whole + f"-----END {label}" + "PRIVATE KEY-----" if end else whole


# (text with {} where the secret goes, the secret, the kind)
POSITIVES = [
    ("the key {} leaked", AWS_ID, "aws-access-key"),
    ("key={}", "ASIA" + "Y34FZKBOKMUTVV7A", "aws-access-key"),
    ("glued{}glued", AWS_ID, "aws-access-key"),
    ('aws_creds_key = ["{}"]', AWS_SECRET, "aws-secret-key"),
    ("AWS_SECRET_ACCESS_KEY={}", AWS_SECRET, "secret-key"),
    ("artifactory AKC{} ok", MIXED[:30], "artifactory-token"),
    ("AccountName=x;AccountKey={};EndpointSuffix=y", MIXED[:43] + MIXED[:43] + "==", "connection-string"),
    ("bot {}", "M" + MIXED[:23] + ".X1y2Z3." + MIXED[:27], "discord-token"),
    ("clone with {}", "ghp" + "_" + MIXED[:36], "github-token"),
    ("clone with {}.", "gho" + "_" + MIXED[:36], "github-token"),
    ("use {}", "github_pat" + "_11" + MIXED[:20] + "_" + MIXED, "github-token"),
    ("ci {}", "glpat" + "-" + MIXED[:20], "gitlab-token"),
    ("runner {}", "GR1348941" + MIXED[:20], "gitlab-token"),
    ("env=AKC{} ok", MIXED[:30], "artifactory-token"),
    ("https://api.softlayer.com/soap/v3.1/{}", HEX, "softlayer-key"),
    ("mail {}", LOWER[:32] + "-us12", "mailchimp-key"),
    ("//registry.npmjs.org/:_authToken={}", "npm" + "_" + MIXED[:36], "npm-token"),
    ("//registry.example.org/:_authToken={}", "0f0e0d0c-1111-4222-8333-444455556666", "token"),
    ("twine -p {}", "pypi" + "-AgEIcHlwaS5vcmc" + MIXED + MIXED, "pypi-token"),
    ("{}", "SG" + "." + MIXED[:22] + "." + MIXED[:43], "sendgrid-key"),
    ("slack {}", "xoxb" + "-123456789012-123456789012-" + MIXED[:24], "slack-token"),
    ("slack {}", "xapp" + "-1-A012345-6789-" + HEX, "api-key"),
    ("post to {}", "https://hooks.slack.com/services/" + "T0123/B4567/" + MIXED[:24], "slack-token"),
    ("square {}", "sq0csp" + "-" + MIXED[:43], "square-secret"),
    ("stripe {}", "sk" + "_live_" + MIXED[:24], "stripe-key"),
    ("stripe {}", "rk" + "_test_" + MIXED[:24], "stripe-key"),
    ("bot {}", "123456789" + ":AA" + MIXED[:33], "telegram-token"),
    ("twilio {}", "SK" + HEX[:32], "twilio-key"),
    ("claude {}", "sk-ant" + "-api03-" + MIXED + "-" + MIXED[:20], "anthropic-key"),
    ("gpt {}", "sk-proj" + "-" + MIXED, "openai-key"),
    ("gpt {}", "sk" + "-" + MIXED[:48], "openai-key"),
    ("maps {}", "AIza" + "Sy" + MIXED[:33], "google-api-key"),
    ("hub {}", "hf" + "_" + MIXED[:34], "huggingface-token"),
    ("age {}", "AGE-SECRET-KEY" + "-1" + LOWER.upper() + "QQQQQ", "age-key"),
    ("vault {}", "hvs" + "." + MIXED[:24], "api-key"),
    ("digital ocean {}", "dop_v1" + "_" + HEX, "api-key"),
    ("session {}", JWT, "jwt"),
    ("{} next", pem("RSA "), "private-key"),
    ("{} next", pem(""), "private-key"),
    ("{} next", pem("OPENSSH "), "private-key"),
    ("{}", pem("EC ", end=False), "private-key"),
    ('"key": "{}"', pem("RSA ").replace("\n", "\\n"), "private-key"),
    ("Private-Lines: 2\n{}Private-MAC: 00", MIXED + "\n" + MIXED[:20] + "==\n", "private-key"),
    ("https://deploy:{}@example.com/x", "hunter2", "basic-auth"),
    ("postgres://app:{}@db:5432/main", "p$ss(w0rd)", "connection-string"),
    ("redis://:{}@cache:6379/0", "s3cr3tpw", "connection-string"),
    ("mysql://root:{}@db/x", "p@ss-with-at", "connection-string"),
    ("Authorization: Bearer {}", MIXED[:40], "bearer-token"),
    ('{{"Authorization": "Bearer {}"}}', "abcdefgh", "bearer-token"),
    ("-H 'authorization: basic {}'", base64.b64encode(b"user:hunter2").decode(), "basic-auth"),
    ("sent Bearer {} twice", MIXED[:40], "bearer-token"),
    ("sent Basic {} twice", base64.b64encode(b"user:hunter2").decode(), "basic-auth"),
    ("Authorization: {}", MIXED[:30], "authorization"),
    ("X-Api-Key: {}", LOWER[:20], "api-key"),
    ("curl -u admin:{} https://example.com", "hunter2", "basic-auth"),
    ("sshpass -p {} ssh host", "hunter2", "password"),
    ("mysql -u root -p{} db", "hunter2", "password"),
    ("password={}", "hunter2xyz", "password"),
    ("DB_PASSWORD={}", "correct,horse;battery&staple", "password"),
    ("export PGPASSWORD='{}'", "it is long", "password"),
    ("password: {}", "hunter2", "password"),
    ("password: {}", "swordfish", "password"),
    ("  passwd: {}  # rotate", "hunter2", "password"),
    ('"password": "{}"', "correct horse battery", "password"),
    ('{{\\"password\\": \\"{}\\", \\"user\\": 1}}', "hunter2", "password"),
    ("pwd='{}'", "hunter2", "password"),
    ("--password {} --verbose", "hunter2", "password"),
    ("--password={}", "swordfish", "password"),
    ('["--password", "{}"]', "hunter2", "password"),
    ("--api-key {}", "abcdef", "api-key"),
    ("https://x.example/a?token={}&page=2", "abc123def", "token"),
    ("https://x.example/a?page=2&access_token={}#top", "abcdefgh", "token"),
    ("https://x.example/a?sv=1&sig={}", MIXED[:30] + "%3D", "signature"),
    ("API_KEY={}", LOWER[:24], "api-key"),
    ("apikey: '{}'", LOWER[:24], "api-key"),
    ('clientSecret = "{}";', LOWER[:24], "secret"),
    ("client_secret: {}", LOWER[:24], "secret"),
    ("SECRET_KEY_BASE={}", HEX, "secret-key"),
    ("secret := `{}`", "hunter2", "secret"),
    ("token: str = '{}'", "abcdef", "token"),
    ('os.environ["API_TOKEN"] = "{}"', "abcdef", "token"),
    ("'token' => '{}',", "abcdef", "token"),
    ("<password>{}</password>", "hunter2", "password"),
    ("password: |\n  {}\nuser: x", "hunter2", "password"),
    ("**Password:** {}", "hunter2", "password"),
    ("The admin password is {}, keep it", "hunter2", "password"),
    ("the api key for staging is {}", LOWER[:24], "api-key"),
    ("password was changed to {}", "hunter2", "password"),
    ("log in with password {}", "hunter2", "password"),
    ("| DB_PASSWORD | {} |", "hunter2", "password"),
    ("Passwort: {}", "hunter2", "password"),
    ("пароль: {}", "hunter2", "password"),
    ("user=x password={},host=z", "hunter2", "password"),
    ("connect(user='x', password='{}')", "hunter2", "password"),
    ("Server=db;Uid=x;Pwd={};Database=y", "hunter2", "password"),
    ("cloudant_key = '{}'", HEX, "secret-key"),
    ("ibm_cloud_iam_key: {}", (MIXED + MIXED)[:44], "secret-key"),
    ("password: {}", "Tr0ub4dor&3", "password"),
    ("token: token: {}", "abc123", "token"),
    ("auth: {}", MIXED[:20], "auth"),
]

NEGATIVES = [
    "",
    "The meeting moved to Thursday.",
    "the token is refreshed hourly",
    "password: must be at least 12 characters",
    "Password: must match.",
    "password: 12 characters minimum",
    '{"password": "must be at least 12 characters"}',
    "secret = get_secret()",
    "token = os.environ['TOKEN']",
    'password = getpass.getpass("Password: ")',
    "token = request.headers.get('X-Token')",
    "api_key=self.api_key",
    "password=password",
    "connect(password=db_password, user=user)",
    "token: <your-token>",
    "TOKEN=$TOKEN",
    "TOKEN=${TOKEN}",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: ***",
    "password: ********",
    "password = None",
    "password: true",
    "secret: null",
    "def login(user: str, password: str, token: str | None = None) -> bool:",
    "interface Login { password: string; token?: string }",
    "api_key: Optional[str] = None",
    "secret: SecretStr",
    "max_tokens=4096",
    "tokens: 512",
    "token_count = 17",
    "pad_token='[PAD]', eos_token='</s>'",
    "next_page_token=CAISBAgBEAE",
    "if token == expected:",
    "if password != other:",
    "tokens.map(token => token.id)",
    "Token::new(x)",
    "PASSWORD_FILE=/run/secrets/db",
    "password: /run/secrets/db",
    "PWD=/home/ann/project",
    "commit 3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a fixed it",
    f"sha256:{HEX}",
    "UUID 550e8400-e29b-41d4-a716-446655440000",
    "memory 01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "01ACCA3NDEKTSV4RRFFQ69G5FA and 01A3TX3NDEKTSV4RRFFQ69G5FA",
    "at 12345678:550e8400-e29b-41d4-a716-446655440000",
    "1700000000:3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a",
    "the server is 203.0.113.7:8080",
    "http://localhost:8080/users/@me",
    "docker pull docker://alpine:3.18@sha256:" + HEX,
    "git@github.com:owner/repo.git and ssh://git@example.com:22/x",
    "https://user:password@example.com/ shows the form",
    "postgres://app:${DB_PASSWORD}@db/main",
    "keyJsonSerializerFactory.createInstance()",
    "task-based-approach-to-learning-things",
    "xoxo-hugs-and-kisses",
    "APPLICATION APARTMENTS APERTURE",
    "the file starts with -----BEGIN " + "PRIVATE KEY-----",
    "-----BEGIN PUBLIC KEY-----\n" + KEY_BODY + "\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\n" + KEY_BODY + "\n-----END CERTIFICATE-----",
    "Authorization: Bearer <token>",
    "Authorization: Bearer tokens are checked first",
    "Basic authentication is off; Bearer authentication is on",
    "password: bcrypt",
    "the password is bcrypt-hashed with 12 rounds",
    "auth: OAuth2 with PKCE",
    "auth: fix the login redirect",
    "--token flag sets the token",
    "--password --verbose",
    'label="Password:" name="pw"',
    "secrets: inherit",
    "token: 3600s",
    "author: Ann, tokenizer: bpe, secretary: Bob, passage: 4",
    "password :)",
    "username, password = credentials_of(user)",
    "username, password = un, pw",
    'whoami(token=token)["name"]',
    "if not info(token=token).private: pass",
    'client = Client(api_key="hf_...")',
    "ANTHROPIC_API_KEY=sk-...",
    "def run(password: HiddenText | None) -> None:",
    'parser.add("--hf-token", help="the token")',
    "cached token: `get_token()` may refresh it",
    "Basic abcde=== and Bearer abcdefghijklmnopqrst",
    "eyJhbGci.abcdefgh and eyJhbcde===.abcdefgh",
    "s3://access_key_id:secret_access_key@bucket/key",
    "both sides index the same tokens: `app/text/tokens.py` reads a text once",
    'def passage_end(self, text: str, tokens: "Encoding", first: int) -> int:',
    "daily_tokens: int = 50_000",
    "no other host needs the token: `reverie mcp` reads it from the home",
    "check(shown, is_password=kind == other)",
    'KNOWN = ("some-secret", r"(?:A3T|AK)[0-9A-Z]{16}")',
    'TOKEN = re.compile(r"[a-z]{3}_[A-Za-z0-9]{30,}")',
    'an entry such as `key="DbPassword" value="…"` is read as a whole',
    '{"name": "password", "value": ""} and {"name": "password", "type": "string"}',
    "env:\n  - name: DB_PASSWORD\n    valueFrom:\n      secretKeyRef: {name: db, key: password}",
    "password:\n  type: string\n  minLength: 12",
    "sha512-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1fG3hJ5kL7aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1w== in the lock file",
    "docker run -p 8080:80 image and mysql -p app and curl -u $USER:$PASSWORD https://example.com",
    "Cookie: theme=dark; lang=en; consent=yes",
    'user_id = session_key("ann") and cache_key: "user:42"',
    "the compass: north; keyboard: qwerty1; monkey: george7",
    "the api key is in the vault",
    "primary key: id, foreign key: user_id",
    "[REDACTED:password] was here, password: [REDACTED:password]",
]


@pytest.mark.parametrize(("template", "secret", "kind"), POSITIVES)
def test_secret_is_replaced_by_its_kind(template, secret, kind):
    text = template.format(secret)
    redaction = redact(text)
    assert secret not in redaction.text
    assert kind in redaction.kinds
    assert f"[REDACTED:{kind}]" in redaction.text
    assert redact(redaction.text) == Redaction(redaction.text, ())


@pytest.mark.parametrize("text", NEGATIVES)
def test_text_without_secrets_is_unchanged(text):
    assert redact(text) == Redaction(text, ())


def test_tables_are_large_enough():
    assert len(POSITIVES) >= 50
    assert len(NEGATIVES) >= 40
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", kind) for _, _, kind in POSITIVES)


def test_only_the_value_goes_and_its_name_stays():
    assert redact("DB_PASSWORD=hunter2 HOST=db").text == "DB_PASSWORD=[REDACTED:password] HOST=db"
    assert redact('{"token": "abc123", "n": 1}').text == '{"token": "[REDACTED:token]", "n": 1}'
    assert redact("https://u:hunter2@h/p").text == "https://u:[REDACTED:basic-auth]@h/p"
    assert redact("?a=1&token=abc123&b=2").text == "?a=1&token=[REDACTED:token]&b=2"
    assert redact("Authorization: Bearer abc123").text == "Authorization: Bearer [REDACTED:bearer-token]"


def test_the_most_telling_kind_wins_and_kinds_are_sorted():
    token = "ghp" + "_" + MIXED[:36]
    assert redact(f"token={token}; pwd=hunter2").kinds == ("github-token", "password")


def test_truncated_private_key_stops_at_prose():
    text = pem("RSA ", end=False) + "After the key comes a plain sentence."
    assert redact(text).text == "[REDACTED:private-key]\nAfter the key comes a plain sentence."


def test_a_long_token_leaves_no_tail():
    token = "ghp" + "_" + MIXED * 3
    assert redact(f"a {token} b").text == "a [REDACTED:github-token] b"


def test_secret_is_redacted_at_every_repetition():
    secret = MIXED[:20]
    text = f"session={secret}x stays\nclient_secret={secret}\nthe id is {secret}."
    assert redact(f"{secret} and api_key={secret}").text == "[REDACTED:api-key] and api_key=[REDACTED:api-key]"
    assert f" {secret}" not in redact(text).text


def test_secret_value_is_not_redacted_elsewhere_unless_it_looks_secret():
    text = "password=correct-horse-battery\nthe tests call it correct-horse-battery"
    assert redact(text).text == "password=[REDACTED:password]\nthe tests call it correct-horse-battery"


# --- Sentences ------------------------------------------------------------------------------------------

# In each line of `secrets.txt`, the secret is in ⟦brackets⟧; no line of `near_misses.txt` has one. Every second line of
# both was kept for measuring.
SAID = Path(__file__).parents[2] / "data" / "said_secrets"


@pytest.mark.parametrize("line", (SAID / "secrets.txt").read_text("utf-8").splitlines())
def test_a_secret_in_a_sentence_is_redacted(line):
    before, secret, after = re.split("[⟦⟧]", line)
    redaction = redact(f"{before}{secret}{after}")
    assert redaction.text.startswith(f"{before}[REDACTED:")
    assert redaction.text.endswith(after.lstrip("!?."))
    assert secret not in redaction.text
    assert redact(redaction.text) == Redaction(redaction.text, ())


@pytest.mark.parametrize("line", (SAID / "near_misses.txt").read_text("utf-8").splitlines())
def test_a_sentence_about_secrets_survives(line):
    assert redact(line) == Redaction(line, ())


# --- JSON -----------------------------------------------------------------------------------------------


def test_json_values_under_secret_names_are_redacted_in_any_form():
    value = {
        "password": "swordfish",
        "pin": 4,
        "accessToken": 12345,
        "secret": {"inner": "deep words", "list": [1, "two"]},
        "token_count": 7,
        "max_tokens": 9,
        "auth": {"type": "basic"},
        "api_key": None,
        "use_token": True,
        "token": "<your-token>",
    }
    clean, kinds = redact_json(value)
    assert clean == {
        "password": "[REDACTED:password]",
        "pin": 4,
        "accessToken": "[REDACTED:token]",
        "secret": {"inner": "[REDACTED:secret]", "list": ["[REDACTED:secret]", "[REDACTED:secret]"]},
        "token_count": 7,
        "max_tokens": 9,
        "auth": {"type": "basic"},
        "api_key": None,
        "use_token": True,
        "token": "<your-token>",
    }
    assert kinds == ("password", "secret", "token")
    assert list(clean) == list(value)


def test_json_strings_and_keys_are_searched():
    clean, kinds = redact_json({"notes": ["x", ("password=hunter2", 3)], f"by {AWS_ID}": 1, f"and {AWS_ID}": 2})
    assert clean["notes"] == ["x", ["password=[REDACTED:password]", 3]]
    assert clean["by [REDACTED:aws-access-key]"] == 1
    assert kinds == ("aws-access-key", "password")


def test_json_keys_that_become_equal_keep_both_values():
    clean, _ = redact_json({AWS_ID: 1, AWS_ID[:-1] + "Z": 2})
    assert clean == {"[REDACTED:aws-access-key]": 1, "[REDACTED:aws-access-key]#2": 2}


def test_json_is_copied_and_may_be_nested_deeply():
    deep: list = ["password=hunter2"]
    for _ in range(5_000):
        deep = [deep]
    clean, kinds = redact_json(deep)
    assert kinds == ("password",)
    for _ in range(5_000):
        clean, deep = clean[0], deep[0]
    assert clean == ["password=[REDACTED:password]"]
    assert deep == ["password=hunter2"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["password", "token", "note"]), children, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_json_redaction_is_stable_and_stays_json(value):
    clean, _ = redact_json(value)
    json.dumps(clean)
    assert redact_json(clean) == (clean, ())


# --- Properties -----------------------------------------------------------------------------------------


def letters(alphabet: str, least: int, most: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most)


ALNUM = string.ascii_letters + string.digits
WORDY = ALNUM + "_-"
# Formats that are known wherever they stand, even glued to other text.
GLUED = st.one_of(
    letters(string.ascii_uppercase + string.digits, 15, 15).map(lambda x: "AKIA" + "I" + x),
    letters(ALNUM, 36, 60).map(lambda x: "ghp" + "_" + x),
    letters(WORDY, 20, 50).map(lambda x: "glpat" + "-" + x),
    letters(WORDY, 30, 90).map(lambda x: "sk-ant" + "-api03-" + x),
    letters(WORDY, 35, 35).map(lambda x: "AIza" + x),
    letters(ALNUM, 36, 36).map(lambda x: "npm" + "_" + x),
    letters(ALNUM, 34, 34).map(lambda x: "hf" + "_" + x),
    letters(WORDY, 40, 80).map(lambda x: JWT.rpartition(".")[0] + "." + x),
    letters(ALNUM + "+/", 64, 300).map(lambda x: pem("RSA ", x)),
    letters(ALNUM, 24, 24).map(lambda x: "xoxb" + "-123456789012-" + x),
)
# Values that their name gives away; a digit keeps them apart from prose.
VALUE = letters(ALNUM + "!@#^*+=~", 5, 30).map(lambda x: "Zq7" + x + "k9")
NAME = st.sampled_from(
    [
        "password=",
        "DB_PASSWORD=",
        "token: ",
        '"secret": "',
        "--api-key ",
        "client_secret = '",
        "?a=1&token=",
        "the password is ",
    ]
)
SURROUNDINGS = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "password",
            "token: ",
            "=",
            ' "',
            "the",
            " ",
            "\n",
            "eyJ",
            "://",
            "-----BEGIN ",
            "AKIA",
            "[REDACTED:",
            "]",
        ]
    ),
    max_size=12,
).map("".join)


@given(SURROUNDINGS, GLUED, SURROUNDINGS)
@examples(300)
def test_planted_token_is_always_removed(before, secret, after):
    redaction = redact(before + secret + after)
    assert secret not in redaction.text
    assert redaction.kinds


@given(SURROUNDINGS, NAME, VALUE, SURROUNDINGS)
@examples(300)
def test_planted_value_is_always_removed(before, name, value, after):
    closing = name[-1] if name[-1] in "\"'" else ""
    redaction = redact(f"{before}\n{name}{value}{closing}\n{after}")
    assert value not in redaction.text
    assert redaction.kinds


@given(SURROUNDINGS | st.tuples(SURROUNDINGS, NAME, VALUE | GLUED, SURROUNDINGS).map("".join))
@examples(500)
def test_redaction_is_stable_and_takes_any_text(text):
    once = redact(text)
    assert redact(once.text) == Redaction(once.text, ())


@given(st.text(ALNUM + " .,;'\n", max_size=200).map(lambda text: re.sub(r"[A-Za-z0-9]{16,}", "x", text)))
def test_plain_words_survive(text):
    words = re.sub(r"(?i)pass|pw|key|token|secret|auth|senha|contra", "x", text)
    assert redact(words) == Redaction(words, ())


@given(
    st.uuids().map(str),
    st.binary(min_size=20, max_size=32).map(bytes.hex),
    st.binary(min_size=16, max_size=16),
)
def test_identifiers_survive(uuid, digest, ulid_bytes):
    number = int.from_bytes(ulid_bytes, "big")
    ulid = "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> shift & 31] for shift in range(125, -1, -5))
    text = f"memory {ulid} at {digest} by {uuid} {digest.upper()}:{uuid.upper()}"
    assert redact(text) == Redaction(text, ())


HOSTILE = [
    *(
        "the password for a1b is ",
        "login a / ",
        "a!b2c3 as password ",
        "pin 4711 ",
        "密码",
        "wifi key a.b.",
        "pass a_1_",
    ),
    *(
        "eyJhb",
        "sk-",
        "AKIA",
        "token ",
        "token=",
        "token=$",
        "password: ",
        'password="',
        "password=' ",
        "://a:",
        "://",
        "//",
    ),
    *(
        "-----BEGIN RSA " + "PRIVATE KEY-----\n",
        "-----BEGIN ",
        "curl ",
        "mysql ",
        "Bearer ",
        "a",
        "A",
        "0",
        " ",
        "\\",
        '"',
    ),
    *(
        "aws key ",
        "npm_",
        "xoxb-",
        "xoxb-1-",
        "glagent-",
        "[REDACTED:password]",
        "[REDACTED:",
        "key.",
        "?sig=",
        "is to ",
    ),
    *(
        "cloudantkey" + " " * 50,
        "sl_",
        "M" * 25 + ".",
        "9" * 10 + ":",
        "token is now set to ",
        "token for ",
        "Private-Lines: 1\n",
    ),
    *(
        "a.b@c.",
        "token: {",
        "secret: <",
        "password: aA",
        "--token ",
        "x&y=",
        "password=&",
        "auth:Basic ",
        "\u0130",
        "dapi",
    ),
]


@given(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE), st.sampled_from(["", "!", "\n", "x y z", '"']))
@examples(60)
def test_hostile_text_is_taken(first, second, end):
    text = ((first + second) * 10_000)[: 10_000 - len(end)] + end
    assert redact(redact(text).text).kinds == ()
