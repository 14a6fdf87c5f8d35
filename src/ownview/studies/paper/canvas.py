"""Lines, marks and words on a page, written as SVG or as PDF, without a browser and without another package.

Places are in points, 1/72 inch, from the upper left corner. Words are in Helvetica; what Latin-1 does not have is
written in Latin letters.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

Point = tuple[float, float]
Colour = tuple[float, float, float]
BLACK, GREY = (0.0, 0.0, 0.0), (0.75, 0.75, 0.75)
_WIDTHS = {
    **dict.fromkeys("fijlt.,:;|!'() ", 0.3),
    **dict.fromkeys("mwMW%@", 0.87),
    **dict.fromkeys("ABCDEFGHKNOPQRSTUVXYZ", 0.69),
}
"""Of letters of Helvetica in its size, roughly; 0.55 for all others."""
_LATIN = {"ε": "epsilon", "≈": "~", "–": "-", "−": "-", "₂": "2"}


@dataclass
class Canvas:
    """A page.

    Args:
        width: in points.
        height: in points.
    """

    width: float
    height: float
    _svg: list[str] = field(default_factory=list)
    _pdf: list[str] = field(default_factory=list)

    def line(
        self, points: Sequence[Point], colour: Colour = BLACK, thick: float = 1.0, dash: Sequence[float] = ()
    ) -> None:
        """Through points."""
        if len(points) < 2:
            return
        path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        dashed = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
        self._svg.append(
            f'<polyline points="{path}" fill="none" stroke="{_hex(colour)}" stroke-width="{thick}"{dashed}/>'
        )
        steps = [f"{x:.2f} {self.height - y:.2f} {'m' if k == 0 else 'l'}" for k, (x, y) in enumerate(points)]
        pattern = f"[{' '.join(map(str, dash))}] 0 d"
        self._pdf.append(f"{_rgb(colour)} RG {thick} w {pattern} {' '.join(steps)} S")

    def mark(self, at: Point, colour: Colour = BLACK, size: float = 2.5) -> None:
        """A filled square."""
        x, y = at
        self._svg.append(
            f'<rect x="{x - size:.2f}" y="{y - size:.2f}" width="{2 * size}" height="{2 * size}" '
            f'fill="{_hex(colour)}"/>'
        )
        self._pdf.append(f"{_rgb(colour)} rg {x - size:.2f} {self.height - y - size:.2f} {2 * size} {2 * size} re f")

    def words(self, at: Point, text: str, size: float = 9.0, align: str = "left", upright: bool = False) -> None:
        """A line of text; `align` is left, middle or right of the point, `upright` is read from below."""
        text = "".join(_LATIN.get(letter, letter) for letter in text).encode("latin-1", "replace").decode("latin-1")
        x, y = at
        anchor = {"left": "start", "middle": "middle", "right": "end"}[align]
        turned = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if upright else ""
        self._svg.append(
            f'<text x="{x:.2f}" y="{y:.2f}" font-family="Helvetica, Arial, sans-serif" font-size="{size}" '
            f'text-anchor="{anchor}"{turned}>{escape(text)}</text>'
        )
        back = {"left": 0.0, "middle": 0.5, "right": 1.0}[align] * text_width(text, size)
        shown = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        place = (
            f"0 1 -1 0 {x:.2f} {self.height - y - back:.2f}"
            if upright
            else f"1 0 0 1 {x - back:.2f} {self.height - y:.2f}"
        )
        self._pdf.append(f"BT 0 0 0 rg /F1 {size} Tf {place} Tm ({shown}) Tj ET")

    def svg(self) -> bytes:
        """The page as SVG."""
        size = f'width="{self.width}pt" height="{self.height}pt" viewBox="0 0 {self.width} {self.height}"'
        paper = '<rect width="100%" height="100%" fill="white"/>'
        drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', paper, *self._svg, "</svg>", ""]
        return "\n".join(drawn).encode("utf-8")

    def pdf(self) -> bytes:
        """The page as PDF 1.4."""
        drawn = zlib.compress("\n".join(self._pdf).encode("latin-1"))
        page = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {self.width} {self.height}] /Contents 4 0 R "
            "/Resources << /Font << /F1 5 0 R >> >> >>"
        )
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page.encode(),
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(drawn), drawn),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        ]  # fmt: skip
        out, places = bytearray(b"%PDF-1.4\n"), []
        for number, one in enumerate(objects, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
        begins = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
        out += b"".join(b"%010d 00000 n \n" % place for place in places)
        out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, begins)
        return bytes(out)


def text_width(text: str, size: float) -> float:
    """Of a line of Helvetica in points, roughly."""
    return size * sum(_WIDTHS.get(letter, 0.55) for letter in text)


def _hex(colour: Colour) -> str:
    return "#" + "".join(f"{round(255 * one):02x}" for one in colour)


def _rgb(colour: Colour) -> str:
    return " ".join(f"{one:.3f}" for one in colour)
