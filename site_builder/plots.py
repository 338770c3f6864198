"""Line plots as numbers for SVG, made when the site is built: where every point, tick and name stands."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

NAME_HEIGHT = 16  # units of the picture between two names


@dataclass(frozen=True)
class Series:
    """What is drawn: values `ys` over `xs` in the colour `look`.

    `name` stands at the end of a line; an area is filled down to zero and has no name in the picture.  `dots`: whether
    a line that is not thin has a point at each value.
    """

    xs: Sequence[float]
    ys: Sequence[float]
    look: int
    name: str = ""
    thin: bool = False
    area: bool = False
    dots: bool = True


@dataclass(frozen=True)
class Guide:
    """A dashed horizontal line that others are measured against."""

    value: float
    name: str


@dataclass(frozen=True)
class Size:
    """Of a picture, in its own units; `right` is the margin that names take."""

    width: int
    height: int
    right: int
    left: int = 48
    top: int = 26
    bottom: int = 40


@dataclass
class Name:
    """A text at (x, y); `lead` is the path to what it names, where it stands apart from it."""

    x: float
    y: float
    text: str
    look: int = 0
    anchor: str = "start"
    lead: str = ""


@dataclass
class Drawn:
    """One series as a path; `kind` is "line", "line thin" or "area", `points` are the ends of a line's segments."""

    look: int
    kind: str
    path: str
    points: list[tuple[float, float]]


@dataclass
class Tick:
    """A mark on an axis, its text at (x, y)."""

    path: str
    text: str
    x: float
    y: float
    is_zero: bool = False


@dataclass
class Plot:
    """Everything that a template writes down; the name of the horizontal axis ends at (right, caption)."""

    size: Size
    right: float
    caption: float
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    series: list[Drawn]
    names: list[Name]
    guide: str = ""  # its path

    @property
    def upright(self) -> str:
        """The path of a line over the whole height, at 0: it is moved to where it shall stand."""
        return f"M0,{self.size.top}V{self.size.height - self.size.bottom}"


def plot(series: list[Series], size: Size, guide: Guide | None = None, zero: bool = False) -> Plot:
    """Lay out `series`; with `zero` each axis includes it, else only what is drawn."""
    left, right, top, bottom = size.left, size.width - size.right, size.top, size.height - size.bottom
    also = [0.0] if zero else []
    xs = [x for one in series for x in one.xs] + also
    ys = [y for one in series for y in one.ys] + also + ([guide.value] if guide else [])
    first, last = min(xs), max(xs)
    x_marks = round_numbers(first, last, (right - left) // 43)
    y_marks = round_numbers(min(ys), max(ys), (bottom - top) // 42)
    low, high = min(y_marks[0], *ys), max(y_marks[-1], *ys)

    def place_x(x: float) -> float:
        return round(left + (x - first) / ((last - first) or 1) * (right - left), 2)

    def place_y(y: float) -> float:
        return round(bottom - (y - low) / (high - low) * (bottom - top), 2)

    ends = [[(place_x(x), place_y(y)) for x, y in zip(one.xs, one.ys, strict=True)] for one in series]
    names = _names(series, ends, right, top, bottom)
    if guide:
        names.append(Name(right, place_y(guide.value) - 6, guide.name, -1, "end"))
    return Plot(
        size, right, bottom + 34,
        [Tick(f"M{place_x(x)},{bottom}v5", tick_text(x, x_marks), place_x(x), bottom + 18)
         for x in x_marks if first <= x <= last],
        [Tick(f"M{left},{place_y(y)}H{right}", tick_text(y, y_marks), left - 8, place_y(y) + 4, y == 0)
         for y in y_marks],
        [_draw(one, points, place_y(max(low, 0))) for one, points in zip(series, ends, strict=True)], names,
        f"M{left},{place_y(guide.value)}H{right}" if guide else "")


def _draw(one: Series, points: list[tuple[float, float]], floor: float) -> Drawn:
    path = "M" + "L".join(f"{x:g},{y:g}" for x, y in points)
    if one.area:
        return Drawn(one.look, "area", f"{path}L{points[-1][0]:g},{floor:g}L{points[0][0]:g},{floor:g}Z", [])
    return Drawn(one.look, "line thin" if one.thin else "line", path, points if one.dots and not one.thin else [])


def _names(series: list[Series], points: list[list[tuple[float, float]]], right: float, top: float,
           bottom: float) -> list[Name]:
    """The names of lines beside their ends, moved apart so that none lies on another."""
    ends = sorted(((line[-1], one) for one, line in zip(series, points, strict=True)
                   if one.name and not one.area), key=lambda end: end[0][1])
    ys = [y for (_, y), _ in ends]
    for i in range(len(ys)):
        ys[i] = max(ys[i], ys[i - 1] + NAME_HEIGHT if i else top)
    limit = bottom + 4
    for i in reversed(range(len(ys))):
        ys[i] = min(ys[i], ys[i + 1] - NAME_HEIGHT if i + 1 < len(ys) else limit)
    shift = _centred(ys, [y for (_, y), _ in ends], top, limit)
    return [Name(right + 24, round(y + shift + 4, 2), one.name, one.look,
                 lead=f"M{end[0] + 5:g},{end[1]:g}L{right + 20:g},{y + shift:g}")
            for y, (end, one) in zip(ys, ends, strict=True)]


def _centred(ys: list[float], ends: list[float], top: float, limit: float) -> float:
    """How far to move all names, so that they lie about the middle of the ends, within the picture."""
    if not ys:
        return 0
    wish = sum(ends) / len(ends) - sum(ys) / len(ys)
    return round(max(top - ys[0], min(limit - ys[-1], wish)), 2)


def round_numbers(low: float, high: float, count: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart), about `count` of them, that span low to high."""
    if not high - low > 1e-9 * max(abs(low), abs(high)):  # beside their size, a float64 tells them hardly apart
        low, high = low - (abs(low) / 2 or 1), high + (abs(high) / 2 or 1)
    size = (high - low) / max(1, count)
    places = math.floor(math.log10(size))
    power = 10.0 ** places
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= size * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12 - places) for i in range(first, last + 1)]


def tick_text(value: float, ticks: list[float]) -> str:
    """As many decimals as the step between ticks needs; a true minus sign."""
    places = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    return f"{value:,.{places}f}".replace("-", "−")
