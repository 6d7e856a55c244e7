"""After a marker nothing of the value remains, whatever form gave it away."""

import json
import string

import pytest
from hypothesis import given, settings, strategies as st

from pipeline.text.normalize import normalize_text
from pipeline.text.redaction import Redaction, redact, redact_json
from tests.fakes.properties import examples

# A form is a text with § where the secret goes. PLAIN secrets hold letters, digits and a few signs; WIDE ones what may
# stand in a password that nothing has to quote, but for slashes where the place proves little; SPACED ones also blanks
# and the other quotation marks.
PLAIN, WIDE, UNLIKE_A_PATH = "-_.+", "-_.+!*#^%@=/:?", "-_+!*#^%=?"
SPACED_IN_DOUBLE, SPACED_IN_SINGLE = "-_.+!*#^%@=/:?' ;,&<>", '-_.+!*#^%@=/:?" ;,&<>'
FORMS = {
    SPACED_IN_DOUBLE: [
        'password = "§"',
        '{"password": "§"}',
        '{"password":"§","user":"ann"}',
        'DB_PASSWORD="§"',
        'export DB_PASSWORD="§" && ./run',
        'password: "§"',
        '$env:DB_PASSWORD = "§"',
        'password => "§",',
        'config["password"] = "§";',
        'new Client { Password = @"§" }',
        'const string Password = L"§";',
        'password = b"§"',
        '#define DB_PASSWORD "§"',
        'ENV DB_PASSWORD "§"',
        'curl -u "admin:§" https://example.com/x',
        'sshpass -p "§" ssh host',
        'redis-cli -h cache -a "§" ping',
        'mysql -u root -p"§" app',
        'docker login -u ann -p "§" registry.example.com',
        'connect(host="db", password="§", port=1)',
        'password = os.getenv("DB_PASSWORD", "§")',
        'passwords: ["§", "§"]',
        'CREATE USER ann IDENTIFIED BY "§";',
        'variable "db_password" {\n  default = "§"\n}',
        '- name: DB_PASSWORD\n  value: "§"',
        '{"name": "DB_PASSWORD", "value": "§"}',
        '{"name": "DB_PASSWORD", "type": "string", "value": "§"}',
        '{\n  "name": "DB_PASSWORD",\n  "value": "§"\n}',
        '{"value": "§", "name": "DB_PASSWORD"}',
        'password:\n  "§"',
        'passwords:\n  - "§"\n  - "§"',
        'echo "§" | docker login -u ann --password-stdin',
    ],
    SPACED_IN_SINGLE: [
        "password = '§'",
        "DB_PASSWORD='§'",
        "export DB_PASSWORD=$'§'",
        "password: '§'",
        "PGPASSWORD='§' psql -h db",
        "'password' => '§',",
        "define('DB_PASSWORD', '§');",
        "connect(password='§')",
        "curl --user 'admin:§' https://example.com/x",
        "sshpass -p'§' ssh host",
        "ALTER USER ann IDENTIFIED BY '§';",
        "ALTER ROLE ann WITH PASSWORD '§';",
        "passwords: ['§', '§']",
        "- name: DB_PASSWORD\n  value: '§'",
        "mysql -p'§' -u root",
    ],
    UNLIKE_A_PATH: [
        "password:\n  §",
        "password =\n  §",
        "passwords:\n  - §\n  - §",
        "| DB_PASSWORD | § |",
        "the password is §",
    ],
    WIDE: [
        "password=§",
        "DB_PASSWORD=§",
        "spring.datasource.password=§",
        "export DB_PASSWORD=§",
        "set DB_PASSWORD=§",
        "PGPASSWORD=§ psql -h db -U app",
        "password: §",
        "  passwd: §  # rotate",
        "- DB_PASSWORD=§",
        "--password § --verbose",
        "--password=§ --verbose",
        "password: |\n  §\nuser: ann",
        "password: >-\n  §\nuser: ann",
        "password = <<EOF\n§\nEOF",
        "DB_PASSWORD=$(cat <<'EOF'\n§\nEOF\n)",
        "- name: DB_PASSWORD\n  value: §",
        "- name: DB_PASSWORD\n  description: of the database\n  value: §",
        "<password>§</password>",
        "<password><![CDATA[§]]></password>",
        '<Parameter name="DB_PASSWORD">§</Parameter>',
        "sshpass -p § ssh host",
        "redis-cli -h cache -a § ping",
        "ldapsearch -x -D cn=admin -w § -b dc=example",
        "sqlcmd -d app -U sa -P § -Q 'select 1'",
        "openssl rsa -passin pass:§ -in key.pem",
        "plink -pw § ann@host",
        "docker login -u ann -p § registry.example.com",
        "podman login registry.example.com --username ann -p §",
        "mysql -u root -p§ app",
        "curl -u admin:§ https://example.com/x",
        "curl \\\n  -u admin:§ \\\n  https://example.com/x",
        "mongodump --host db -u ann -p §",
        "echo § | docker login -u ann --password-stdin",
        "docker login -u ann --password-stdin <<< §",
        "ConvertTo-SecureString -AsPlainText -Force §",
        "Authorization: Bearer §",
        "-H 'X-Api-Key: §'",
        "X-Auth-Token: §",
    ],
    PLAIN: [
        "password=&quot;§&quot;",
        "password=&#34;§&#34; user",
        '<add key="DbPassword" value="§"/>',
        '<add value="§" key="DbPassword"/>',
        "<add key='DbPassword' value='§' />",
        '<property name="password" value="§" />',
        '<input type="password" name="password" value="§">',
        '<entry key="db.password">§</entry>',
        "<key>password</key>\n<string>§</string>",
        '<password value="§"/>',
        '<user name="ann" password="§" role="admin"/>',
        'password=\\"§\\"',
        '{\\"password\\": \\"§\\", \\"user\\": 1}',
        '{\\\\\\"password\\\\\\":\\\\\\"§\\\\\\"}',
        "password = `§`",
        "`password: §`",
        "**Password:** §",
        "password='§'\\''§'",
        "passwords: [§, §]",
        "passwords = [§,§]",
        "postgres://app:§@db:5432/main",
        "postgresql://app:§@db/main?sslmode=require",
        "mongodb+srv://app:§@cluster.example.net/?w=majority",
        "mongodb://app:§@a:27017,b:27018/x",
        "amqp://app:§@queue:5672/%2f",
        "redis://:§@cache:6379/0",
        "https://ann:§@example.com/x",
        "smtps://ann@example.com:§@smtp.example.com:465",
        "jdbc:postgresql://db/main?user=app&password=§",
        "jdbc:mysql://db/main?password=§&user=app",
        "jdbc:sqlserver://db;user=sa;password=§;encrypt=true",
        "jdbc:oracle:thin:app/§@db:1521:xe",
        "Server=db;Uid=app;Pwd=§;Database=main",
        "Server=db;Password=§;",
        "Data Source=db;User ID=app;Password=§",
        "host=db user=app password=§ dbname=main",
        "https://example.com/a?token=§&page=2",
        "https://example.com/a?page=2&access_token=§#top",
        "https://example.com/r?to=%2Fa%3Ftoken%3DS%26page%3D2",
        "Cookie: theme=dark; sessionid=§; lang=en",
        "Set-Cookie: sessionid=§; Path=/; HttpOnly",
        '["docker", "run", "--password", "§"]',
        '{"method": "auth.login_with_api_key", "params": ["§"]}',
        "client_secret=§",
        "ACCESS_TOKEN: §",
        "apiKey: '§'",
        "machine example.com login ann password §",
        "api_secret = SecretStr('§')",
        "//registry.example.org/:_authToken=§",
    ],
}
CASES = [(form, signs) for signs, forms in FORMS.items() for form in forms]
LETTERS = "ZQXJVKzqxjvk"
PROSE = st.sampled_from(
    [
        "",
        "We moved it to Frankfurt.",
        "See docs/setup.md, section 3",
        "- [ ] ask Ann about it",
        "{",
        "user: ann",
        "```",
        "1. First:",
    ]
)


def secrets_with(signs: str) -> st.SearchStrategy[str]:
    """Return values that nothing takes for a word, and whose parts stand nowhere else."""
    inner = st.text(LETTERS + string.digits + signs, max_size=24)
    # An address is taken for no secret.
    return inner.map(lambda text: f"Zq7{text}x9Kv8").filter(lambda value: "://" not in value)


def leftovers(secret: str, form: str, kept: str) -> list[str]:
    """Return the parts of a secret, four letters long, that are still there."""
    parts = {secret[at : at + 4] for at in range(len(secret) - 3)}
    return sorted(part for part in parts if part in kept and part not in form and any(c in LETTERS for c in part))


@pytest.mark.parametrize(("form", "signs"), CASES, ids=[form for form, _ in CASES])
@given(st.data())
@examples(8)
def test_nothing_of_the_value_remains(form, signs, data):
    secret, before, after = data.draw(secrets_with(signs)), data.draw(PROSE), data.draw(PROSE)
    text = f"{before}\n{form.replace('§', secret)}\n{after}"
    redaction = redact(text)
    assert redaction.kinds
    assert not leftovers(secret, form, redaction.text), redaction.text
    assert redaction.text.startswith(f"{before}\n")
    assert redaction.text.endswith(f"\n{after}")
    assert redact(redaction.text) == Redaction(redaction.text, ())


@pytest.mark.parametrize("secret", ["Zq7@0.x9Kv8", "Zq7@x9.K8v8"])
def test_a_value_like_an_address_without_a_domain_is_redacted(secret):
    for form in ('password = os.getenv("DB_PASSWORD", "§")', 'os.environ.get("DB_PASSWORD", "§")'):
        assert secret not in redact(form.replace("§", secret)).text


@pytest.mark.parametrize("address", ["ann@example.com", "ann+ops@mail.example.co.uk", "ann@bücher.xn--p1ai"])
def test_an_address_is_no_secret(address):
    text = f'login = os.getenv("DB_PASSWORD", "{address}")'
    assert redact(text).text == text


@given(secrets_with(PLAIN))
@settings(deadline=None)
def test_nothing_remains_in_json(secret):
    value = {
        "env": [{"name": "DB_PASSWORD", "value": secret}, {"name": "HOST", "value": "db"}],
        "args": ["run", "--password", secret, "--verbose"],
        "passwords": [secret, {"of": secret}],
        f"DB_PASSWORD={secret}": 1,
        "text": [f'<add key="DbPassword" value="{secret}"/>', [f"curl -u ann:{secret} https://example.com/"]],
    }
    clean, _ = redact_json(value)
    assert not leftovers(secret, "", json.dumps(clean))
    assert clean["env"][1] == {"name": "HOST", "value": "db"}
    assert clean["args"][::3] == ["run", "--verbose"]
    assert redact_json(clean) == (clean, ())


KEY_LINES = st.lists(
    st.text(string.ascii_letters + string.digits + "+/", min_size=64, max_size=64), min_size=1, max_size=8
)


@pytest.mark.parametrize("label", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\n    ", "\\n", "\\\\n", '\\n" +\n  "', "\n> ", " "])
@given(KEY_LINES, PROSE, PROSE)
@examples(3)
def test_nothing_of_a_private_key_remains(label, between, lines, before, after):
    begin, end = (f"-----{word} {label}PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
    text = f"{before}\nkey: {between.join((begin, *lines, end))}\n{after}"
    redaction = redact(text)
    assert redaction.text == f"{before}\nkey: [REDACTED:private-key]\n{after}"


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u200c", "\u200d", "\u00ad", "\u2060", "\ufeff", "\u034f", "\ufe0f", "\U000e0041"]
)
@given(st.integers(1, 20), secrets_with(PLAIN))
@examples(10)
def test_invisible_characters_hide_no_secret(hidden, at, secret):
    text = f"DB_PASSWORD={secret} HOST=db"
    assert redact(normalize_text(text[:at] + hidden + text[at:])) == redact(text)


def test_joining_characters_within_emoji_and_words_are_kept():
    for text in (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "1\ufe0f\u20e3 first",
    ):
        assert normalize_text(text) == text
