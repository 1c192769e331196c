"""Encodings that an owner may name for a text file, by the names of Python's codecs.

Supported encodings decode each line independently: codecs with a state across lines (ISO-2022-JP, UTF-7, HZ) would let
one line change the next.
"""

from __future__ import annotations

import codecs
from functools import cache

UTF_8 = "utf-8"
WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
"""Encodings in units of two or four bytes. Without "le" or "be", a byte order mark gives the byte order."""
_ONE_BYTE = (
    *("ascii", "latin-1", "koi8-r", "koi8-u", "cp1125", "kz1048", "ptcp154", "tis-620", "hp-roman8"),
    *(f"iso8859-{part}" for part in (*range(2, 12), 13, 14, 15, 16)),
    *(
        f"cp{page}"
        for page in (437, 720, 737, 775, 850, 852, *range(855, 859), *range(860, 864), 865, 866, 869, 874, 1006)
    ),
    *(f"cp{page}" for page in range(1250, 1259)),
    *(f"mac-{script}" for script in ("roman", "latin2", "cyrillic", "greek", "turkish", "iceland", "croatian")),
)
"""Encodings in which each byte is one character, and ASCII bytes stand for themselves."""
_SEVERAL_BYTES = (
    *("gb2312", "gbk", "gb18030", "big5", "big5hkscs", "cp950", "shift_jis", "cp932", "euc_jp", "euc_kr", "cp949"),
)
"""Encodings with characters of several bytes, none of which is a line end."""


@cache
def _codec_names() -> dict[str, str]:
    names = {codecs.lookup(each).name: each for each in (*WIDE, *_ONE_BYTE, *_SEVERAL_BYTES)}
    return {**names, "utf-8": UTF_8, "utf-8-sig": UTF_8}


def encoding_named(word: str) -> str | None:
    """Return the canonical name of an encoding ("ISO-8859-1" and "latin1" are "latin-1"); None if unsupported."""
    try:
        return _codec_names().get(codecs.lookup(word).name)
    except (LookupError, ValueError):  # a name with a NUL is a ValueError
        return None


def is_one_byte(encoding: str) -> bool:
    """Return whether each byte is a character."""
    return encoding in _ONE_BYTE
