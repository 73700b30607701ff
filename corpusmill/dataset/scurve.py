"""The S-curve of a choice of bands and rows, drawn for a terminal and as SVG."""

from __future__ import annotations

from corpusmill.kernels.duplicates.lsh import collision_probability
from corpusmill.kernels.duplicates.scurve import Choice

WIDTH, HEIGHT = 64, 16
PIXELS_WIDE, PIXELS_HIGH, MARGIN = 640, 360, 48


def drawn(choice: Choice, threshold: float) -> str:
    """The curve as text: `o` where it runs, `+` for false positives below it, `-` for false negatives above it."""
    lines = []
    for row in range(HEIGHT, -1, -1):
        level, cells = row / HEIGHT, []
        for column in range(WIDTH + 1):
            similarity = column / WIDTH
            height = round(collision_probability(similarity, choice.bands, choice.rows) * HEIGHT)
            if row == height:
                cells.append("o")
            elif similarity < threshold and row < height:
                cells.append("+")
            elif similarity >= threshold and row > height:
                cells.append("-")
            else:
                cells.append("|" if column == round(threshold * WIDTH) else " ")
        lines.append(f"{level:4.2f} {''.join(cells)}".rstrip() if row % 4 == 0 else f"     {''.join(cells)}".rstrip())
    axis = "".join(f"{tick / 4:<{WIDTH // 4}.2f}" for tick in range(5))
    legend = "o chance to be a candidate   + false positives   - false negatives   | threshold"
    return "\n".join([*lines, "     " + axis.rstrip() + "  similarity", "     " + legend])


def drawn_svg(choice: Choice, threshold: float) -> str:
    """The curve as an SVG document."""
    wide, high = PIXELS_WIDE - 2 * MARGIN, PIXELS_HIGH - 2 * MARGIN

    def point(similarity: float, chance: float) -> str:
        return f"{MARGIN + similarity * wide:.1f},{MARGIN + (1 - chance) * high:.1f}"

    def curve(begin: float, end: float) -> list[str]:
        steps = [begin + (end - begin) * i / 200 for i in range(201)]
        return [point(s, collision_probability(s, choice.bands, choice.rows)) for s in steps]

    below = " ".join([point(0, 0), *curve(0, threshold), point(threshold, 0)])
    above = " ".join([point(threshold, 1), *curve(threshold, 1), point(1, 1)])
    ticks = "".join(
        f'<text x="{MARGIN + t / 5 * wide:.1f}" y="{PIXELS_HIGH - MARGIN + 18}" text-anchor="middle">{t / 5:.1f}</text>'
        f'<text x="{MARGIN - 8}" y="{MARGIN + (1 - t / 5) * high + 4:.1f}" text-anchor="end">{t / 5:.1f}</text>'
        for t in range(6)
    )
    line = f"{point(threshold, 0)} {point(threshold, 1)}"
    title = f"{choice.bands} bands of {choice.rows} rows, threshold {threshold:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PIXELS_WIDE} {PIXELS_HIGH}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="S-curve of {title}">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<polygon points="{below}" fill="#f0b46a"/><polygon points="{above}" fill="#9db8e0"/>'
        f'<polyline points="{" ".join(curve(0, 1))}" fill="none" stroke="black" stroke-width="2"/>'
        f'<polyline points="{line}" stroke="#666" stroke-dasharray="4 3" fill="none"/>'
        f'<polyline points="{point(0, 1)} {point(0, 0)} {point(1, 0)}" fill="none" stroke="#666"/>{ticks}'
        f'<text x="{PIXELS_WIDE / 2}" y="24" text-anchor="middle" font-size="14">{title}</text>'
        f'<text x="{PIXELS_WIDE / 2}" y="{PIXELS_HIGH - 8}" text-anchor="middle">Jaccard similarity: '
        f"orange, false positives {choice.false_positive:.3f}; blue, false negatives {choice.false_negative:.3f}"
        f"</text></svg>\n"
    )
