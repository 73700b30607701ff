"""A picture of word F1 against CPU, one point a mode, as SVG; the line joins the modes that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

WIDTH, HEIGHT, MARGIN = 640, 400, 60


def draw(macro: Mapping[str, Mapping[str, float]]) -> str:
    """SVG of the macro means, mode -> {"f1", "ms"}; CPU on a logarithmic axis."""
    points = {mode: (max(figures["ms"], 1e-3), figures["f1"]) for mode, figures in sorted(macro.items())}
    low_x = min(math.log10(ms) for ms, _ in points.values()) - 0.1
    high_x = max(math.log10(ms) for ms, _ in points.values()) + 0.25
    low_y = min(f1 for _, f1 in points.values()) - 0.02
    high_y = max(f1 for _, f1 in points.values()) + 0.02

    def place(ms: float, f1: float) -> tuple[float, float]:
        x = MARGIN + (math.log10(ms) - low_x) / (high_x - low_x) * (WIDTH - 2 * MARGIN)
        y = HEIGHT - MARGIN - (f1 - low_y) / (high_y - low_y) * (HEIGHT - 2 * MARGIN)
        return round(x, 1), round(y, 1)

    front = [point for _, point in sorted(points.items(), key=lambda item: item[1]) if _best(point, points)]
    joined = " ".join(f"{x},{y}" for x, y in (place(*point) for point in front))
    shapes = [f'<polyline points="{joined}" fill="none" stroke="#88a"/>']
    for mode, point in points.items():
        x, y = place(*point)
        label = f"{escape(mode)} {point[1]:.3f}, {point[0]:.2f} ms"
        shapes.append(f'<circle cx="{x}" cy="{y}" r="4"/><text x="{x + 7}" y="{y - 6}">{label}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif"'
    axes = f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}">CPU a page, ms (log)</text><text x="8" y="20">macro word F1</text>'
    return f'{head} font-size="12"><rect width="100%" height="100%" fill="white"/>{axes}{"".join(shapes)}</svg>\n'


def _best(point: tuple[float, float], points: Mapping[str, tuple[float, float]]) -> bool:
    return not any(ms <= point[0] and f1 >= point[1] and (ms, f1) != point for ms, f1 in points.values())
