"""Activities: looking words up finds what one expression per activity would find."""

import re

from hypothesis import given, strategies as st

from pipeline.text.lexicon import load_lexicon
from pipeline.text.sentences import list_activities

_LISTS = load_lexicon("activities").table("activities")
_ENTRIES = {activity: _LISTS.words(activity) for activity in _LISTS.entries}


def _search(text: str) -> frozenset[str]:
    """Find the activities with an expression for each."""
    found = set()
    for activity, entries in _ENTRIES.items():
        words = (re.escape(entry).replace("_", r"\s+").replace(r"\*", r"\w*") for entry in entries)
        if re.search(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", text, re.IGNORECASE):
            found.add(activity)
    return frozenset(found)


@st.composite
def _named(draw: st.DrawFn) -> str:
    """Draw an entry as a text may write it, complete or cut."""
    entry = draw(st.sampled_from([entry for entries in _ENTRIES.values() for entry in entries]))
    written = re.sub(r"\*", lambda _: draw(st.sampled_from(["", "ing", "é", "1", " "])), entry)
    written = written.replace("_", draw(st.sampled_from([" ", "\n ", "_"])))
    return draw(st.sampled_from([written, written.capitalize(), written[:-1]]))


@given(parts=st.lists(_named(), min_size=1, max_size=4), between=st.sampled_from([" ", ". ", "-", "x", " the "]))
def test_activity_lookup_equals_the_regular_expressions(parts, between):
    text = between.join(parts)
    assert list_activities(text) == _search(text)
