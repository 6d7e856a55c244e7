"""Front matter as notes' programs write it: titles, dates, tags and summaries are found, or the reason is given."""
# Reported of comparable tools: wormi4ok/evernote2md#111, siyuan-note/siyuan#10878

import os
from datetime import UTC, datetime

import pytest

from pipeline.features.ingest.fields import Item, Skipped
from pipeline.features.ingest.front_matter import FrontMatter, parse_moment, split_front_matter
from pipeline.features.ingest.markdown import read_markdown

MIDNIGHT = "T00:00:00.000Z"


def read(path):
    return list(read_markdown(path, {}, lambda *_: None))


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("title: A note\ntags:\n  - one\n  - 'two'\n", FrontMatter("A note", tags=("one", "two"))),
        ("Title: 'A: note'\n", FrontMatter("A: note")),
        ("tags: one, #two\naliases: [x]\n", FrontMatter(tags=("one", "two", "x"))),
        ("tags: '#a/b #c'\nkeywords: k\ncategories: [c d]\n", FrontMatter(tags=("a/b", "c", "k", "c d"))),
        ("title:\nnested:\n  title: no\n", FrontMatter()),
        ("", FrontMatter()),
        ("# only a comment\n", FrontMatter()),
        # Claude Code's own memory files.
        ("name: testing\ndescription: Prefers real Redis\n", FrontMatter("testing", "Prefers real Redis")),
        ("title: >-\n  Over\n  lines\nsummary: |\n  A\n  B\n", FrontMatter("Over lines", "A\nB")),
        ("title: Plain # not part\n", FrontMatter("Plain")),
        ("title: C# in depth\n", FrontMatter("C# in depth")),
        ("title: Governance: the split\ntags: [a]\n", FrontMatter("Governance: the split", tags=("a",))),
        ("title: It's: here # why\n", FrontMatter("It's: here")),
        ("title: @home\n", FrontMatter("@home")),
        ("title: [Draft] Plan\n", FrontMatter("[Draft] Plan")),
        ("title: *Important* things\n", FrontMatter("*Important* things")),
        ("title: 2022\n", FrontMatter("2022")),
        ("title: yes\n", FrontMatter("yes")),
    ],
)
def test_front_matter_is_parsed_with_any_line_end(front, expected):
    assert split_front_matter(f"---\n{front}---\nBody\n") == (expected, "Body\n")
    for end in ("\r\n", "\r"):
        assert split_front_matter(f"---\n{front}---\nBody\n".replace("\n", end)) == (expected, "Body\n")


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2022-02-03", f"2022-02-03{MIDNIGHT}"),
        ("2022/05/06", f"2022-05-06{MIDNIGHT}"),
        ("2022.05.06", f"2022-05-06{MIDNIGHT}"),
        ("2022-6-7", f"2022-06-07{MIDNIGHT}"),
        ("2022-6-7 9:05", "2022-06-07T09:05:00.000Z"),
        ("2022-05", f"2022-05-01{MIDNIGHT}"),
        ("20220507", f"2022-05-07{MIDNIGHT}"),
        ("2022-09-10T11:12", "2022-09-10T11:12:00.000Z"),
        ("2023-08-27 14:34:08Z", "2023-08-27T14:34:08.000Z"),
        ("2021-03-05 10:20:30 +0100", "2021-03-05T09:20:30.000Z"),
        ("2021-03-05 10:20:30 UTC", "2021-03-05T10:20:30.000Z"),
        ("[[2022-08-09]]", f"2022-08-09{MIDNIGHT}"),
        ("May 6, 2022", f"2022-05-06{MIDNIGHT}"),
        ("May 6th, 2022", f"2022-05-06{MIDNIGHT}"),
        ("6 May 2022", f"2022-05-06{MIDNIGHT}"),
        ("Fri, 06 May 2022 10:00:00 +0200", "2022-05-06T08:00:00.000Z"),
        ("Sept. 1, 2022 1:30 PM", "2022-09-01T13:30:00.000Z"),
        ("1654560000", "2022-06-07T00:00:00.000Z"),
        ("1654560000000", "2022-06-07T00:00:00.000Z"),
        ("2022-13-45", None),
        ("2022", None),
        ("someday", None),
        ("05/06/2022", None),
    ],
)
def test_dates_are_read_in_the_forms_that_programs_write(written, moment):
    assert parse_moment(written) == moment


@pytest.mark.parametrize("name", ["date", "Created", "created_at", "createdAt", "date created", "pubDate", "lastmod"])
def test_a_date_is_found_under_its_usual_names(name):
    front, _ = split_front_matter(f"---\n{name}: 2022-06-07 # the day\n---\n")
    assert front.occurred_at == f"2022-06-07{MIDNIGHT}"


def test_obsidian_links_its_dates_with_and_without_quotes():
    for written in ("'[[2022-08-09]]'", "[[2022-08-09]]"):
        front, _ = split_front_matter(f"---\ncreated: {written}\n---\n")
        assert front.occurred_at == f"2022-08-09{MIDNIGHT}"


@pytest.mark.parametrize(
    "text",
    [
        '+++\ntitle = "Post"\ndate = 2019-07-08T09:10:11Z\ntags = ["a"]\n+++\nBody',
        '{\n  "title": "Post",\n  "date": "2019-07-08T09:10:11Z",\n  "tags": ["a"]\n}\nBody',
        '+++\r\ntitle = "Post"\r\ndate = 2019-07-08 09:10:11\r\ntags = ["a"]\r\n+++\r\nBody',
    ],
)
def test_toml_and_json_are_front_matter_too(text):
    front, body = split_front_matter(text)
    assert front == FrontMatter("Post", occurred_at="2019-07-08T09:10:11.000Z", tags=("a",))
    assert body.strip() == "Body"


@pytest.mark.parametrize(
    "text", ["---\nA text between rules.\n---\nMore\n", "---\nno end\n", "{not json}\n", '{"a": 1} and more', "+++\n"]
)
def test_text_without_front_matter_is_unchanged(text):
    assert split_front_matter(text) == (FrontMatter(), text)


@pytest.mark.parametrize(
    "block",
    [
        "a: [1,\n  2\n",
        "a: &x [1]\nb: [*x, *x]\n",
        "a: " + "[" * 50 + "]" * 50 + "\n",
        "- : -\n: :\nx\n",
        "? {a: b}\n: c\n",
    ],
)
def test_front_matter_that_cannot_be_read_is_named_and_its_words_are_kept(tmp_path, block):
    (tmp_path / "note.md").write_text(f"---\n{block}title2: kept words\n---\nBody\n")
    item, skipped = read(tmp_path)
    assert isinstance(item, Item)
    assert "kept words" in item.drafts[0].content
    assert isinstance(skipped, Skipped)
    assert skipped.key == "note.md"
    assert skipped.reason.startswith("partly: front matter cannot be read: ")


def test_a_date_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "note.md").write_text("---\ndate: someday\n---\nBody\n")
    assert read(tmp_path)[1] == Skipped("note.md", "partly: date: 'someday' is not a date")


def test_the_summary_of_a_note_is_part_of_its_text(tmp_path):
    (tmp_path / "a.md").write_text("---\nname: testing\ndescription: Prefers real Redis\n---\n# Later\n\nSee March.\n")
    (tmp_path / "b.md").write_text("---\ndescription: Only this\n---\n")
    texts = [draft.content for item in read(tmp_path) for draft in item.drafts]
    assert texts == ["testing\n\nPrefers real Redis", "testing › Later\n\nSee March.", "b\n\nOnly this"]


@pytest.mark.parametrize(
    ("name", "text", "moment"),
    [
        ("2021-03-05-welcome.md", "Body", f"2021-03-05{MIDNIGHT}"),
        ("2022-08-09.md", "Body", f"2022-08-09{MIDNIGHT}"),
        ("202208091230 zettel.md", "Body", f"2022-08-09{MIDNIGHT}"),
        ("2021-03-05-x.md", "---\ndate: 2020-01-02\n---\nBody", f"2020-01-02{MIDNIGHT}"),
        ("note.md", "Body", "2019-07-08T09:10:11.000Z"),
        ("note.md", "---\ndate: someday\n---\nBody", "2019-07-08T09:10:11.000Z"),
        ("2022-99-99.md", "Body", "2019-07-08T09:10:11.000Z"),
    ],
)
def test_a_note_without_a_date_is_as_old_as_its_name_or_its_file_says(tmp_path, name, text, moment):
    file = tmp_path / name
    file.write_text(text)
    written_at = datetime(2019, 7, 8, 9, 10, 11, tzinfo=UTC).timestamp()
    os.utime(file, (written_at, written_at))
    assert read(tmp_path)[0].drafts[0].occurred_at == moment


def test_a_note_in_utf_16_is_read(tmp_path):
    (tmp_path / "note.md").write_bytes("---\ntitle: Größe\n---\nBody".encode("utf-16"))
    assert read(tmp_path)[0].drafts[0].content == "Größe\n\nBody"
