"""Names of services, machines, branches, errors and people in plain text, and ordinary words of the same form."""

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import EntityKind
from pipeline.text.component_names import find_component_names, find_hyphenated_names
from pipeline.text.entities import find_entities_by_rule
from pipeline.text.known_names import find_capitalized_names

IDENTIFIER, PACKAGE, PERSON, TICKET = EntityKind.IDENTIFIER, EntityKind.PACKAGE, EntityKind.PERSON, EntityKind.TICKET

FOUND = [
    # A last part that only software has, a number, a domain: wherever the word is.
    ("a new shipping-service for the depot", [(IDENTIFIER, "shipping-service")]),
    ("the disk of maple-03 is full", [(IDENTIFIER, "maple-03")]),
    ("grafana-1.internal answers", [(IDENTIFIER, "grafana-1.internal")]),
    ("reads wiki.ops.example.org", [(IDENTIFIER, "wiki.ops.example.org")]),
    ("tunnel to web01 first", [(IDENTIFIER, "web01")]),
    ("the orders-db-replica lags", [(IDENTIFIER, "orders-db-replica")]),
    # Other words by their place: a name has no article and is before no noun.
    ("Invoices come from tide-ledger.", [(IDENTIFIER, "tide-ledger")]),
    ("harbor-crane drops every second label", [(IDENTIFIER, "harbor-crane")]),
    ("ask the harbor-crane team", [(IDENTIFIER, "harbor-crane")]),
    ("cloned acme/tide-tables today", [(IDENTIFIER, "acme/tide-tables")]),
    ("Der Fehler kommt aus hafen-kran und wird behoben", [(IDENTIFIER, "hafen-kran")]),
    # Signs and lists.
    ("rebased feature/tide-import", [(IDENTIFIER, "feature/tide-import")]),
    ("cut from origin/release/2.4", [(IDENTIFIER, "release/2.4")]),
    ("the branch trunk is red", [(IDENTIFIER, "trunk")]),
    ("it fails with ECONNRESET", [(IDENTIFIER, "ECONNRESET")]),
    ("SQLSTATE 40001 under load", [(IDENTIFIER, "SQLSTATE 40001")]),
    ("set the environment variable EDITOR", [(IDENTIFIER, "EDITOR")]),
    ("reads $HOME twice", [(IDENTIFIER, "HOME")]),
    ("@mira-k approves", [(PERSON, "mira-k")]),
    ("urllib3 breaks botocore", [(PACKAGE, "urllib3"), (PACKAGE, "botocore")]),
    ("an upgrade of cryptography", [(PACKAGE, "cryptography")]),
    ("eslint-plugin-vue is old", [(PACKAGE, "eslint-plugin-vue")]),
    ("see issue 39 and ADR-0012", [(TICKET, "#39"), (TICKET, "ADR-12")]),
]

NOT_FOUND = [
    "a real-time feed and a read-only view",
    "a follow-up to the sign-off, then the hand-over",
    "it is error-prone, end-to-end and state-of-the-art",
    "high-priority work for power-hungry machines",
    "in step-3 of sprint-12, top-10 only",
    "our side-effect is a trade-off",
    "the cryptography of the design",
    "a self-service portal",
    "the dead-letter-queue",
    "a fix/workaround or feature/bug",
    "the @property decorator",
    "import '@angular/core'",
    "write to mira@example.org",
    "EVERY ERROR counts",
    "Die Ende-zu-Ende-Prüfung und das Code-Review",
    "sha256, utf8, http2 and base64",
    "c'est-à-dire après-demain",
    "there are 3 bugs in 40 tests",
]


def pairs(text):
    return [(mention.kind, mention.name) for mention in find_entities_by_rule(text)]


@pytest.mark.parametrize(("text", "expected"), FOUND, ids=[text for text, _ in FOUND])
def test_names_of_software_are_found(text, expected):
    assert pairs(text) == expected


@pytest.mark.parametrize("text", NOT_FOUND)
def test_ordinary_words_are_no_names(text):
    assert [name for kind, name in pairs(text) if kind not in {EntityKind.URL, EntityKind.PACKAGE}] == []


def test_quoted_and_plain_spellings_are_one_entity():
    assert len(set(pairs("`billing-service` calls it, and billing-service is down"))) == 1


def test_hyphenated_name_of_the_workspace_is_found_in_any_text():
    names = {"tide-ledger": IDENTIFIER, "read-only": IDENTIFIER}
    text = "a broken tide-ledger view, read-only"
    assert list(find_component_names(text)) == []
    assert [text[start:end] for _, start, end in find_hyphenated_names(text, names)] == ["tide-ledger"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ximena Duarte es la responsable de los pagos en Bilbao", ["Ximena Duarte", "Bilbao"]),
        ("Le serveur est chez Anselme Roux depuis lundi", ["Anselme Roux"]),
        ("Los pagos fallan. Reiniciamos el servidor con la cola", []),
        ("Der Server ist bei Wanda Kern", []),
        ("The server is with Wanda Kern", []),
    ],
)
def test_capitalized_names_are_found_where_nouns_have_no_capital(text, names):
    assert [text[start:end] for start, end in find_capitalized_names(text)] == names


@given(st.text(alphabet="aB0-./@ \n=$_", max_size=80))
def test_any_text_gives_names_inside_of_it(text):
    for mention in find_entities_by_rule(text):
        assert text[mention.start : mention.end] == mention.surface != ""


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit", ["a-", "a-b ", "a.b.", "a.internal", "feature/", "branch a/", "@a ", "A=", "01", "a01", "issue 1 "]
)
def test_hostile_texts_finish(unit):
    list(find_entities_by_rule((unit * 20_000)[:20_000] + "!"))
