"""The fast paths of recall give what comparing everything with everything gives."""

import re
from collections import Counter
from itertools import combinations, product

from hypothesis import given, strategies as st

from pipeline.kernel.store.memory_columns import StatementRow
from pipeline.recall import current_values as fast
from pipeline.recall.literal_matches import QuerySigns
from pipeline.recall.rank import join_groups
from pipeline.text import languages
from pipeline.text.sentences import split_sentences
from pipeline.text.similarity import choices
from pipeline.text.similarity.choices import find_stated_values, list_sentence_stems, slot_words
from pipeline.text.similarity.statements import Statements, store_statements
from pipeline.text.tokens import search_tokens, speaker_of

PARTS = [
    "Start table names with 't_'. ",
    "Keep naming views `v_x`. ",
    "Use 30 lines per function. ",
    "Use 40 lines per function. ",
    'Start all table names with "tbl_". ',
    "The port of the staging gateway is 8080. ",
    "The port of the gateway is 9090. ",
    "We talked about tables all day. ",
    "From now on use snake_case names. ",
    "maxRetries of the client is 5, not 7. ",
    "\n",
    "Start methods with x_ and functions with f_. ",
    "Der Port ist 80. ",
    "“quoted” name of tables. ",
    "它是 5 个. ",
    "don't 3' 4x. ",
]
TEXTS = st.builds(
    "{}{}".format, st.sampled_from(("", "Mia: ", "Tom: ")), st.lists(st.sampled_from(PARTS), max_size=5).map("".join)
)
QUERIES = st.lists(st.sampled_from(PARTS[:9]), min_size=1, max_size=2).map("".join) | st.sampled_from(
    ("what is the port of the gateway", "how do we start table names", "lines per function")
)


def state_values(text):
    """State values as find_stated_values does, reading every sentence twice."""
    if len(text) > choices.LONGEST_WITH_VALUES or not choices._VALUE.search(text):
        return []
    stated, before = [], ""
    sentences = split_sentences(text.partition(":")[2] if speaker_of(text) else text)
    for number, sentence in enumerate(sentences):
        values = list(choices._read_slots(sentence, choices._VALUE.finditer(sentence), before))
        stated += [(value, slot, number) for value, slot in values]
        before = "" if values else sentence
    return stated


def list_elsewhere(content, value):
    """Return the stems that only occur in the other sentences of a text."""
    sentences = list_sentence_stems(content)
    return frozenset().union(*sentences).difference(value.slot, sentences[value.sentence])


def group_by_all_pairs(rows, text):
    """Group by comparing all values of all pairs."""
    asked = frozenset(slot_words(text))
    stated = {}
    for row in rows:
        values = dict.fromkeys(
            value
            for value in find_stated_values(row.content)
            if value.value not in text and len(list_elsewhere(row.content, value) & asked) < fast.EXTRA_WORDS
        )
        values = sorted(values, key=lambda value: len(value.slot & asked), reverse=True)[: fast.MOST_VALUES]
        if values:
            stated[row.seq] = values
    answering = {seq: [value for value in values if fast._answers(value, asked)] for seq, values in stated.items()}
    if any(answering.values()):
        stated = answering
    by_seq = {row.seq: row for row in rows}
    return join_groups(
        (seq, other)
        for seq, other in combinations(stated, 2)
        if any(fast._give_other_values(one, another, asked) for one, another in product(stated[seq], stated[other]))
        and fast._may_replace(by_seq[seq], by_seq[other])
    )


@given(TEXTS | st.text(max_size=200))
def test_values_are_those_of_the_plain_reading(text):
    assert list(find_stated_values(text)) == state_values(text)


@given(st.text(alphabet="keptSTARTİıſ ing\n.'", max_size=60))
def test_words_of_a_slot_ignore_the_verb_before_a_naming(text):
    plain = [choices._SAME.get(stem, stem) for stem in search_tokens(choices._ASPECT.sub("", text))]
    assert slot_words(text) == [stem for stem in plain if stem not in choices._GENERAL]


def read_statements(rows):
    """Read every other text's statements from their stored form."""
    stored = {row.seq: store_statements(row.content) if row.seq % 2 else None for row in rows}
    return {row.seq: Statements(row.content, stored[row.seq]) for row in rows}


@given(st.lists(st.tuples(TEXTS, st.integers(0, 3), st.booleans()), max_size=8), QUERIES)
def test_groups_are_those_of_all_pairs(texts, query):
    rows = [
        StatementRow(
            seq, content, f"2026-01-0{day + 1}", "fact", "user", "workspace", "", None, "trusted", int(pinned), 0
        )
        for seq, (content, day, pinned) in enumerate(texts, 1)
    ]
    assert sorted(fast._group_by_slot(rows, read_statements(rows), query)) == sorted(group_by_all_pairs(rows, query))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_pairs_join_into_groups(pairs):
    groups = fast.SlotGroups()
    for seq, other in pairs:
        if not groups.are_joined(seq, other):
            groups.join(seq, other)
    assert sorted(groups.list_groups()) == sorted(join_groups({seq, other} for seq, other in pairs if seq != other))


@given(TEXTS | st.text(max_size=200), QUERIES)
def test_signs_are_those_of_the_tokens(text, query):
    signs = QuerySigns(search_tokens(query))
    assert signs.read(text) == signs.join(search_tokens(text))


@given(
    st.lists(
        st.sampled_from(
            ["der", "die", "is", "the", "café", "Straße", "Иван", "他", "el", "los", "de", "ÀÉ", "x1", "İ"]
        ),
        max_size=20,
    ).map(" ".join)
)
def test_language_is_judged_as_by_counting_every_word(text):
    written = re.findall(r"[^\W\d_]+", text)
    known = languages._languages_of_words()
    counts = Counter(language for word in written for language in known.get(word.lower(), ()))
    english = counts.pop("english", 0)
    telling = max(counts.values(), default=0) + sum(
        not word.isascii() and word.islower() and len(word) > 1 for word in written
    )
    is_other = languages._is_in_other_script(written)
    assert languages.may_be_foreign(text) == (telling > english or is_other)
    share = max(languages.MIN_WORDS, languages.MIN_SHARE * len(written))
    assert languages.is_foreign(text) == (is_other or (telling >= share and telling > english))
