"""PDF files of plain lines, as small as they can be."""

import io

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def pdf(*pages, title=None, password=None, owner=None, stream=None):
    """Return a file of pages, each a list of lines; `stream` is the drawing of every page in place of them."""
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica", "/Encoding": "/WinAnsiEncoding"}
    named = DictionaryObject({NameObject(name): NameObject(value) for name, value in font.items()})
    for lines in pages:
        page = writer.add_blank_page(612, 792)
        resources = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): named})})
        page[NameObject("/Resources")] = resources
        drawing = DecodedStreamObject()
        drawing.set_data(stream if stream is not None else _draw(lines))
        page[NameObject("/Contents")] = writer._add_object(drawing.flate_encode())
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None or owner is not None:
        writer.encrypt(password or "", owner, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _draw(lines):
    shown = ["BT /F1 11 Tf 14 TL 50 760 Td"]
    for line in lines:
        escaped = line.encode("cp1252").replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")
        shown.append(f"({escaped.decode('cp1252')}) Tj T*")
    return ("\n".join(shown) + "\nET").encode("cp1252")
