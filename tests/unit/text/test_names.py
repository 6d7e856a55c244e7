import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from pipeline.text.names import canonical_name


@pytest.mark.parametrize(
    "text",
    [
        "Time Zone",
        "time-zone",
        "time_zone",
        "timeZone",
        "TimeZone",
        " time\t\u00a0 zone ",
        "time.zone",
        "TIME/ZONE",
        "__time--zone__",
    ],
)
def test_spellings_of_one_name_meet(text):
    assert canonical_name(text) == "time_zone"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("timezone", "timezone"),
        ("URLPath", "url_path"),
        ("parseURL", "parse_url"),
        ("HTTP2Port", "http2_port"),
        ("v2", "v2"),
        ("ipv4", "ipv4"),
        ("IPv4", "ipv4"),
        ("userID2", "user_id2"),
        ("Straße", "strasse"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full_width"),
        ("mother's name", "mothers_name"),
        ("mother’s name", "mothers_name"),
        ("color (primary)", "color_primary"),
        ("db::host", "db_host"),
        ("soft\u00adhyphen", "softhyphen"),
        ("tom & jerry", "tom_jerry"),
    ],
)
def test_a_name_has_one_form(text, name):
    assert canonical_name(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("любимый Цвет", "любимый_цвет"),
        ("любимыйЦвет", "любимый_цвет"),
        ("café crème", "café_crème"),
        ("cafe\u0301", "café"),
        ("好きな 色", "好きな_色"),
        ("पसंदीदा रंग", "पसंदीदा_रंग"),
        ("٣ غرف", "٣_غرف"),
    ],
)
def test_letters_marks_and_digits_of_every_script_stay(text, name):
    assert canonical_name(text) == unicodedata.normalize("NFKC", name)


def test_distinguishing_signs_stay_in_canonical_names():
    names = ["C", "C++", "C#", "R&D", "RD", "@alice", "alice", "100%", "100"]
    assert len({canonical_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("text", ["", "  ", "_-_", "'\"", "+ & #", "🐶", "❤️", "…", "\u200b"])
def test_text_without_letters_and_digits_has_no_name(text):
    assert canonical_name(text) == ""


@given(st.text())
@example("a'\u0301")
@example("ꭰᎠꭰ")
@example("İstanbulǅǅa")
@example("ͅΑ")
def test_the_form_of_a_form_is_itself(text):
    name = canonical_name(text)
    assert canonical_name(name) == name


@given(st.text())
def test_a_form_has_no_outer_and_no_double_separator(text):
    name = canonical_name(text)
    assert name == name.strip("_")
    assert "__" not in name
    assert not any(character.isspace() for character in name)


@given(
    st.lists(st.text("abcxyz", min_size=1), min_size=1, max_size=5), st.sampled_from(["_", "-", " ", ".", "/", " - "])
)
def test_the_separator_does_not_matter(words, separator):
    assert canonical_name(separator.join(words)) == "_".join(words)
    assert canonical_name("".join(word.capitalize() for word in words if len(word) > 1)) == "_".join(
        word for word in words if len(word) > 1
    )
