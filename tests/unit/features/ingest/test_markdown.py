"""Markdown is read section by section: headings head, code stays whole, what stands in front is understood."""

import os
import re
from itertools import zip_longest

import pytest
from hypothesis import given, strategies as st

from pipeline.features.ingest.fields import Unchanged
from pipeline.features.ingest.front_matter import FrontMatter, split_front_matter
from pipeline.features.ingest.markdown import MAX_FILE_BYTES, read_markdown, split_sections
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Kind
from tests.fakes.exports import again, items, read, reasons_by_key

NOTE = """---
title: "Van rules"
date: 2026-03-01
tags: [logistics, Cold Chain]
---
Before anything else.

# Van rules

## Doors

Doors stay shut.

```sh
# no heading
## nor this
```

### At stops

The driver opens one door.

## Fuel ##

Diesel only.
"""


def _paths(text):
    return [(section.path, section.text) for section in split_sections(text)]


def _note(tmp_path, text=NOTE, name="rules.md"):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_section_is_a_memory_under_its_headings(tmp_path):
    (item,) = items(read(read_markdown, _note(tmp_path))).values()
    assert item.key == "rules.md"
    assert [draft.content for draft in item.drafts] == [
        "Van rules\n\nBefore anything else.",
        "Van rules › Doors\n\nDoors stay shut.\n\n```sh\n# no heading\n## nor this\n```",
        "Van rules › Doors › At stops\n\nThe driver opens one door.",
        "Van rules › Fuel\n\nDiesel only.",
    ]
    draft = item.drafts[2]
    assert draft.kind is Kind.DOCUMENT
    assert draft.details == {"title": "Van rules › Doors › At stops", "uri": "rules.md"}
    assert draft.tags == ("markdown", "logistics", "cold-chain")
    assert draft.occurred_at == "2026-03-01T00:00:00.000Z"
    assert draft.metadata == {"title": "Van rules", "path": "rules.md"}
    assert draft.session_id == "markdown:rules.md"


@pytest.mark.parametrize("name", ["2026-03-14.md", "2026_03_14.md", "20260314 oven.md"])
def test_a_daily_note_has_the_date_of_its_name(tmp_path, name):
    (item,) = items(read(read_markdown, _note(tmp_path, "The oven was repaired.", f"journals/{name}"))).values()
    assert item.drafts[0].occurred_at == "2026-03-14T00:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("# Only one\n\ntext\n\n## Part\n\nmore", "Only one"),
        ("## Low\n\ntext", "notes › Low"),
        ("# One\n\ntext\n\n# Two\n\nmore", "notes › One"),
        ("plain text", "notes"),
    ],
)
def test_the_title_is_the_only_topmost_heading_or_the_name_of_the_file(tmp_path, text, heading):
    (item,) = items(read(read_markdown, _note(tmp_path, text, "notes.md"))).values()
    assert item.drafts[0].content.split("\n\n")[0] == heading


def test_a_folder_is_read_with_all_below_it(tmp_path):
    _note(tmp_path, "# Agents\n\nRun the tests.", "CLAUDE.md")
    _note(tmp_path, "Leeks.", "vault/plants/leeks.markdown")
    _note(tmp_path, "Settings.", "vault/.obsidian/hidden.md")
    _note(tmp_path, "", "vault/empty.md")
    _note(tmp_path, b"\xff\xfe\x00", "vault/odd.md")
    _note(tmp_path, b"x" * (MAX_FILE_BYTES + 1), "vault/large.MD")
    _note(tmp_path, "no markdown", "vault/notes.txt")
    (tmp_path / "vault" / "out.md").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "vault" / "pipe.md")
    readings = read(read_markdown, tmp_path)
    assert items(readings).keys() == {"CLAUDE.md", "vault/plants/leeks.markdown"}
    assert reasons_by_key(readings) == {
        "vault/empty.md": "no text",
        "vault/odd.md": "not valid UTF-8",
        "vault/large.MD": "larger than 8 MiB",
        "vault/out.md": "not a regular file",
        "vault/pipe.md": "not a regular file",
    }


def test_markdown_note_is_unchanged_until_a_byte_changes(tmp_path):
    path = _note(tmp_path)
    again(read_markdown, path)
    known = {key: item.digest for key, item in items(read(read_markdown, path)).items()}
    assert read(read_markdown, path, known) == [Unchanged("rules.md")]
    path.write_text(NOTE + "And oil.\n")
    assert items(read(read_markdown, path, known)).keys() == {"rules.md"}


def test_a_folder_without_markdown_is_refused(tmp_path):
    with pytest.raises(InvalidField, match="no file that ends in"):
        read(read_markdown, tmp_path)
    with pytest.raises(InvalidField, match="is not a file or folder"):
        read(read_markdown, tmp_path / "nowhere.md")


def test_headings_nest_by_their_level():
    assert _paths("# A\na\n### B\nb\n## C\nc\n# D\nd") == [
        (("A",), "a"),
        (("A", "B"), "b"),
        (("A", "C"), "c"),
        (("D",), "d"),
    ]


@pytest.mark.parametrize("line", ["#no heading", "####### seven", "    # code", "\\# escaped", "text # not"])
def test_text_that_resembles_a_heading_is_text(line):
    assert _paths(f"# A\n\n{line}\n") == [(("A",), line)]


@pytest.mark.parametrize(
    "block",
    [
        "```\n# x\n```",
        "~~~ python\n# x\n```\n# y\n~~~",
        "````\n```\n# x\n```\n````",
        "   ```\n# x\n   ```",
        "```\n# never closed",
    ],
)
def test_no_heading_splits_a_code_block(block):
    assert _paths(f"# A\n\n{block}\n") == [(("A",), block)]


def test_after_a_code_block_headings_count_again():
    assert _paths("```\n# x\n```\n# A\na") == [((), "```\n# x\n```"), (("A",), "a")]
    assert _paths("``` not `code`\n# A\na") == [((), "``` not `code`"), (("A",), "a")]


def test_an_underlined_line_is_a_heading():
    assert _paths("Title\n=====\na\n\nPart\n---\nb") == [(("Title",), "a"), (("Title", "Part"), "b")]
    # A rule, a list, a table and the end of a longer paragraph are none.
    for text in ("a\n\n---\nb", "- a\n---\nb", "| a |\n---\nb", "one\ntwo\n---\nb"):
        assert _paths(text) == [((), text)]


def test_a_rule_at_the_beginning_is_no_front():
    assert split_front_matter("---\nBody without an end\n") == (FrontMatter(), "---\nBody without an end\n")
    assert split_front_matter("Text\n---\na: b\n---\n") == (FrontMatter(), "Text\n---\na: b\n---\n")


LINE = st.sampled_from(["# A", "## B", "```", "~~~", "text text", "", "---", "===", "- x", "    code", "#", "title: x"])


@given(st.lists(LINE | st.text(max_size=12).filter(lambda text: not set("\r\x0b\x0c\x85\u2028\u2029") & set(text))))
def test_every_line_that_says_something_is_kept(lines):
    text = "\n".join(lines)
    kept = "\n".join("\n".join((*section.path, section.text)) for section in split_sections(text))
    said = text.splitlines()
    for line, below in zip_longest(said, said[1:], fillvalue=""):
        # A line that is underlined is a heading.
        heads = line.startswith("text text") and re.fullmatch(r" {0,3}(-{2,}|=+)[ \t]*", below)
        if line.startswith(("- x", "    code", "text text")) and not heads:
            assert line in kept


@pytest.mark.parametrize("text", ["# A\n", "text text\n---\n", "text text\n===\n# A\n"])
def test_a_heading_that_heads_nothing_says_nothing(text):
    assert list(split_sections(text)) == []


def test_long_lines_of_one_sign_are_read_in_one_pass():
    """A pattern that tries every place of such a line anew would take hours."""
    for sign in ("#", " ", "-", "=", "`", "~", "# ", "- ", "|", ">", '"', "[", "\t"):
        line = sign * (1_000_000 // len(sign)) + "x"
        assert len(list(split_sections(f"{line}\ntext"))) == 1


def test_a_long_section_is_split_under_its_heading(tmp_path):
    (item,) = items(read(read_markdown, _note(tmp_path, "# A\n\n" + "Doors stay shut. " * 2000))).values()
    assert len(item.drafts) > 3
    assert all(draft.content.startswith("A\n\nDoors") for draft in item.drafts)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("mem.jsonl", b'{"content": "a"}\n{"content": "b"}\n', "lines of JSON. Use `reverie import jsonl`"),
        ("export.json", b'[\n  {"uuid": "x"}\n]', "JSON. Use the import of the program"),
        ("manual", b"%PDF-1.7 \x00", "a PDF. Use `reverie index pdf`"),
        ("export.zip", b"PK\x03\x04\x00", "a ZIP archive"),
        ("page.html", b"<!DOCTYPE html><p>", "a page of HTML"),
        ("pmb.db", b"SQLite format 3\x00", "`reverie import pmb`"),
        ("photo.png", b"\x89PNG\r\n\x1a\n\x00", "a binary file"),
    ],
)
def test_file_of_another_format_is_rejected_with_its_import(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidField, match=re.escape(f"{name} is not Markdown but ")) as refused:
        list(read_markdown(tmp_path / name, {}, lambda *_: None))
    assert told in str(refused.value)


@pytest.mark.parametrize("name", ["NOTES", "notes.txt", "plan.mdx", "todo.md"])
def test_a_text_by_another_name_is_read(tmp_path, name):
    (tmp_path / name).write_text("[x] done\n\nThe port is 6543, {as ever}.\n")
    assert len(list(read_markdown(tmp_path / name, {}, lambda *_: None))) == 1


def test_images_in_a_note_are_left_out_before_its_sections_are_made(tmp_path):
    data = "iVBORw0KGgo" * 6000
    text = f"# Tariffs\n\n![diagram](data:image/png;base64,{data})\n\nIt caches.\n\n[p]: data:image/png;base64,{data}\n"
    (item,) = items(read(read_markdown, _note(tmp_path, f"{text}\n# Pumps\n\n![pump][p] 4 is red."))).values()
    assert [draft.content for draft in item.drafts] == [
        "rules › Tariffs\n\ndiagram\n\nIt caches.",
        "rules › Pumps\n\npump 4 is red.",
    ]
