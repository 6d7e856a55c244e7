import threading

import pytest

from pipeline.kernel.records.people import Caller, Person, Role
from pipeline.kernel.store.home_file import HomeFile
from pipeline.kernel.store.people import People, Token

AT, LATER, LATEST = (f"2026-01-0{day}T00:00:00.000Z" for day in (1, 2, 3))
ADA = Person("ada", "Ada")


@pytest.fixture
def people(tmp_path):
    return People(HomeFile(tmp_path / "home.sqlite"))


def add(people, person=ADA, digest="d", **token):
    people.add(person, AT)
    people.add_token(Token("t", person.id, "laptop", AT, **token), digest)


def test_reading_makes_no_file(people, tmp_path):
    assert not people.exists
    assert people.find("ada") is people.find_caller("d", AT) is people.find_holder("t", AT) is None
    assert people.find_signed_in("ada", AT) is None
    assert people.list_people() == people.list_tokens() == people.list_grants() == []
    assert people.list_ids() == set()
    assert list(tmp_path.iterdir()) == []


def test_its_owner_alone_may_read_it(people, tmp_path):
    add(people)
    assert {file.stat().st_mode & 0o077 for file in tmp_path.glob("home.sqlite*")} == {0}


def test_a_caller_has_every_role_that_was_granted(people):
    add(people)
    people.grant("ada", "red", Role.READER)
    people.grant("ada", "red", Role.OWNER)
    people.grant("ada", "blue", Role.READER)
    expected = Caller(ADA, "t", "person", {"red": Role.OWNER, "blue": Role.READER})
    assert people.find_caller("d", AT) == (expected, None)
    people.record_use("t", LATER)
    assert people.find_caller("d", AT) == (expected, LATER)
    assert people.ungrant("ada", "red")
    assert not people.ungrant("ada", "red")
    assert people.find_holder("t", AT).roles == {"blue": Role.READER}
    assert people.find_signed_in("ada", AT) == Caller(ADA, None, "person", {"blue": Role.READER})


@pytest.mark.parametrize("after", [LATER, LATEST])
def test_a_token_ends_when_it_says(people, after):
    add(people, expires_at=LATER)
    assert people.find_caller("d", AT) is not None
    assert people.find_caller("d", after) is None


def test_revoked_token_or_removed_person_grants_no_access(people):
    add(people)
    people.add(Person("bob", "Bob", is_admin=True), AT)
    people.add_token(Token("u", "bob", "laptop", AT), "e")
    assert people.find_caller("e", AT)[0].token_class == "admin"
    people.revoke(["t"], LATER)
    people.revoke(["t"], LATEST)
    assert people.find_caller("d", AT) is None
    assert people.list_tokens()[0].revoked_at == LATER
    people.remove("bob", LATER)
    assert people.find_caller("e", AT) is people.find("bob") is people.find_signed_in("bob", AT) is None
    assert people.list_ids() == {"ada", "bob"}
    assert [person.id for person in people.list_people()] == ["ada"]


def test_replaced_people_file_is_reopened(people, tmp_path):
    add(people)
    (tmp_path / "home.sqlite").rename(tmp_path / "away.sqlite")
    for log in tmp_path.glob("home.sqlite-*"):
        log.unlink()
    assert people.find_caller("d", AT) is None
    add(people, digest="f")
    assert people.find_caller("f", AT) is not None


def test_many_threads_may_ask_at_once(people):
    add(people)
    found = []
    threads = [threading.Thread(target=lambda: found.append(people.find_caller("d", AT))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert None not in found


def test_signed_out_person_is_accepted_only_by_a_later_sign_in(people):
    add(people)
    people.sign_out("ada", LATER)
    assert people.find_signed_in("ada", AT) is people.find_signed_in("ada", LATER) is None
    assert people.find_signed_in("ada", LATEST) == Caller(ADA, None, "person", {})


def test_person_is_found_by_email_address_until_removed(people):
    add(people)
    people.set_email("ada", "ada@example.com")
    assert people.find_by_email("ada@example.com") == ADA
    assert people.list_identifiers() == {"ada": ("ada@example.com", None)}
    people.remove("ada", LATER)
    assert people.find_by_email("ada@example.com") is None
    # The address is free for whoever comes after.
    people.add(Person("ada-2", "Ada"), LATER)
    people.set_email("ada-2", "ada@example.com")
    assert people.find_by_email("ada@example.com").id == "ada-2"


def test_an_address_and_a_subject_are_apart(people):
    add(people)
    people.add(Person("bob", "Bob"), LATER)
    people.set_email("ada", "ada@example.com")
    people.set_subject("bob", "https://id.example", "ada@example.com")
    assert people.find_by_email("ada@example.com") == ADA
    assert people.find_by_subject("https://id.example", "ada@example.com").id == "bob"
    assert people.find_by_subject("https://other.example", "ada@example.com") is None
    assert people.list_identifiers() == {"ada": ("ada@example.com", None), "bob": (None, "ada@example.com")}
