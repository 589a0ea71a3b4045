#!/usr/bin/env python3
"""Draws the figures of `make bench NAME=stl`, `NAME=graph`, `NAME=paging` or `NAME=metall`.

    bench/plot.py build/bench/stl.json [--to FILE.svg|FILE.png]...

Bytes and seconds of each row and configuration, divided by those of full copies, on logarithmic
scales: below 1 is better than full copies. For paging: the region's bytes in memory over time, from
paging-log/WORKLOAD-vellum.txt next to the JSON, and its limit. For metall: bytes stored after each
snapshot against seconds until then, a line for each peer. Without --to it writes an SVG and a PNG
next to the JSON.
"""

import argparse
import glob
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
        # From 1: better values hang down.
        heights = [ratio - 1 for ratio in ratios]
        axes.bar(places, heights, width, bottom=1, color=colour(i))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    if metric == "seconds":  # less than a power of ten, mostly
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_ylabel(f"{metric} / {PEER}")
    axes.grid(axis="y", which="major", linewidth=0.4)
    axes.set_axisbelow(True)


def draw(pyplot, name, rows):
    configurations = configurations_of(rows)
    figure, both = pyplot.subplots(2, 1, sharex=True, figsize=(max(6, 0.55 * len(rows) + 2), 7))
    for axes, metric in zip(both, METRICS):
        draw_metric(axes, rows, configurations, metric)
    # Not by the bars: some configurations have only bytes or only seconds.
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour(i)) for i in range(len(configurations))]
    both[0].legend(handles, configurations, bbox_to_anchor=(0.5, 1.01), loc="lower center", frameon=False,
                   ncol=min(5, len(configurations)),
                   title=f"{name}: bytes and seconds, {PEER} = 1")
    both[1].set_xticks(range(len(rows)))
    both[1].set_xticklabels(rows.keys(), rotation=35, ha="right")
    figure.tight_layout()
    return figure


def read_logs(directory):
    """{workload: ([seconds], [MiB])}"""
    logs = {}
    for file in sorted(glob.glob(os.path.join(glob.escape(directory), "*-vellum.txt"))):
        with open(file, encoding="utf-8") as lines:
            samples = [[float(word) for word in line.split()] for line in lines if line.strip()]
        if samples:
            seconds, sizes = zip(*samples)
            workload = os.path.basename(file)[:-len("-vellum.txt")]
            logs[workload] = (seconds, [size / 2**20 for size in sizes])
    return logs


def draw_resident(pyplot, logs, limit_bytes):
    limit = limit_bytes / 2**20
    figure, rows = pyplot.subplots(len(logs), 1, squeeze=False, figsize=(9, 2.6 * len(logs) + 0.6))
    for axes, (workload, (seconds, sizes)) in zip(rows[:, 0], logs.items()):
        axes.plot(seconds, sizes, linewidth=0.8, label="in memory")
        axes.axhline(limit, color="C3", linewidth=0.8, linestyle="--", label=f"limit, {limit:.0f} MiB")
        axes.set_ylim(0, 1.25 * max(limit, *sizes))
        axes.set_xlim(0, seconds[-1])
        axes.set_title(workload, fontsize="medium")
        axes.set_ylabel("MiB of the region")
        axes.grid(linewidth=0.3)
    rows[0, 0].legend(loc="lower right", frameon=False)
    rows[-1, 0].set_xlabel("seconds")
    figure.tight_layout()
    return figure


def draw_curves(pyplot, curves):
    """curves: {title: {peer: [[seconds, bytes]]}}"""
    columns = 2 if len(curves) > 1 else 1
    figure, grid = pyplot.subplots(-(-len(curves) // columns), columns, squeeze=False,
                                   figsize=(6.5 * columns, 3.8 * -(-len(curves) // columns) + 0.6))
    names = list(dict.fromkeys(name for of in curves.values() for name in of))
    for axes, (title, of) in zip(grid.flat, curves.items()):
        for name, points in of.items():
            seconds, sizes = zip(*points)
            axes.plot(seconds, [size / 2**20 for size in sizes], marker="o", markersize=3,
                      linewidth=1, color=colour(names.index(name)),
                      linestyle="-" if names.index(name) < 10 else "--")
        axes.set_title(title, fontsize="medium")
        axes.set_yscale("log")
        axes.set_xlim(left=0)
        axes.grid(which="major", linewidth=0.4)
    for axes in list(grid.flat)[len(curves):]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("MiB stored")
    for axes in grid[-1]:
        axes.set_xlabel("seconds")
    handles = [pyplot.Line2D([], [], marker="o", markersize=3, color=colour(i),
                             linestyle="-" if i < 10 else "--") for i in range(len(names))]
    grid[0, -1].legend(handles, names, bbox_to_anchor=(1.01, 1), loc="upper left",
                       borderaxespad=0, frameon=False)
    figure.tight_layout()
    return figure


def draw_report(pyplot, json_file, base):
    with open(json_file, encoding="utf-8") as file:
        report = json.load(file)
    name, figures = report.get("name", ""), report["figures"]
    if name == "paging":
        logs = read_logs(base + "-log")
        if not logs:
            sys.exit(f"plot: {base}-log has no samples: make bench NAME=paging first")
        return draw_resident(pyplot, logs, figures["limit_bytes"])
    if name == "metall":
        if not report.get("curves"):
            sys.exit(f"plot: {json_file} has no curves: bench/metall/table.py writes them")
        return draw_curves(pyplot, report["curves"])
    rows = read_rows(figures)
    if not rows:
        sys.exit(f"plot: {json_file} has no figures to compare with full copies")
    return draw(pyplot, name, rows)


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

    base = os.path.splitext(arguments.json_file)[0]
    try:
        figure = draw_report(pyplot, arguments.json_file, base)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"plot: {arguments.json_file}: {error!r}")
    for name in arguments.to or [base + ".svg", base + ".png"]:
        figure.savefig(name, dpi=110, bbox_inches="tight")
        print(name)


if __name__ == "__main__":
    main()
