"""Definitions are found by their phrases; a name ends where the text or other texts show it."""

import pytest
from hypothesis import given, strategies as st

from pipeline.text.definitions import choose_name, find_definitions, match_short_form

USED_ELSEWHERE = {("edge", "proxy")}


def names_in(text):
    """The pairs of names that a text defines, if others use only those of USED_ELSEWHERE."""
    pairs = []
    for definition in find_definitions(text):
        names = [
            choose_name(span, lambda name: tuple(name) in USED_ELSEWHERE)
            for span in (definition.first, definition.second)
        ]
        pairs += [tuple(" ".join(name) for name in names)] if all(names) else []
    return pairs


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("The aquarium, i.e. the staging cluster, is wiped each Friday", "aquarium", "staging cluster"),
        ("Gangway aka the edge proxy terminates TLS and logs", "Gangway", "edge proxy"),
        ("The Harbour Master (HM) assigns berths", "Harbour Master", "HM"),
        ("HM (Harbour Master) assigns berths", "HM", "Harbour Master"),
        ("A Passenger Name Record, PNR for short, has six letters", "Passenger Name Record", "PNR"),
        ("Estimated time of arrival, abbreviated ETA, comes from a model", "Estimated time of arrival", "ETA"),
        ('"The ledger" is what we call ledger-db, a store of bookings', "ledger", "ledger-db"),
        ("Nightjar: closes the day. Marketing calls it the day-end run.", "Nightjar", "day-end run"),
        ("Big Bertha = the batch host berth-09, which runs invoices", "Big Bertha", "berth-09"),
        ("Die Lagerverwaltung, kurz LVS, bucht jede Flasche", "Lagerverwaltung", "LVS"),
        ("Der Rechnungslauf (billing run) startet am dritten Werktag", "Rechnungslauf", "billing run"),
        ("Das Kassenbuch, auch Tresor genannt, ist eine Tabelle", "Kassenbuch", "Tresor"),
        ("Die Kelter, also der Server keller-03, hängt im Keller", "Kelter", "keller-03"),
        ("Die Ernteplanung ist klein und heißt intern Rebstock.", "Ernteplanung", "Rebstock"),
        (
            "La bodega de prácticas, es decir el entorno de pruebas",
            "bodega de prácticas",
            "entorno de pruebas",
        ),
        ("Le pressoir, c'est-à-dire le service de facturation, tourne", "pressoir", "service de facturation"),
    ],
)
def test_a_definition_gives_both_names(text, first, second):
    assert (first, second) in names_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "The tests (optional) run at night",
        "The server, also the printer, was replaced in May",
        "The port (5432) is firewalled, see the wiki (ADR-12)",
        "The handler is called once per request and calls the store",
        "x = 3 and then total = base.copy",
        "We shipped it (finally) in March",
        "Oskar (on leave) is back on Monday",
    ],
)
def test_other_text_defines_nothing(text):
    assert names_in(text) == []


def test_without_another_text_an_open_end_is_not_guessed():
    assert names_in("Gangway aka the front door server process terminates TLS") == []


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=5, unique=True))
def test_initials_match_their_words(letters):
    words = [f"{letter}xq" for letter in letters]
    assert match_short_form("".join(letters).upper(), ["zoo", "with", *words]) == tuple(words)


@given(st.text(max_size=300))
def test_any_text_can_be_read(text):
    for definition in find_definitions(text):
        assert definition.first.words
        assert definition.second.words
