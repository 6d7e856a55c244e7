"""Files that a text embeds as data URIs are removed, and its words stay."""

import base64
import textwrap

import pytest
from hypothesis import given, strategies as st

from pipeline.text.normalize import drop_embedded_data

DATA = base64.b64encode(bytes(range(256)) * 4).decode()
WRAPPED = "\n".join(textwrap.wrap(DATA, 76))
URI = f"data:image/png;base64,{DATA}"
SVG = "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg'><path d='M1 1 L 2 (2)' fill='red'/></svg>"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (f"Before\n\n![diagram]({URI})\n\nAfter", "Before\n\ndiagram\n\nAfter"),
        (f'Before ![a pump]({URI} "the pump") after', "Before a pump after"),
        (f"Before ![]({URI}) after", "Before  after"),
        (
            f"![pump][p] is red\n\n[p]: {URI}\n\n# Third section\nPump 4 is red.",
            "pump is red\n\n\n# Third section\nPump 4 is red.",
        ),
        (f"![p]\n\n[p]: <{URI}> 'the pump'\nNext", "p\n\nNext"),
        (f"![pump][]\n\n[pump]:\n  {URI}\nNext", "pump\n\nNext"),
        (f"![x](data:image/png;base64,{WRAPPED})\nNext words", "x\nNext words"),
        (f"[p]: data:image/png;base64,\n{WRAPPED}\nNext words", "Next words"),
        (f"> ![x](data:image/png;base64,{WRAPPED.replace(chr(10), chr(10) + '> ')})\n> Next", "> x\n> Next"),
        (f'<img alt="pump" src="{URI}">', '<img alt="pump" src="">'),
        (f"<img src='data:image/jpeg;base64,{WRAPPED}' alt='pump'>", "<img src='' alt='pump'>"),
        (f'<img src="{SVG}" alt="pump">', '<img src="" alt="pump">'),
        (f"background: url({URI}) no-repeat;", "background: url() no-repeat;"),
        (f"background: url('{URI}');", "background: url('');"),
        (f"[the file](data:application/pdf;name=a.pdf;base64,{DATA}) has it", "the file has it"),
        (f"DATA:IMAGE/PNG;BASE64,{DATA} ends", " ends"),
        (f"data:;base64,{DATA}", ""),
    ],
)
def test_embedded_files_are_removed(text, plain):
    assert drop_embedded_data(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "Use data:image/png;base64,... for icons",
        "The data: one, two, three",
        "metadata: a, b; data:text/plain,hello",
        "![pump](pump.png) and [p]: pump.png",
        "[p]: https://example.org/a.png\n\n![pump][p]",
    ],
)
def test_other_texts_stay(text):
    assert drop_embedded_data(text) == text


@given(st.text(alphabet="data:;base64,/ \n()[]!\"'=AB", max_size=300))
def test_any_text_can_be_read(text):
    assert drop_embedded_data(text).count("\0") == 0
