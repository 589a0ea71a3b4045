#!/usr/bin/env python3
"""Draws what `make bench NAME=stl` or `NAME=graph` has measured.

    bench/plot.py build/bench/stl.json [--to FILE.svg|FILE.png]...

Bytes and seconds of each row and configuration, divided by those of full copies, on logarithmic
scales: below 1 is better than full copies. Without --to it writes an SVG and a PNG beside the JSON.
"""

import argparse
import json
import os
import sys

PEER = "full copies"
METRICS = ("bytes", "seconds")


def read_rows(figures):
    """{row: {configuration: {metric: value}}}; a figure's name is 'row, configuration, metric'."""
    rows = {}
    for name, value in figures.items():
        parts = name.rsplit(", ", 2)
        if len(parts) == 3 and parts[2] in METRICS:
            row, configuration, metric = parts
            rows.setdefault(row, {}).setdefault(configuration, {})[metric] = value
    return {row: of for row, of in rows.items() if all(m in of.get(PEER, {}) for m in METRICS)}


def configurations_of(rows):
    names = []
    for row in rows.values():
        names += [name for name in row if name not in names and name != PEER]
    return names


def colour(i):
    return f"C{i % 10}"


def draw_metric(axes, rows, configurations, metric):
    width = 0.8 / len(configurations)
    for i, configuration in enumerate(configurations):
        places, ratios = [], []
        for place, row in enumerate(rows.values()):
            value = row.get(configuration, {}).get(metric, 0)
            if value > 0 and row[PEER][metric] > 0:
                places.append(place - 0.4 + (i + 0.5) * width)
                ratios.append(value / row[PEER][metric])
        # From 1, so that what is better hangs down.
        heights = [ratio - 1 for ratio in ratios]
        axes.bar(places, heights, width, bottom=1, color=colour(i))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylabel(f"{metric} / {PEER}")
    axes.grid(axis="y", which="major", linewidth=0.4)
    axes.set_axisbelow(True)


def draw(pyplot, name, rows):
    configurations = configurations_of(rows)
    figure, both = pyplot.subplots(2, 1, sharex=True, figsize=(max(8, 1.1 * len(rows) + 3), 9))
    for axes, metric in zip(both, METRICS):
        draw_metric(axes, rows, configurations, metric)
    both[0].set_title(f"{name}: bytes and seconds, full copies = 1")
    # Not by the bars: some configurations have bytes or seconds only.
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour(i)) for i in range(len(configurations))]
    both[0].legend(handles, configurations, bbox_to_anchor=(1.01, 1), loc="upper left",
                   borderaxespad=0, frameon=False)
    both[1].set_xticks(range(len(rows)))
    both[1].set_xticklabels(rows.keys(), rotation=35, ha="right")
    figure.tight_layout()
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("json_file")
    parser.add_argument("--to", action="append", metavar="FILE")
    arguments = parser.parse_args()
    try:
        import matplotlib
    except ImportError:
        sys.exit(f"plot: {sys.executable} has no matplotlib "
                 "(Debian: apt-get install python3-matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        with open(arguments.json_file, encoding="utf-8") as file:
            report = json.load(file)
        rows = read_rows(report["figures"])
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"plot: {arguments.json_file}: {error!r}")
    if not rows:
        sys.exit(f"plot: {arguments.json_file} has no figures beside full copies")
    base = os.path.splitext(arguments.json_file)[0]
    figure = draw(pyplot, report.get("name", ""), rows)
    for name in arguments.to or [base + ".svg", base + ".png"]:
        figure.savefig(name, dpi=110, bbox_inches="tight")
        print(name)


if __name__ == "__main__":
    main()
