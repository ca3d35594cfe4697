"""The plots of the page, as SVG: panels of horizontal bars, in light or dark as the reader prefers."""

import math
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
    """Each panel has a name, and bars: the label, the value as text, and whether it is Ripple's. One panel needs no name."""
    number = lambda text: float(text.removesuffix(" %"))
    most = max([1, *(number(text) for bars in panels.values() for _, text, _ in bars)])
    n_columns = min(COLUMNS, len(panels))
    n_rows, bar = math.ceil(len(panels) / n_columns), BAR * COLUMNS // n_columns
    panel = max(len(bars) for bars in panels.values()) * LINE + TOP
    width, height = LABEL + n_columns * (bar + VALUE), 24 + n_rows * panel
    parts = [f'<text class="head" x="10" y="20">{escape(title)}</text>']
    for at, (name, bars) in enumerate(panels.items()):
        left, top = LABEL + at % n_columns * (bar + VALUE), 24 + at // n_columns * panel
        if len(panels) > 1:
            parts.append(f'<text class="head" x="{left}" y="{top + 20}">{escape(name)}</text>')
        for place, (label, text, is_ripple) in enumerate(bars):
            y, length, kind = top + 28 + place * LINE, max(1, round(bar * number(text) / most)), "ripple" if is_ripple else "other"
            if at % n_columns == 0:
                parts.append(f'<text x="{LABEL - 8}" y="{y + 11}" text-anchor="end">{escape(label)}</text>')
            parts.append(f'<rect class="{kind}" x="{left}" y="{y}" width="{length}" height="13"/>')
            parts.append(f'<text x="{left + length + 5}" y="{y + 11}">{escape(text)}</text>')
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>", '<rect class="ground" width="100%" height="100%"/>']
    return "\n".join([*head, *parts, "</svg>"]) + "\n"
