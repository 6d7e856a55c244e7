"""Results are computed once per text, and the cache stays bounded."""

from hypothesis import given, strategies as st

from pipeline.text.text_cache import cache_by_text


def count_calls(most):
    calls = []

    @cache_by_text(most)
    def measure(text):
        calls.append(text)
        return len(text)

    return measure, calls


@given(st.lists(st.text(max_size=5)))
def test_a_cached_result_is_the_computed_one(texts):
    measure, calls = count_calls(100)
    assert [measure(text) for text in texts] == list(map(len, texts))
    assert sorted(calls) == sorted(set(texts))


def test_a_text_with_a_lone_surrogate_has_a_result():
    measure, _ = count_calls(2)
    assert measure("\ud800") == 1


def test_a_full_cache_drops_its_older_half():
    measure, calls = count_calls(4)
    for text in ("a", "b", "c", "d", "e", "d", "a"):
        measure(text)
    assert calls == ["a", "b", "c", "d", "e", "a"]
