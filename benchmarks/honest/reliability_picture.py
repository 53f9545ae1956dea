"""Pictures of claimed against right, as SVG with the same bytes for the same figures."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from wisecrowd.reporting.charts import Scale, path_of

WIDTH, HEIGHT = 480, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 464, 56, 300  # of the square of claimed and right
COUNTS = 348  # bottom of the counts
TALLEST = 30  # pixels of the largest count
APART = 20  # pixels between the counts of two series
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
COLOURS = ("#2f6fd0", "#c8630a", "#2e8b57")  # legible on white and on black
STYLE = (
    "text{font:12px sans-serif;fill:#555}.h{font-size:14px;font-weight:600}.n{font-size:9px}"
    ".a{stroke:#999;fill:none}.i{stroke:#888;fill:none;stroke-dasharray:4 4}"
    "@media(prefers-color-scheme:dark){text{fill:#bbb}}"
)


class Bin(NamedTuple):
    """Mean claim, share right and number of claims."""

    claimed: float
    right: float
    count: int


def picture(kind: str, series: dict[str, list[Bin]], claim: str, truth: str) -> str:
    """Return a picture of some series of bins, with a bar and a number for each count."""
    x, y = Scale(0, 1, LEFT, RIGHT), Scale(0, 1, BOTTOM, TOP)
    said = f"{kind}: {truth} against {claim}; on the dashed line both are equal"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(said)}">',
        f"<style>{STYLE}</style>",
        f'<text class="h" x="{LEFT}" y="18">{escape(kind)}: {escape(truth)}</text>',
        f'<path class="a" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>',
        f'<path class="i" d="{path_of([(x(0), y(0)), (x(1), y(1))])}"/>',
    ]
    for tick in TICKS:
        parts += [
            f'<text x="{LEFT - 6}" y="{y(tick) + 4:g}" text-anchor="end">{tick:g}</text>',
            f'<text x="{x(tick):g}" y="{COUNTS + 16}" text-anchor="middle">{tick:g}</text>',
        ]
    parts.append(
        f'<text x="{(LEFT + RIGHT) / 2:g}" y="{HEIGHT - 14}" text-anchor="middle">'
        f"{escape(claim)}; bars count the claims</text>"
    )
    most = max(one.count for some in series.values() for one in some)
    tall, step = Scale(0, most, 0, TALLEST), LEFT
    for n, (name, some) in enumerate(series.items()):
        colour = COLOURS[n % len(COLOURS)]
        parts.append(f'<text x="{step}" y="38" style="fill:{colour}">● {escape(name)}</text>')
        step += 24 + 7 * len(name)
        line = path_of([(x(one.claimed), y(one.right)) for one in some])
        parts.append(f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for one in some:
            at = round(x(one.claimed) + APART * (n - (len(series) - 1) / 2), 1)
            high = tall(one.count)
            parts += [
                f'<circle cx="{x(one.claimed):g}" cy="{y(one.right):g}" r="4" fill="{colour}">'
                f"<title>{escape(name)}: {one.claimed:.3f} claimed, {one.right:.3f} right, "
                f"{one.count} claims</title></circle>",
                f'<rect x="{at - 3:g}" y="{round(COUNTS - high, 1):g}" width="6" height="{high:g}" '
                f'fill="{colour}" fill-opacity=".6"/>',
            ]
            if len(series) < len(COLOURS):  # of more, the numbers would not fit
                above = round(COUNTS - high - 3, 1)
                parts.append(
                    f'<text class="n" x="{at:g}" y="{above:g}" text-anchor="middle">'
                    f"{one.count}</text>"
                )
    return "\n".join([*parts, "</svg>"]) + "\n"
