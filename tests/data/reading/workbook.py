"""A small workbook of Excel, written by hand: text, numbers and dates in one sheet."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from datetime import datetime
from xml.sax.saxutils import escape

_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>'
)
_SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(rows: Sequence[Sequence[object]], **others: Sequence[Sequence[object]]) -> bytes:
    """A sheet called Orders, and others by name; None is an empty cell, a datetime a date."""
    sheets = {"Orders": rows, **others}
    types = "".join(f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="{_SHEET}"/>'
                    for k in range(1, len(sheets) + 1))  # fmt: skip
    parts = {
        "[Content_Types].xml": _TYPES.replace("</Types>", f"{types}</Types>"),
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        + "".join(f'<sheet name="{name}" sheetId="{k}" r:id="r{k}"/>' for k, name in enumerate(sheets, 1))
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}">'
        + "".join(
            f'<Relationship Id="r{k}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{k}.xml"/>'
            for k in range(1, len(sheets) + 1)
        )
        + f'<Relationship Id="styles" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
        '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
        '<cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22" applyNumberFormat="1"/></cellXfs></styleSheet>',
    }
    for k, every in enumerate(sheets.values(), 1):
        lines = "".join(f"<row r='{r}'>{''.join(_cell(r, c, one) for c, one in enumerate(row))}</row>"
                        for r, row in enumerate(every, 1))  # fmt: skip
        parts[f"xl/worksheets/sheet{k}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return packed.getvalue()


def _cell(row: int, column: int, value: object) -> str:
    place = f"{chr(65 + column)}{row}"
    match value:
        case None:
            return ""
        case datetime():
            days = (value - datetime(1899, 12, 30)).total_seconds() / 86_400
            return f'<c r="{place}" s="1"><v>{days!r}</v></c>'
        case int() | float():
            return f'<c r="{place}"><v>{value!r}</v></c>'
        case _:
            return f'<c r="{place}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'
