"""The plots of the page, as SVG: panels of horizontal bars, in light or dark as the reader prefers."""

from xml.sax.saxutils import escape

COLUMNS = 3
LABEL, BAR, VALUE, LINE, TOP = 150, 110, 50, 18, 42
STYLE = """
  text { font: 12px sans-serif; fill: #1f2328 } .head { font-weight: 600 } .ground { fill: #ffffff }
  .other { fill: #9aa4b2 } .ripple { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .ground { fill: #0d1117 } .other { fill: #6e7781 } .ripple { fill: #4493f8 }
  }
"""


def plot(title, panels):
    """Each panel has a name, and bars: the label, the value and its text, and whether it is Ripple's. One panel needs no name."""
    most = max(value for _, bars in panels for _, value, _, _ in bars)
    n_columns = min(COLUMNS, len(panels))
    bar = BAR if len(panels) > 1 else BAR * COLUMNS
    height_of = [max(len(bars) for _, bars in panels[at : at + n_columns]) * LINE + TOP for at in range(0, len(panels), n_columns)]
    width = LABEL + n_columns * (bar + VALUE)
    parts = []
    for at, (name, bars) in enumerate(panels):
        row, column = divmod(at, n_columns)
        left, top = LABEL + column * (bar + VALUE), 24 + sum(height_of[:row])
        if len(panels) > 1:
            parts.append(f'<text class="head" x="{left}" y="{top + 20}">{escape(name)}</text>')
        for place, (label, value, text, is_ripple) in enumerate(bars):
            y = top + 28 + place * LINE
            kind = "ripple" if is_ripple else "other"
            if column == 0:
                parts.append(f'<text x="{LABEL - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>')
            parts.append(f'<rect class="{kind}" x="{left}" y="{y}" width="{max(1, bar * value / most):.0f}" height="13"/>')
            parts.append(f'<text x="{left + bar * value / most + 5:.0f}" y="{y + 11}">{escape(text)}</text>')
    height = 24 + sum(height_of)
    head = f'<text class="head" x="10" y="20">{escape(title)}</text>'
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    ground = '<rect class="ground" width="100%" height="100%"/>'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{escape(title)}</title>",
             f"<style>{STYLE}</style>", ground, head, *parts, "</svg>"]
    return "\n".join(lines) + "\n"
