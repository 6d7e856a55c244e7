import hashlib
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

from pipeline.recall import fact_names
from pipeline.recall.fact_names import FactKey, FactNames, NameVectors, differ_in_ending, is_contraction, same_spelling

# Opposites stand at 0.8, so a synonym needs a little more.
OPPOSITES = {"wife": ("husband", 0.8), "downstream": ("upstream", 0.8), "tenant": ("landlord", 0.8)}
NEAR = {
    **OPPOSITES,
    "film": ("movie", 0.95),
    "picture": ("movie", 0.9),
    "right": ("left", 0.75),
    "database": ("db", 0.75),
    "stewardess": ("steward", 0.92),
    "teachers": ("teacher", 0.9),
    "deployment": ("deploy", 0.95),
    "фильм": ("кино", 0.98),
}


class TableEncoder:
    """The mean of word vectors that stand as near to each other as a table says; counts what it encodes."""

    name = "table"
    dimension = 512

    def __init__(self, same=()):
        self.encoded = []
        self._same = set(same)

    def encode_documents(self, texts):
        self.encoded.extend(texts)
        return np.array([self._vector(re.search("'(.*)'", text)[1].split()) for text in texts], np.float32)

    def _vector(self, words):
        mean = np.mean([self._word(word) for word in words], axis=0)
        return mean / np.linalg.norm(mean)

    def _word(self, word):
        if word in self._same:
            word = "unknown"
        seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        own = np.random.default_rng(seed).normal(size=self.dimension)
        own /= np.linalg.norm(own)
        if word not in NEAR:
            return own
        other, cosine = NEAR[word]
        base = self._word(other)
        own -= (own @ base) * base
        return cosine * base + (1 - cosine**2) ** 0.5 * own / np.linalg.norm(own)


@pytest.fixture
def encoder():
    return TableEncoder()


def attributes(*names):
    return [FactKey("user", name) for name in names]


def match_name(asked, known, encoder, names=None):
    return (names or FactNames()).match(FactKey("user", asked), attributes(*known), encoder)


def test_a_known_key_is_itself_and_nothing_is_encoded(encoder):
    match = match_name("film", ["movie", "film"], encoder)
    assert (match.key.attribute, match.similar, encoder.encoded) == ("film", (), [])


@pytest.mark.parametrize("encoded", [True, False])
def test_separators_and_an_article_make_no_other_name(encoder, encoded):
    known = [FactKey("the_web_app", "time_zone"), FactKey("web_app", "region")]
    match = FactNames().match(FactKey("webapp", "timezone"), known, encoder if encoded else None)
    assert match == fact_names.KeyMatch(known[0], ())
    assert encoder.encoded == []


def test_two_known_spellings_are_asked_about(encoder):
    match = match_name("ti_mezone", ["time_zone", "timezone"], encoder)
    assert match.key.attribute == "ti_mezone"
    assert match.similar == (FactKey("user", "time_zone"), FactKey("user", "timezone"))


def test_one_synonym_is_meant(encoder):
    match = match_name("favorite_film", ["favorite_movie", "favorite_left", "home_town"], encoder)
    assert match == fact_names.KeyMatch(FactKey("user", "favorite_movie"), ())


def test_a_synonym_of_the_subject_is_meant(encoder):
    known = [FactKey("film_club", "city"), FactKey("chess_club", "city")]
    assert FactNames().match(FactKey("movie_club", "city"), known, encoder).key == known[0]


def test_two_synonyms_are_asked_about(encoder):
    match = match_name("favorite_movie", ["favorite_film", "favorite_picture"], encoder)
    assert match.key.attribute == "favorite_movie"
    assert [key.attribute for key in match.similar] == ["favorite_film", "favorite_picture"]


def test_opposites_are_never_merged_however_near_the_names_are(encoder):
    names = "left_margin_of_the_page", "right_margin_of_the_page"
    assert NameVectors(encoder, 9).cosine(*names) > 0.9
    match = match_name(names[0], [names[1]], encoder)
    assert match.key.attribute == names[0]
    assert [key.attribute for key in match.similar] == [names[1]]


def test_a_contraction_needs_to_be_less_near(encoder):
    assert match_name("db_engine", ["database_engine"], encoder).key.attribute == "database_engine"


def test_an_ending_needs_to_be_nearer_unless_it_is_a_plural(encoder):
    assert match_name("stewardess", ["steward"], encoder).key.attribute == "stewardess"
    assert match_name("deployment", ["deploy"], encoder).key.attribute == "deploy"
    assert match_name("teachers", ["teacher"], encoder).key.attribute == "teacher"


def test_other_digits_are_another_name(encoder):
    for asked, other in [("node_1", "node_2"), ("v1_film", "v2_film"), ("v1_2", "v12"), ("ipv4", "ipv6")]:
        assert match_name(asked, [other], encoder) == fact_names.KeyMatch(FactKey("user", asked), ())


def test_another_script_is_asked_about(encoder):
    match = match_name("кино", ["фильм"], encoder)
    assert match == fact_names.KeyMatch(FactKey("user", "кино"), (FactKey("user", "фильм"),))


def test_words_unknown_to_the_encoder_are_no_synonyms():
    assert match_name("qwor", ["zlix"], TableEncoder({"qwor", "zlix"})).similar == ()


def test_word_order_is_asked_about(encoder):
    match = match_name("format_time", ["time_format"], encoder)
    assert match.key.attribute == "format_time"


def test_a_short_form_is_asked_about_with_and_without_an_encoder(encoder):
    known, zone = ["production_url", "pressure"], FactKey("shop", "time_zone")
    for given_encoder in (encoder, None):
        assert [k.attribute for k in match_name("prod_url", known, given_encoder).similar] == ["production_url"]
        assert FactNames().match(FactKey("shop", "tz"), [zone], given_encoder).similar == (zone,)


def test_keys_that_differ_in_both_names_are_not_the_same(encoder):
    match = FactNames().match(FactKey("film", "deploy"), [FactKey("movie", "deployment")], encoder)
    assert match == fact_names.KeyMatch(FactKey("film", "deploy"), ())


def test_nothing_is_merged_before_every_name_was_compared(encoder, monkeypatch):
    monkeypatch.setattr(fact_names, "MAX_NEW_NAMES", 2)
    names = FactNames()
    known = ["favorite_movie", "alpha", "beta", "gamma"]
    first = match_name("favorite_film", known, encoder, names)
    assert (first.key.attribute, [k.attribute for k in first.similar]) == ("favorite_film", ["favorite_movie"])
    assert match_name("favorite_film", known, encoder, names).key.attribute == "favorite_movie"


def test_a_name_is_encoded_once(encoder):
    names = FactNames()
    match_name("weekday", ["home_town", "left_margin"], encoder, names)
    before = len(encoder.encoded)
    for _ in range(3):
        match_name("weekday", ["home_town", "left_margin"], encoder, names)
    assert encoder.encoded[before:] == []


def test_another_encoder_encodes_names_again():
    names = FactNames()
    encoders = TableEncoder(), TableEncoder()
    for encoder in encoders:
        assert match_name("favorite_film", ["favorite_movie"], encoder, names).key.attribute == "favorite_movie"
    assert all("the word 'favorite film'" in encoder.encoded for encoder in encoders)


def test_the_name_used_longest_ago_leaves_first(encoder):
    vectors = NameVectors(encoder, 2)
    vectors.learn(["left", "right"], 2)
    vectors.cosine("left", "left")
    vectors.learn(["movie"], 1)
    assert np.isnan(vectors.cosines("left", ["left", "right", "movie"])).tolist() == [False, True, False]
    assert vectors.cosine("left", "right") == pytest.approx(0.75, abs=0.01)


def test_a_name_that_left_may_have_been_the_nearest_so_nothing_is_merged(encoder):
    known = ["favorite_movie", *(f"{a}_{b}" for a in "abcd" for b in "efgh")]
    assert match_name("favorite_film", known, encoder, FactNames(4)).key.attribute == "favorite_film"
    assert match_name("favorite_film", known, encoder, FactNames(40)).key.attribute == "favorite_movie"


@pytest.mark.parametrize("capacity", [4, 100])
def test_threads_get_the_answer_of_one_or_none(encoder, capacity):
    names = FactNames(capacity)
    known = ["favorite_movie", "db_engine", "left_margin"]
    right = {"favorite_film": "favorite_movie", "database_engine": "db_engine", "right_margin": "right_margin"}
    barrier = threading.Barrier(4)

    def run(_):
        barrier.wait()
        return [(asked, match_name(asked, known, encoder, names).key.attribute) for asked in [*right] * 20]

    with ThreadPoolExecutor(4) as pool:
        answers = {answer for found in pool.map(run, range(4)) for answer in found}
    missed = {(asked, asked) for asked in right} if capacity == 4 else set()
    assert answers <= set(right.items()) | missed


WORDS = st.lists(
    st.sampled_from(["the", "film", "movie", "left", "right", "db", "v1", "v2", "色"]), min_size=1, max_size=3
)


@given(WORDS, st.lists(WORDS, max_size=5))
def test_a_key_is_the_asked_one_or_a_known_one_with_the_same_digits(asked, known):
    keys = attributes(*("_".join(words) for words in known))
    match = FactNames().match(FactKey("user", "_".join(asked)), keys, TableEncoder())
    assert match.key == FactKey("user", "_".join(asked)) or match.key in keys
    assert set(match.similar) <= set(keys)
    assert match.key not in match.similar
    assert re.findall(r"\d", match.key.attribute) == re.findall(r"\d", "_".join(asked))


@pytest.mark.parametrize(
    ("first", "second", "contracted"),
    [
        ("db", "database", True),
        ("package", "pkg", True),
        ("host", "hostname", False),
        ("jon", "john", False),
        ("philip", "phillip", False),
        ("d", "database", False),
        ("base", "database", False),
    ],
)
def test_a_contraction_leaves_letters_out_of_the_middle(first, second, contracted):
    assert is_contraction(first, second) is contracted


@pytest.mark.parametrize(
    ("first", "second", "ending"),
    [
        ("hermano", "hermana", True),
        ("lehrer", "lehrerin", True),
        ("city", "cities", True),
        ("payment", "payments", False),
        ("license", "licence", False),
        ("colour", "color", False),
        ("kids", "children", False),
    ],
)
def test_difference_after_a_shared_stem_is_an_ending(first, second, ending):
    assert differ_in_ending(first, second) is differ_in_ending(second, first) is ending


def test_spelling_looks_past_separators_but_not_between_digits():
    assert same_spelling("data_base", "database")
    assert same_spelling("ip_v4", "ipv4")
    assert not same_spelling("node_1_2", "node_12")
    assert not same_spelling("theme", "me")


STAGING = FactKey("staging", "port")


@pytest.mark.parametrize(
    "asked",
    [
        FactKey("staging", "db_port"),
        FactKey("staging_db", "port"),
        FactKey("staging", "database_port"),
        FactKey("staging_database", "port"),
        FactKey("the_staging_datenbank", "puerto"),
    ],
)
def test_one_attribute_has_one_name_also_without_an_encoder(asked):
    assert FactNames().match(asked, [STAGING, FactKey("production", "port")], None).key == STAGING


def test_a_name_that_fits_several_facts_is_ambiguous():
    known = [FactKey("staging", "database_port"), FactKey("staging", "server_port")]
    assert FactNames().match(STAGING, known, None) == (fact_names.KeyMatch(STAGING, tuple(known)))


def test_an_attribute_of_the_user_matches_its_other_names():
    city = FactKey("user", "city")
    assert FactNames().match(FactKey("user", "town"), [city], None).key == city
    assert FactNames().match(FactKey("user", "dog"), [city], None).key == FactKey("user", "dog")
