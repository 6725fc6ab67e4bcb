#!/usr/bin/env python3
"""Draws the picture of the README from a real trace.

    hetrace run -o trace -- clpeak --global-bandwidth --kernel-latency
    hetrace export -f chrome --no-arguments trace -o trace.json
    scripts/picture.py trace.json > docs/timeline.svg

A row for each thread and queue. What is narrower than a pixel is drawn together with its neighbours of the
same name.
"""

import colorsys
import html
import json
import sys
import zlib

WIDTH, LEFT, ROW, GAP, TOP = 1000, 150, 34, 14, 34


def colour(name):
    # A name has the same colour in each picture; calls are greyer than commands.
    hue = zlib.crc32(name.encode()) % 360 / 360
    red, green, blue = colorsys.hls_to_rgb(hue, 0.72, 0.35 if name.startswith("cl") else 0.65)
    return "#%02x%02x%02x" % (int(red * 255), int(green * 255), int(blue * 255))


def merged(spans, pixel):
    """Joins spans of one name that are less than a pixel apart."""
    out = []
    for start, end, name in sorted(spans):
        if out and out[-1][2] == name and start - out[-1][1] < pixel:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([start, end, name])
    return [span for span in out if span[1] - span[0] >= pixel / 2]


def main():
    with open(sys.argv[1]) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    rows = {tid: [] for tid in sorted(names)}
    for e in events:
        if e["ph"] == "X":
            rows[e["tid"]].append((e["ts"], e["ts"] + e["dur"], e["name"]))
    end = max(span[1] for spans in rows.values() for span in spans)
    scale = (WIDTH - LEFT - 10) / end
    height = TOP + len(rows) * (ROW + GAP) + 26
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500) if s * 12 > end / 1e6)
    for second in range(0, int(end / 1e6) + 1, step):
        x = LEFT + second * 1e6 * scale
        out.append(f'<path d="M{x:.1f} {TOP - 8}V{height - 24}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{x:.1f}" y="{height - 8}" fill="#666" text-anchor="middle">{second} s</text>')
    for index, (tid, spans) in enumerate(rows.items()):
        y = TOP + index * (ROW + GAP)
        what = "device queue" if tid >= 8388608 else f"thread {names[tid]}"
        out.append(f'<text x="{LEFT - 8}" y="{y + 21}" text-anchor="end">{html.escape(what)}</text>')
        for start, stop, name in merged(spans, 1 / scale):
            x, width = LEFT + start * scale, max((stop - start) * scale, 1)
            title = html.escape(f"{name}: {(stop - start) / 1e6:.3f} s")
            out.append(
                f'<g><title>{title}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" '
                f'fill="{colour(name)}" stroke="#fff" stroke-width="0.5"/>'
            )
            fits = int((width - 6) / 6.6)
            if fits > 4:
                text = name if len(name) <= fits else name[: fits - 1] + "…"
                out.append(f'<text x="{x + 3:.1f}" y="{y + 21}">{html.escape(text)}</text>')
            out.append("</g>")
    out.append("</svg>")
    print("\n".join(out))


main()
