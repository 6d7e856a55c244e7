"""What a text states, and its stored form."""

import hashlib
import json

from hypothesis import given, strategies as st

from pipeline.text.similarity.statements import LONGEST_CHARS, SHORT_CHARS, VERSION, Statements, store_statements
from tests.unit.recall.test_slot_groups import TEXTS

EXAMPLES = (
    "The port is now 8123 for the gateway. It was 8080 before.",
    "Mia: start table names with 't_' and functions with `f_`. Keep the limit of 30 lines per function.",
    "We moved the queue to Redis; 3 workers read it.",
    "Der Port des Servers ist jetzt 9000.",
    "El límite ya no es 20 sino 40 conexiones.",
    "Nothing to see here.",
)


def read(statements):
    stems = [tuple(sentence) for sentence in statements.sentence_stems] if statements.values else []
    return statements.announces_change, list(statements.values), stems


@given(TEXTS | st.text(max_size=200))
def test_the_stored_form_says_what_the_text_says(text):
    assert read(Statements(text, store_statements(text))) == read(Statements(text))


def test_the_stored_form_of_another_text_or_version_is_not_used():
    text = EXAMPLES[0]
    head, *stems = store_statements(text).split("\n")
    mark, changed, _ = json.loads(head)
    for content, other in ((f"{text} So.", mark), (text, [VERSION + 1, *mark[1:]])):
        stored = "\n".join([json.dumps([other, changed, [["wrong", "wrong slot", 0]]]), *stems])
        assert read(Statements(content, stored)) == read(Statements(content))


def test_a_long_text_announces_a_change_only_at_its_beginning():
    change, rest = "The port is now 8123. ", "The gateway reads the key. "
    assert Statements(change + rest * (SHORT_CHARS // len(rest))).announces_change
    assert not Statements(rest * (SHORT_CHARS // len(rest)) + change).announces_change
    assert not Statements(change + rest * (LONGEST_CHARS // len(rest) + 1)).announces_change


def test_other_rules_have_another_version():
    """If this fails because rules or words changed, increase VERSION and take the new digest."""
    digest = hashlib.sha256("\n".join(map(store_statements, EXAMPLES)).encode()).hexdigest()[:12]
    assert (VERSION, digest) == (2, "3bef90b15424")
