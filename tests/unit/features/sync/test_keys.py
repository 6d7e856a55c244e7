from types import SimpleNamespace

import pyrage
import pytest
from hypothesis import given, strategies as st

from pipeline.features.sync import keys
from pipeline.kernel.errors import InvalidField, PeerRefused

# "all of it" under "correct horse", with age's least work; `lock`, which takes a second, is tested with bundles.
LOCKED = b"""age-encryption.org/v1
-> scrypt mRNSkSH1X+gBU91GNNjeoQ 1
UlIBxvxa/D+GEiM2EbkO9Blr+AzMa2YdNR1gAEK4Ifw
--- cG2MBjXZl/X0iRcc63E0BuMKiNO2WPxgHgfFRE32758
""" + bytes.fromhex("578e51dfaa55f979d032373541c089bd270131eed09b7086dcdccb16b259ff16d73abd5f1cf3d191f2")
secrets = st.binary(min_size=keys.SECRET_BYTES, max_size=keys.SECRET_BYTES).map(bytes.hex)


@given(secrets)
def test_pairing_code_encodes_the_secret_in_any_spelling(secret):
    code = keys.code_of(secret)
    assert [len(group) for group in code.split("-")] == [4] * 8
    assert keys.secret_of(code) == secret
    assert keys.secret_of(f" {code.lower().replace('-', ' ')} ") == secret


@given(secrets, st.integers(0, 31), st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))
def test_a_character_read_wrongly_is_seen(secret, place, character):
    code = keys.code_of(secret).replace("-", "")
    wrong = code[:place] + character + code[place + 1 :]
    if wrong != code:
        with pytest.raises(InvalidField, match="mistyped"):
            keys.secret_of(wrong)


@given(secrets, st.integers(0, 30))
def test_characters_that_changed_places_are_seen(secret, place):
    code = keys.code_of(secret).replace("-", "")
    wrong = code[:place] + code[place + 1] + code[place] + code[place + 2 :]
    if wrong != code:
        with pytest.raises(InvalidField, match="mistyped"):
            keys.secret_of(wrong)


@pytest.mark.parametrize("code", ["", "AAAA", "not a code at all!", "A" * 32, "A" * 200])
def test_invalid_pairing_code_is_rejected(code):
    with pytest.raises(InvalidField, match="mistyped"):
        keys.secret_of(code)


@given(secrets, st.binary(max_size=200))
def test_sealed_content_opens_only_with_the_code(secret, content):
    identity = keys.circle_identity(secret)
    sealed = keys.seal(content, [keys.recipient_of(identity)])
    assert keys.unseal(sealed, [keys.make_age_identity(), identity]) == content
    with pytest.raises(PeerRefused, match="cannot be opened"):
        keys.unseal(sealed, [keys.circle_identity(keys.make_secret())])


@given(st.binary(min_size=1, max_size=100), st.integers(0, 10_000))
def test_a_changed_byte_is_seen(content, place):
    identity = keys.make_age_identity()
    sealed = bytearray(keys.seal(content, [keys.recipient_of(identity)]))
    sealed[place % len(sealed)] ^= 1
    with pytest.raises(PeerRefused):
        keys.unseal(bytes(sealed), [identity])


def test_keys_derived_from_a_secret_differ_by_purpose():
    secret = keys.make_secret()
    assert keys.circle_seed(secret) not in keys.circle_token(secret)
    assert keys.node_of(keys.verify_key_of(keys.make_seed())) != keys.node_of(keys.verify_key_of(keys.make_seed()))


def test_only_the_right_passphrase_unlocks_the_content():
    assert keys.unlock(LOCKED, "correct horse") == b"all of it"
    with pytest.raises(PeerRefused, match="passphrase"):
        keys.unlock(LOCKED, "battery staple")


@pytest.mark.parametrize(("times", "opens"), [(1, True), (keys.BUSY_TRIES, False)])
def test_busy_machine_is_not_reported_as_a_wrong_passphrase(monkeypatch, times, opens):
    refusals = [pyrage.DecryptError("Excessive work parameter for passphrase.")] * times

    def decrypt(content, phrase):
        if refusals:
            raise refusals.pop()
        assert (content, phrase) == (b"locked", "correct horse")
        return b"all of it"

    monkeypatch.setattr(pyrage, "passphrase", SimpleNamespace(decrypt=decrypt))
    if opens:
        assert keys.unlock(b"locked", "correct horse") == b"all of it"
    else:
        with pytest.raises(PeerRefused, match="too busy"):
            keys.unlock(b"locked", "correct horse")
