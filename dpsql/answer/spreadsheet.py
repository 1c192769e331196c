"""Answers as spreadsheet workbooks: Office Open XML (ECMA-376), limited to the few parts that every program reads."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

from dpsql.answer.export_formats import Column
from dpsql.answer.number_format import printable

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_PLAIN, _DATE, _TIMESTAMP, _BOLD = range(4)
_FIRST_DAY = datetime(1899, 12, 30)
_FIRST_TRUE_DATE = datetime(1900, 3, 1)
"""Excel numbers earlier days differently, since it takes 1900 for a leap year."""
_MOST_TEXT = 32_767

_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="2"><font/><font><b/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="4"><xf/>'
    '<xf numFmtId="164" applyNumberFormat="1"/><xf numFmtId="165" applyNumberFormat="1"/>'
    '<xf fontId="1" applyFont="1"/></cellXfs><cellStyles count="1">'
    '<cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


def as_workbook(columns: Sequence[Column], notes: Sequence[str]) -> bytes:
    """Return a workbook of two sheets: columns with their names in the first row, and the lines below the answer."""
    rows = [[_text(each.name, _BOLD) for each in columns]]
    rows += [[_cell(cell) for cell in row] for row in zip(*(each.cells for each in columns), strict=True)]
    sheets = {"answer": rows, "notes": [[_text(note)] for note in notes]}
    relations = "".join(
        _relation(f"rId{place}", "worksheet", f"worksheets/sheet{place}.xml") for place in range(1, len(sheets) + 1)
    )
    listed = "".join(
        f'<sheet name="{name}" sheetId="{place}" r:id="rId{place}"/>' for place, name in enumerate(sheets, start=1)
    )
    types = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="{_TYPES}.{kind}+xml"/>'
        for name, kind in (
            ("workbook", "sheet.main"),
            ("styles", "styles"),
            *((f"worksheets/sheet{place}", "worksheet") for place in range(1, len(sheets) + 1)),
        )
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f"{types}</Types>",
        "_rels/.rels": _relations(_relation("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations(relations + _relation("rId9", "styles", "styles.xml")),
        "xl/styles.xml": _STYLES,
    }
    for place, cells in enumerate(sheets.values(), start=1):
        lines = "".join(f"<row>{''.join(row)}</row>" for row in cells)
        parts[f"xl/worksheets/sheet{place}.xml"] = (
            f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
        )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            part = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # fixed time, so that equal answers give equal bytes
            file.writestr(part, (_HEAD + text).encode(), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _relations(text: str) -> str:
    return f'<Relationships xmlns="{_RELATIONS}">{text}</Relationships>'


def _relation(name: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"/>'


def _cell(value: Any) -> str:
    """Return a cell: empty for NULL, text if a spreadsheet has no such number. Texts are never read as formulas."""
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value!r}</v></c>" if math.isfinite(value) else _text(str(value))
    if not isinstance(value, date):
        return _text(str(value))
    moment = value if isinstance(value, datetime) else datetime.combine(value, time())
    if moment < _FIRST_TRUE_DATE:
        return _text(value.isoformat())
    days = (moment - _FIRST_DAY).total_seconds() / 86_400
    style = _TIMESTAMP if isinstance(value, datetime) else _DATE
    return f'<c s="{style}"><v>{days!r}</v></c>'


def _text(text: str, style: int = _PLAIN) -> str:
    safe = printable(text)[:_MOST_TEXT].translate(_ESCAPED)
    return f'<c t="inlineStr" s="{style}"><is><t xml:space="preserve">{safe}</t></is></c>'
