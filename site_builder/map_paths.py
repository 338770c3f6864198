"""Lines of the map as SVG paths: with round corners, and with an arrow head."""

from itertools import pairwise

RADIUS = 7  # of a corner


def svg_path(points: list[tuple[float, float]]) -> str:
    """Straight lines from point to point, the corners rounded."""
    points = [p for p, after in zip(points, [*points[1:], None], strict=True) if p != after]
    parts = [f"M{_xy(points[0])}"]
    for (before, corner), (_, after) in pairwise(pairwise(points)):
        radius = min(RADIUS, _length(before, corner) / 2, _length(corner, after) / 2)
        parts.append(f"L{_xy(_towards(corner, before, radius))}Q{_xy(corner)} {_xy(_towards(corner, after, radius))}")
    return "".join([*parts, f"L{_xy(points[-1])}"])


def _length(a: tuple[float, float], b: tuple[float, float]) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])  # lines run along an axis


def _towards(a: tuple[float, float], b: tuple[float, float], distance: float) -> tuple[float, float]:
    share = distance / (_length(a, b) or 1)
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def _xy(point: tuple[float, float]) -> str:
    return " ".join(f"{value:.1f}".removesuffix(".0") for value in point)


def arrow_head(x: float, y: float, dx: int, dy: int) -> str:
    """An arrow head that points in the direction (dx, dy), its tip at (x, y)."""
    base = (x - 5 * dx, y - 5 * dy)
    return f"M{_xy((x, y))}L{_xy((base[0] - 3 * dy, base[1] - 3 * dx))}L{_xy((base[0] + 3 * dy, base[1] + 3 * dx))}Z"
