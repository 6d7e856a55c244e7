import io
import json

import pytest
from hypothesis import given, strategies as st

from pipeline.sessions.readers import log_lines
from pipeline.sessions.readers.documents import load_document, parse_json
from pipeline.sessions.readers.log_lines import format_mark, iterate_lines, parse_mark, parse_records

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('\\"\n\u2028é🙂'), max_size=60)


@pytest.fixture
def short_lines(monkeypatch):
    monkeypatch.setattr(log_lines, "LONG_LINE", 20)
    monkeypatch.setattr(log_lines, "LONGEST_STRING", 30)
    monkeypatch.setattr(log_lines, "LONGEST_LINE", 400)


@given(st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3), max_size=4), st.booleans())
def test_long_strings_are_cut_to_a_prefix(record, ascii_only):
    line = json.dumps(record, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "LONG_LINE", 0)
        patch.setattr(log_lines, "LONGEST_STRING", 30)
        (cut,) = parse_records(line)
    texts = [(key, value) for key, value in record.items() if isinstance(value, str)]
    kept = [(key, value) for key, value in cut.items() if isinstance(value, str)]
    assert len(cut) <= len(record)
    if len(cut) == len(record):
        # A character may be cut in half.
        assert all(
            new.startswith(short.rstrip("\ufffd")) or short.encode("utf-8", "replace").endswith(b"?")
            for (_, new), (_, short) in zip(texts, kept, strict=True)
        )


@pytest.mark.usefixtures("short_lines")
def test_a_line_that_is_too_long_is_skipped_and_the_next_is_read():
    log = io.BytesIO(b'{"a":1}\n' + b"x" * 1000 + b'\n{"b":2}\n')
    lines = list(iterate_lines(log))
    assert [line.text for line in lines] == [b'{"a":1}\n', None, b'{"b":2}\n']
    assert lines[-1].end == len(log.getvalue())


@pytest.mark.usefixtures("short_lines")
def test_a_line_that_is_too_long_and_incomplete_is_read_later():
    assert [line.text for line in iterate_lines(io.BytesIO(b'{"a":1}\n' + b"x" * 1000))] == [b'{"a":1}\n']


@pytest.mark.parametrize(
    ("line", "records"),
    [
        (b'{"a":1}{"b":2}\n', [{"a": 1}, {"b": 2}]),
        (b' {"a":1} \n', [{"a": 1}]),
        (b'{"a":"\xff"}', [{"a": "\ufffd"}]),
        (b'{"a":1', None),
        (b'{"a":1}]', None),
        (b"[1]", None),
        (b"\x00\x00{", None),
    ],
)
def test_the_objects_of_a_line_are_read_and_no_other_values(line, records):
    assert parse_records(line) == records


def test_a_mark_fits_only_to_the_bytes_before_it():
    log = io.BytesIO(b"one\ntwo\nthree\n")
    mark = format_mark(log, 8, {"x": 1})
    assert parse_mark(log, mark).offset == 8
    assert parse_mark(log, mark).state == {"x": 1}
    assert parse_mark(io.BytesIO(b"one\ntwo\nother lines\n"), mark) is not None
    assert parse_mark(io.BytesIO(b"one\ntwx\nthree\n"), mark) is None
    assert parse_mark(io.BytesIO(b"one"), mark) is None


@pytest.mark.parametrize("values", ["{},", "[],", "1,", '{"a":[{}]},'])
def test_a_line_and_a_document_of_very_many_values_are_not_loaded(tmp_path, monkeypatch, values):
    monkeypatch.setattr(log_lines, "LONG_LINE", 1000)
    monkeypatch.setattr(log_lines, "MOST_VALUES", 5000)
    text = f'{{"a":[{values * 5000}1]}}'
    assert parse_records(text.encode()) is None
    path = tmp_path / "session.json"
    path.write_text(text, encoding="utf-8")
    document, problem = load_document(path)
    assert document is None
    assert "values" in problem
    assert parse_json(text) is None
    # A long text is no value.
    assert parse_records(json.dumps({"a": "x" * 5000}).encode()) == [{"a": "x" * 5000}]
