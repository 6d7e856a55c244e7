import pytest

from pipeline.text.names import fact_words, is_named_in, is_same_fact


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("staging port", "staging db port"),
        ("staging db port", "staging database port"),
        ("staging_database port", "staging datenbankport"),
        ("staging datenbank port", "staging base de datos puerto"),
        ("prod database port", "production db port"),
        ("checkout service timeout", "checkout timeout"),
        ("broker_mqtt_de_casa port", "broker mqtt casa puerto"),
    ],
)
def test_the_same_words_name_one_fact(first, second):
    assert is_same_fact(first, second)
    assert is_same_fact(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("staging port", "production port"),
        ("staging port", "staging redis port"),
        ("staging database port", "staging server port"),
        ("staging port", "staging host"),
        ("left_to_right margin", "right_to_left margin"),
        ("database server", "database"),
        ("billing owner", "billing port"),
    ],
)
def test_other_words_name_other_facts(first, second):
    assert not is_same_fact(first, second)
    assert not is_same_fact(second, first)


def test_a_sentence_names_a_fact_by_its_distinctive_words():
    name = fact_words("staging_database port")
    assert is_named_in(name, fact_words("Staging hat keinen Datenbankport mehr"))
    assert is_named_in(name, fact_words("the port on staging changed"))
    assert not is_named_in(name, fact_words("the port on production changed"))
