"""Remove files that are embedded in a text as data URIs, such as the images of a note."""

import re

# A shorter URI is an example in prose.
SHORTEST_DATA = 64
_TYPE = r"data:(?:[a-z]+/[\w.+-]+)?(?:;(?!base64)[\w.-]+(?:=[\w.-]+)?)*+"
_URI = re.compile(
    # In lines of base64, the last one is short.
    rf"{_TYPE};\s*base64,\s*+[\w+/%-]*+(?:\s*\n[ \t>]*+[\w+/%-]{{40,}}+)*+"
    r"(?:\s*\n[ \t>]*+[\w+/%-]++(?==|\s*[)\"'>]))?=*+"
    rf"|(?<=\"){_TYPE},[^\"]*+|(?<='){_TYPE},[^']*+|{_TYPE},[^\s)\"'>]*+",
    re.IGNORECASE,
)
_DEFINITION = re.compile(r"^[ \t>]*\[([^\]\n]{1,200})\]:\s*<?\0>?(?:[ \t]+[\"'(][^\n]*)?[ \t]*\n?", re.MULTILINE)
_PICTURE = re.compile(r"!?\[([^\[\]\n]*+)\]\(\s*<?\0>?(?:\s+(?:\"[^\"\n]*+\"|'[^'\n]*+'))?\s*\)")
_REFERENCE = re.compile(r"!\[([^\[\]\n]*+)\](?:\[([^\[\]\n]*+)\])?")
_MARK = "\0"


def drop_embedded_data(text: str) -> str:
    """Return a text without embedded files; of a picture, its description stays."""
    if "data:" not in text.lower():
        return text
    marked = _URI.sub(lambda uri: uri[0] if len(uri[0]) < SHORTEST_DATA else _MARK, text.replace(_MARK, ""))
    if _MARK not in marked:
        return text
    labels = {match[1].casefold() for match in _DEFINITION.finditer(marked)}
    plain = _PICTURE.sub(r"\1", _DEFINITION.sub("", marked))

    def describe(picture: re.Match[str]) -> str:
        return picture[1] if (picture[2] or picture[1]).casefold() in labels else picture[0]

    return _REFERENCE.sub(describe, plain).replace(_MARK, "")
