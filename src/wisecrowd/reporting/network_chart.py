"""Drawing of the agreement network: pairs of workers, shaded by their excess of agreement."""

from __future__ import annotations

from typing import Any, NamedTuple

from wisecrowd.reporting.charts import isolated

# Standard errors from which a pair is shaded more, and the CSS class below the first of them.
SHADES = (-2.0, -1.0, 1.0, 2.0, 3.0, 4.0)
SMALL = 8  # workers up to which the drawing takes less than its column


class Cell(NamedTuple):
    """A pair of workers: column and row, shade, sentence, and whether the pair is suspicious."""

    x: int
    y: int
    shade: str
    text: str
    linked: bool


class NetworkDrawing(NamedTuple):
    """A triangle of pairs; names stand at the ends of the rows."""

    says: str
    size: int
    names: list[tuple[float, float, str, str]]
    cells: list[Cell]
    groups: list[tuple[int, int]]
    small: bool


def shade_of(z: float) -> str:
    """Return the CSS class of a number of standard errors.

    Examples
    --------
    >>> [shade_of(z) for z in (-2.5, 0.0, 1.5, 9.0)]
    ['z0', 'z2', 'z3', 'z6']
    """
    return f"z{sum(z >= limit for limit in SHADES)}"


def network_drawing(graph: dict[str, Any]) -> NetworkDrawing | None:
    """Return the drawing of a graph; members of a group are neighbours, and groups are framed."""
    nodes, size = graph["nodes"], len(graph["nodes"])
    if size < 2 or not graph.get("cells"):
        return None
    linked = {frozenset(pair) for pair in graph["edges"]}
    cells = []
    for a, b, z, agreement, expected in graph["cells"]:
        suspicious = frozenset((a, b)) in linked
        said = "linked, " if suspicious else ""
        cells.append(Cell(
            min(a, b), max(a, b) - 1, shade_of(z),
            f"{isolated(nodes[a]['worker'])} and {isolated(nodes[b]['worker'])}: {said}"
            f"{z:+.1f} standard errors, equal in {100 * agreement:.0f} %, expected "
            f"{100 * expected:.0f} %", suspicious,
        ))  # fmt: skip
    step = 100 / size
    groups, names = [], []
    for n, node in enumerate(nodes):
        tone = "bad" if node["group"] >= 0 else ""
        names.append((round(n * step, 2), round((n + 0.5) * step, 2), isolated(node["worker"], 14),
                      tone))  # fmt: skip
    for group in sorted({node["group"] for node in nodes if node["group"] >= 0}):
        members = [n for n, node in enumerate(nodes) if node["group"] == group]
        if len(members) > 1:
            groups.append((members[0], len(members) - 1))
    return NetworkDrawing(
        f"{len(cells)} pairs of {size} workers, shaded by how far they agree beyond what their "
        f"skill explains; {sum(cell.linked for cell in cells)} are suspicious. The table has the "
        "most surprising pairs.",
        size, names, cells, groups, size <= SMALL,
    )  # fmt: skip
