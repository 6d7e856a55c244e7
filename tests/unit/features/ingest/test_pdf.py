"""What is read of PDF files, what is left out, and that no file can do harm."""

import hashlib
import os

import pytest
from hypothesis import given, strategies as st

from pipeline.features.ingest import pdf as module
from pipeline.features.ingest.fields import Item, Skipped, Unchanged
from pipeline.features.ingest.pdf import (
    PASSAGE_CHARS,
    PdfLimits,
    join_lines,
    passages,
    read_pdf,
    remove_running_lines,
    title_of,
)
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.records import Kind, Source
from pipeline.write.prepare import prepare
from tests.fakes.pdfs import pdf

PARAGRAPH = [
    "The lock is operated from the east bank only; boats wait below the",
    "weir until the lamp turns green, and nobody enters the chamber with a",
    "running engine.",
]


def read(path, known=None, limits=None):
    return list(read_pdf(path, known or {}, lambda _done, _total: None, limits or PdfLimits()))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "lock-keeper handbook.pdf"


def test_a_file_becomes_passages_under_its_title_and_pages(file):
    file.write_bytes(pdf(PARAGRAPH, ["Grease the paddles in March."], title="Handbook for lock keepers"))
    [item] = read(file)
    assert (item.key, item.digest) == (file.name, hashlib.sha256(module.VERSION + file.read_bytes()).hexdigest())
    [draft] = item.drafts
    assert draft.content == (
        "Handbook for lock keepers · pp. 1–2\n\n" + " ".join(PARAGRAPH) + "\nGrease the paddles in March."
    )
    assert (draft.kind, draft.source, draft.tags) == (Kind.DOCUMENT, Source.IMPORT, ("pdf",))
    assert draft.metadata == {"path": file.name, "page": 1, "last_page": 2}
    assert draft.details == {"title": "Handbook for lock keepers", "uri": file.name}
    prepare(draft)


def test_a_long_file_becomes_many_passages_that_lose_nothing(file):
    pages = [[f"Rule {page}-{n} says that boat {n} waits below weir {page}." for n in range(40)] for page in range(6)]
    file.write_bytes(pdf(*pages))
    [item] = read(file)
    assert len(item.drafts) > 6
    assert all(len(draft.content) <= PASSAGE_CHARS + 200 for draft in item.drafts)
    told = "\n".join(draft.content for draft in item.drafts)
    assert all(f"Rule {page}-{n} says" in told for page in range(6) for n in range(40))
    assert [draft.metadata["page"] for draft in item.drafts] == sorted(draft.metadata["page"] for draft in item.drafts)


def test_known_pdf_is_not_read_again(file, monkeypatch):
    file.write_bytes(pdf(PARAGRAPH))
    known = {item.key: item.digest for item in read(file)}
    monkeypatch.setattr(module, "_read", None)
    assert read(file, known) == [Unchanged(file.name)]


def test_a_folder_gives_every_file_below_it_in_order(tmp_path):
    for name in ("b.pdf", "a/z.PDF", "a/note.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pdf(PARAGRAPH))
    told = []
    readings = list(read_pdf(tmp_path, {}, lambda done, total: told.append((done, total))))
    assert [item.key for item in readings] == ["a/z.PDF", "b.pdf"]
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "damaged, or not a PDF"),
        (b"%PDF-1.7 and nothing more", "damaged, or not a PDF"),
        (b"\x89PNG" * 100, "damaged, or not a PDF"),
        (pdf(PARAGRAPH)[:300], "damaged, or not a PDF"),
        (pdf(PARAGRAPH, password="open sesame"), "encrypted"),
        (pdf([], []), "no text: scanned, perhaps"),
    ],
    ids=["empty", "cut short", "a picture", "half", "encrypted", "scanned"],
)
def test_unreadable_pdf_is_skipped_with_a_reason(tmp_path, content, reason):
    (tmp_path / "a.pdf").write_bytes(content)
    (tmp_path / "b.pdf").write_bytes(pdf(PARAGRAPH))
    first, second = read(tmp_path)
    assert first == Skipped("a.pdf", reason)
    assert isinstance(second, Item)


def test_a_file_that_only_its_owner_may_change_is_read(file):
    file.write_bytes(pdf(PARAGRAPH, owner="mine"))
    assert isinstance(read(file)[0], Item)


def test_a_large_file_is_left_out_before_it_is_opened(file, monkeypatch):
    file.write_bytes(pdf(PARAGRAPH))
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 10)
    assert read(file) == [Skipped(file.name, "larger than 0 MiB")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_left_out(file):
    file.write_bytes(pdf(PARAGRAPH))
    file.chmod(0)
    assert read(file) == [Skipped(file.name, "cannot be read: Permission denied")]


def test_pdf_path_that_is_no_file_is_skipped(tmp_path):
    os.mkfifo(tmp_path / "pipe.pdf")
    assert read(tmp_path) == [Skipped("pipe.pdf", "not a file")]


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidField, match="path: there is no such file or folder"):
        read(tmp_path / "nothing.pdf")


def test_of_too_many_pages_or_too_much_text_the_first_are_read(file):
    file.write_bytes(pdf(*([f"Page {n} of the handbook"] for n in range(5))))
    item, skipped = read(file, limits=PdfLimits(pages=2))
    assert [draft.metadata["last_page"] for draft in item.drafts] == [2]
    assert skipped == Skipped(f"{file.name}, from page 3", "beyond 2 pages")
    item, skipped = read(file, limits=PdfLimits(chars=50))
    assert skipped == Skipped(f"{file.name}, from page 3", "beyond 50 characters")


def test_unreadable_page_is_reported_and_other_pages_are_kept(file):
    whole = pdf(["Page one of the handbook"], ["Page two of the handbook"])
    at = whole.index(b"/FlateDecode") if b"/FlateDecode" in whole else 0
    # A filter that nobody knows: the page is there, what stands on it cannot be had.
    file.write_bytes(whole[:at] + b"/NoSuchCodec" + whole[at + 12 :])
    item, skipped = read(file)
    assert [draft.metadata["page"] for draft in item.drafts] == [2]
    assert skipped == Skipped(f"{file.name}, page 1", "unreadable page")


def test_a_bomb_of_zeros_ends_nothing_but_its_reader(tmp_path):
    bomb = pdf([], stream=b"BT (a) Tj ET " + b" " * 300_000_000)
    (tmp_path / "a.pdf").write_bytes(bomb)
    (tmp_path / "b.pdf").write_bytes(pdf(PARAGRAPH))
    assert len(bomb) < 1_000_000
    first, second = read(tmp_path, limits=PdfLimits(seconds=20, memory=1 << 28))
    assert isinstance(first, Skipped)
    assert isinstance(second, Item)


def test_no_link_leads_out_of_the_folder(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.pdf").write_bytes(pdf(PARAGRAPH))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "own.pdf").write_bytes(pdf(PARAGRAPH))
    (folder / "again.pdf").symlink_to(folder / "own.pdf")
    (folder / "out.pdf").symlink_to(tmp_path / "outside" / "secret.pdf")
    (folder / "out").symlink_to(tmp_path / "outside")
    found = read(folder)
    assert {one.key for one in found if isinstance(one, Item)} == {"again.pdf", "own.pdf"}
    assert [one for one in found if isinstance(one, Skipped)] == [Skipped("out.pdf", "leads out of the folder")]


def test_cyclic_and_oversized_pdfs_do_not_stop_the_import(tmp_path):
    loop = pdf(PARAGRAPH).replace(b"/Type /Page\n", b"/Type /Pages\n", 1)
    (tmp_path / "loop.pdf").write_bytes(loop)
    (tmp_path / "xref.pdf").write_bytes(b"%PDF-1.4\nxref\n0 99999999\n" + b"0000000000 65535 f \n" * 1000)
    (tmp_path / "b.pdf").write_bytes(pdf(PARAGRAPH))
    found = read(tmp_path, limits=PdfLimits(seconds=20, memory=1 << 28))
    assert isinstance(found[0], Item)
    assert isinstance(found[-1], Skipped)


@pytest.mark.parametrize("waits", ["import time; time.sleep(60)", "while True: pass"])
def test_a_file_that_takes_too_long_is_left_out(file, tmp_path, monkeypatch, waits):
    program = tmp_path / "program.py"
    program.write_text(waits)
    monkeypatch.setattr(module, "COMMAND", (str(program),))
    file.write_bytes(pdf(PARAGRAPH))
    assert read(file, limits=PdfLimits(seconds=0.2)) == [Skipped(file.name, "takes longer than 0.2 s")]


def test_a_file_whose_reader_dies_is_left_out(file, tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text("import os; print('{\"title\": null}', flush=True); os.abort()")
    monkeypatch.setattr(module, "COMMAND", (str(program),))
    file.write_bytes(pdf(PARAGRAPH))
    assert read(file) == [Skipped(file.name, "too damaged to read")]


@pytest.mark.parametrize("end", ["os.abort()", "sys.exit(0)"])
def test_a_file_whose_reader_stops_in_mid_line_is_left_out_alone(tmp_path, monkeypatch, end):
    program = tmp_path / "program.py"
    told = """'{"title": null}\\n{"page": 1, "text": "Pa'"""
    whole = """'{"title": null}\\n{"page": 1, "text": "Page one"}\\n{"end": null}\\n'"""
    program.write_text(
        f"import os, sys\nif 'a.pdf' in sys.argv[1]:\n    print({told}, end='', flush=True)\n    {end}\n"
        f"print({whole}, end='')"
    )
    monkeypatch.setattr(module, "COMMAND", (str(program),))
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(pdf(PARAGRAPH))
    first, second = read(tmp_path)
    assert first == Skipped("a.pdf", "too damaged to read")
    assert isinstance(second, Item)


def test_nothing_of_the_folder_is_imported(file, tmp_path, monkeypatch):
    file.write_bytes(pdf(PARAGRAPH))
    trap = tmp_path / "trap"
    for name in ("pypdf", "json", "pipeline"):
        (tmp_path / f"{name}.py").write_text(f"open({str(trap)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    assert isinstance(read(file)[0], Item)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("Handbook", "Handbook"),
        (None, "lock keeper 2026"),
        ("", "lock keeper 2026"),
        ("untitled", "lock keeper 2026"),
        ("Microsoft Word - Handbook.docx", "Handbook"),
        ("  Two\n lines ", "Two lines"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_pdf_title_is_cleaned_or_taken_from_the_file_name(given, title):
    assert title_of(given, "manuals/lock_keeper 2026.pdf") == title


def test_repeated_page_headers_and_footers_are_removed():
    def page(n):
        return f"Canal Trust 2026\nHandbook, page {n + 4}\nRule {n}\nBoat 0 waits below weir {2 * n}\nDraft"

    pages = remove_running_lines({n: page(n) for n in range(1, 7)})
    assert pages[1] == page(1)
    assert [pages[n] for n in range(2, 7)] == [f"Rule {n}\nBoat 0 waits below weir {2 * n}" for n in range(2, 7)]
    few = {n: page(n) for n in range(1, 4)}
    assert remove_running_lines(few) == few


def test_lines_become_paragraphs():
    text = (
        "The weir holds back the river at every season, and the gate is\n"
        "opened by hand when the \ufb02ood warning is given by the harbour mas-\n"
        "ter.\n"
        "1. Close the upper gate before anything else is done to the lower\n"
        "2. Open the lower one\n"
    )
    first, *others = join_lines(text).split("\n")
    assert first.endswith("the gate is opened by hand when the flood warning is given by the harbour master.")
    assert others == [
        "1. Close the upper gate before anything else is done to the lower",
        "2. Open the lower one",
    ]


words = st.text(alphabet="abcdefghij ", min_size=1, max_size=400)
pages_of_text = st.dictionaries(st.integers(1, 9), st.lists(words, max_size=8).map("\n".join), max_size=5)


@given(pages_of_text)
def test_passages_hold_every_word_once_in_order(pages):
    found = list(passages(pages))
    assert " ".join(text for _, _, text in found).split() == " ".join(pages[n] for n in sorted(pages)).split()
    assert all(0 < len(text) <= PASSAGE_CHARS + 200 for _, _, text in found)
    spans = [(first, last) for first, last, _ in found]
    assert spans == sorted(spans)
    assert all(first <= last for first, last in spans)
