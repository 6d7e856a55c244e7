import pytest
from hypothesis import example, given, strategies as st

from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.entities import find_entities_by_rule
from pipeline.text.names import canonical_entity_name

FILE, IDENTIFIER, TICKET = EntityKind.FILE, EntityKind.IDENTIFIER, EntityKind.TICKET
PULL, URL, VERSION = EntityKind.PULL_REQUEST, EntityKind.URL, EntityKind.VERSION
PACKAGE, COMMAND, PORT, DATE = EntityKind.PACKAGE, EntityKind.COMMAND, EntityKind.PORT, EntityKind.DATE
PERSON, PRODUCT, PLACE, ORGANISATION = EntityKind.PERSON, EntityKind.PRODUCT, EntityKind.PLACE, EntityKind.ORGANISATION

# A text, and every (kind, name) that it must give, in order.
FOUND = [
    # names that are known, whatever the language
    ("postgres und Redis laufen in Nürnberg", [(PRODUCT, "postgres"), (PRODUCT, "redis"), (PLACE, "nürnberg")]),
    ("der Kafka-Topic von Lena Hartwig", [(PRODUCT, "kafka"), (PERSON, "lena hartwig")]),
    ("hat Lena Zugriff auf SAP?", [(PERSON, "lena"), (ORGANISATION, "sap")]),
    ("Frau Zwirner prüft es", [(PERSON, "zwirner")]),
    ("Falke ist unser Dienst für Post", [(PRODUCT, "falke")]),
    ("rewritten in Go, go on", [(PRODUCT, "go")]),
    ("the max of a mark; will it rust", []),
    ("Max-Wert und Maximum", []),
    # files
    ("edit src/api/verdict-policy.ts.", [(FILE, "src/api/verdict-policy.ts")]),
    ("The Makefile is broken", [(FILE, "Makefile")]),
    (r"open C:\x\y.py, then save", [(FILE, "c:/x/y.py")]),
    ("never commit .env.local!", [(FILE, ".env.local")]),
    ("see ./tests/test_a.py:42 for it", [(FILE, "tests/test_a.py")]),
    ("(README.md)", [(FILE, "README.md")]),
    ("in ~/.config/app/settings.toml", [(FILE, "~/.config/app/settings.toml")]),
    ("mounted at /var/lib/data", [(FILE, "/var/lib/data")]),
    ("moved to pipeline/digest/ today", [(FILE, "pipeline/digest")]),
    ("under tests/ only", [(FILE, "tests")]),
    ("`.gitignore` and .github/workflows/ci.yml", [(FILE, ".gitignore"), (FILE, ".github/workflows/ci.yml")]),
    ("main.c and a.rs", [(FILE, "main.c"), (FILE, "a.rs")]),
    ("tests/test_x.py::test_it_runs", [(FILE, "tests/test_x.py"), (IDENTIFIER, "test_it_runs")]),
    # identifiers
    ("LoadGuard rejects it", [(IDENTIFIER, "LoadGuard")]),
    ("call parse_config first", [(IDENTIFIER, "parse_config")]),
    ("Foo.bar() is slow", [(IDENTIFIER, "Foo.bar")]),
    ("raise MAX_RETRIES.", [(IDENTIFIER, "MAX_RETRIES")]),
    ("the `verdict` field", [(IDENTIFIER, "verdict")]),
    ("`load(path, mode)` fails", [(IDENTIFIER, "load")]),
    ("retry() and loadGuard", [(IDENTIFIER, "retry"), (IDENTIFIER, "loadGuard")]),
    ("use std::vector here", [(IDENTIFIER, "std::vector")]),
    ("os.path is imported, __init__ is not", [(IDENTIFIER, "os.path"), (IDENTIFIER, "__init__")]),
    ("the HTTPServer class", [(IDENTIFIER, "HTTPServer")]),
    ("pass `--no-verify`", [(IDENTIFIER, "--no-verify")]),
    ("response.json() returns", [(IDENTIFIER, "response.json")]),
    # tickets
    ("blocked by ABC-123", [(TICKET, "ABC-123")]),
    ("fixes #7", [(TICKET, "#7")]),
    ("(#123)", [(TICKET, "#123")]),
    ("pallets/flask#5432 again", [(TICKET, "pallets/flask#5432")]),
    ("GH-77 was closed", [(TICKET, "#77")]),
    ("cve-2024-12345 is patched", [(TICKET, "CVE-2024-12345")]),
    # pull requests
    ("PR #42 landed", [(PULL, "42")]),
    ("after PR 42.", [(PULL, "42")]),
    ("pull request #42", [(PULL, "42")]),
    ("merged !17 today", [(PULL, "17")]),
    ("MR 17 and pr-18", [(PULL, "17"), (PULL, "18")]),
    (
        "https://github.com/o/r/pull/42.",
        [(URL, "https://github.com/o/r/pull/42"), (PULL, "42")],
    ),
    # URLs
    ("see https://Example.com/A?b=c#d.", [(URL, "https://example.com/A?b=c#d")]),
    ("(https://example.com/a_(b))", [(URL, "https://example.com/a_(b)")]),
    ("[x](http://example.com/)", [(URL, "http://example.com")]),
    ("on github.com/pallets/flask", [(URL, "https://github.com/pallets/flask")]),
    ("http://localhost:7077/v1", [(URL, "http://localhost:7077/v1"), (PORT, "7077")]),
    ("www.example.org is down", [(URL, "https://www.example.org")]),
    # versions
    ("v2.3.1 is out", [(VERSION, "2.3.1")]),
    ("on 3.11.7.", [(VERSION, "3.11.7")]),
    ("tagged 1.0.0-rc.2", [(VERSION, "1.0.0-rc.2")]),
    ("Python 3.12 and API v2", [(PRODUCT, "python"), (VERSION, "3.12"), (VERSION, "2")]),
    ("version 3.5, 2.0b3", [(VERSION, "3.5"), (VERSION, "2.0b3")]),
    # packages
    ("`pip install requests`", [(PACKAGE, "requests")]),
    (
        "$ pip install -U Flask_Login 'rich>=14' click",
        [(PACKAGE, "flask-login"), (PACKAGE, "rich"), (PACKAGE, "click")],
    ),
    ("we pip install numpy before the run", [(PACKAGE, "numpy")]),
    ("npm i @scope/pkg", [(PRODUCT, "npm"), (PACKAGE, "@scope/pkg")]),
    ("pinned django==4.2", [(PACKAGE, "django"), (VERSION, "4.2")]),
    ("uses react@18.2.0", [(PACKAGE, "react"), (VERSION, "18.2.0")]),
    ("import numpy as np", [(PACKAGE, "numpy")]),
    ("from sqlite_utils.db import Table", [(PACKAGE, "sqlite-utils")]),
    ("import x from 'lodash/fp'", [(PACKAGE, "lodash")]),
    ("const a = require('@babel/core')", [(PACKAGE, "@babel/core")]),
    # commands
    ("$ make test", [(COMMAND, "make test")]),
    ("run `git rebase -i` now", [(COMMAND, "git rebase -i")]),
    ("`DEBUG=1  npm run dev`", [(COMMAND, "DEBUG=1 npm run dev")]),
    ("`./run.sh all`", [(COMMAND, "./run.sh all")]),
    ("`pip install -r requirements.txt`", [(COMMAND, "pip install -r requirements.txt")]),
    # ports
    ("port 5432 is taken", [(PORT, "5432")]),
    ("on localhost:7077", [(PORT, "7077")]),
    ("listens on :8080.", [(PORT, "8080")]),
    ("127.0.0.1:6379", [(PORT, "6379")]),
    ("--port 9000 or DB_PORT=5433", [(PORT, "9000"), (PORT, "5433")]),
    # dates
    ("since 3 March 2025", [(DATE, "2025-03-03")]),
    ("2024-05-01T10:30:00Z", [(DATE, "2024-05-01")]),
    ("March 3rd, 2025; May of 2024", [(DATE, "2025-03-03"), (DATE, "2024-05")]),
]

NOT_FOUND = [
    "UTF-8",
    "ISO-8859",
    "SHA-256",
    "GPT-2",
    "COVID-19",
    "RFC-2119",
    "top-10",
    "T-1000",
    "DEC-2024",
    "e.g. this",
    "i.e. that",
    "etc.",
    "U.S.A.",
    "Ph.D.",
    "a.m. or p.m.",
    "and/or",
    "he/she/they",
    "client/server",
    "read/write/execute",
    "24/7",
    "km/h",
    "TCP/IP",
    "I/O",
    "n/a",
    "1/2",
    "at 10:30",
    "16:9",
    "10:30:15",
    "ratio 3:1000",
    "port 99999999",
    "year:2024",
    "support 5432",
    "192.168.1.10",
    "01.05.2024",
    "pi is 3.14",
    "costs 2.50",
    "12.5%",
    "rose 3.5-fold",
    "colour #112233",
    "#1 priority",
    "color: #123",
    "&#123;",
    "#fff",
    "# 12",
    "a#12b",
    "wow! 17",
    "x !17= y",
    "!important",
    "PRs",
    "the PR is 42 lines",
    "MacDonald",
    "McGregor",
    "import taxes are high",
    "we import data from abroad",
    "bob@example.com",
    "joe_smith@example.com",
    "word(s)",
    "finished.Then we",
    "a_",
    "_emphasis_",
    "iPhone",
    "APIs",
    "x == 1.2",
    "p>=0.5",
    "google.com",
    "self-hosted",
    ".py files",
    ".5 of it",
    "...",
    "$ 5",
    "costs $ five hundred",
    "30 February 2025",
    "</div>",
]

HOSTILE = [
    "a.",
    "-",
    "/",
    "(",
    "a/",
    "a-",
    "`",
    "`a",
    "$ ",
    "\n",
    "a::",
    "1.",
    "1-",
    "@a/",
    "#1",
    ":",
    "http://",
    "a_",
    "\\",
    "PR ",
    "pip install ",
    "import a ",
    " ",
    "A",
    "é",
    "AB-1-",
    "x@",
    "a.b@",
    "[",
    "))",
    "may 2024-",
    "from a ",
    ".env.",
]


def pairs(text: str) -> list[tuple[EntityKind, str]]:
    return [(mention.kind, mention.name) for mention in find_entities_by_rule(text)]


@pytest.mark.parametrize(("text", "expected"), FOUND, ids=[text for text, _ in FOUND])
def test_it_finds(text, expected):
    assert pairs(text) == expected


@pytest.mark.parametrize("text", NOT_FOUND)
def test_it_leaves_alone(text):
    assert pairs(text) == []


def texts() -> st.SearchStrategy[str]:
    fragments = [text for text, _ in FOUND] + NOT_FOUND + HOSTILE
    return st.one_of(
        st.text(max_size=200),
        st.text(alphabet="aB1._-/\\:@#$`'\"()!=~ \n", max_size=120),
        st.lists(st.sampled_from(fragments), max_size=6).map(" ".join),
        st.lists(st.sampled_from(fragments), max_size=6).map("".join),
    )


@given(texts())
@example("$ .")
def test_offsets_are_exact_and_names_are_canonical(text):
    for mention in find_entities_by_rule(text):
        assert text[mention.start : mention.end] == mention.surface != ""
        assert mention.name
        assert canonical_entity_name(mention.kind, mention.name) == mention.name


@given(texts())
def test_mentions_come_in_order_and_overlap_only_inside_a_url(text):
    reached = 0
    url: EntityMention | None = None
    for mention in find_entities_by_rule(text):
        if mention.start < reached:
            assert url is not None
            assert url.start < mention.start < mention.end <= url.end
            assert mention.kind in {PULL, TICKET, PORT}
        else:
            url = mention if mention.kind is URL else None
            reached = mention.end


@given(texts())
def test_the_same_text_gives_the_same_mentions(text):
    assert find_entities_by_rule(text) == find_entities_by_rule(text)


@given(st.sampled_from(EntityKind), texts())
def test_canonicalisation_is_idempotent(kind, surface):
    name = canonical_entity_name(kind, surface)
    assert canonical_entity_name(kind, name) == name


@pytest.mark.parametrize(
    ("kind", "surfaces"),
    [
        (PULL, ["PR #42", "PR 42", "pull request 42", "!42", "42"]),
        (FILE, ["src/a.ts", "./src/a.ts", "src\\a.ts", "src//a.ts,"]),
        (VERSION, ["v2.3.1", "2.3.1", "V2.3.1."]),
        (PORT, ["port 8080", ":8080", "localhost:8080"]),
        (PACKAGE, ["sentence_transformers", "Sentence-Transformers", "sentence.transformers"]),
        (DATE, ["3 March 2025", "2025-03-03", "March 3rd, 2025", "3rd of march 2025", "2025/3/3"]),
        (IDENTIFIER, ["Foo.bar", "Foo.bar()", "Foo.bar(x, y)", "`Foo.bar`"]),
        (URL, ["https://Example.com/a", "HTTPS://example.com/a/", "example.com/a."]),
        (EntityKind.PERSON, ["Caroline", "CAROLINE", " caroline,", "(Caroline)"]),
    ],
)
def test_spellings_of_one_entity_meet(kind, surfaces):
    assert len({canonical_entity_name(kind, surface) for surface in surfaces}) == 1


def test_case_parts_files_and_identifiers_where_it_matters():
    assert canonical_entity_name(FILE, "Makefile") != canonical_entity_name(FILE, "makefile")
    assert canonical_entity_name(IDENTIFIER, "MAX_SIZE") != canonical_entity_name(IDENTIFIER, "max_size")


def test_a_file_in_a_command_belongs_to_the_command():
    assert pairs("`pytest tests/test_a.py`") == [(COMMAND, "pytest tests/test_a.py")]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.parametrize("ending", ["", "@", "!", "("])
def test_hostile_repetition_finishes(unit, ending):
    find_entities_by_rule((unit * 10_000)[:10_000] + ending)


@pytest.mark.timeout(60)
@given(st.text(alphabet="aA1._-/\\:@#$`('!= \n", min_size=1, max_size=5))
def test_any_repeated_unit_finishes(unit):
    find_entities_by_rule((unit * 10_000)[:10_000])
