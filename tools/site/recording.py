"""Recordings of a terminal (docs/recordings/*.cast) for the site: a picture that moves, and the text.

The picture shows each line when it was complete, and scrolls. It is an SVG without a script: it starts when it is
shown, and ends with the last line. Readers who prefer less motion see the end at once.
"""

import html
import json
import re

LINE, COLUMN, MARGIN, ROWS = 17, 7.8, 12, 26
STYLE = """
text { font: 13px ui-monospace, monospace; fill: #e6e6e6; white-space: pre; visibility: hidden; animation: show 0s forwards; }
.command { fill: #9be59b; }
@keyframes show { to { visibility: visible; } }
"""
STILL = "@media (prefers-reduced-motion: reduce) { text { visibility: visible; animation: none; } g { animation: none; } }"


def lines_of(cast):
    """Each line of the terminal with the time at which it was complete, and the number of columns."""
    head, *events = (json.loads(line) for line in cast.splitlines())
    lines, text, at = [], "", 0.0
    for at, _, output in events:
        output = re.sub(r"\x1b\[[0-9;]*m", "", output)
        for part in re.findall(r"\r\n|\r|\x1b\[K|[^\r\x1b]+", output):
            if part == "\r\n":
                lines += [(at, text[i:i + head["width"]]) for i in range(0, max(len(text), 1), head["width"])]
                text = ""
            elif part in ("\r", "\x1b[K"):  # a line of progress, which is then cleared
                text = ""
            else:
                text += part
    return lines + ([(at, text)] if text.strip() else []), head["width"]


def is_command(text):
    return text.startswith("$ ")


def transcript(cast):
    return "\n".join(text.rstrip() for _, text in lines_of(cast)[0]) + "\n"


def scrolling(lines, seconds):
    """The steps by which the lines move up."""
    steps = {}
    for number, (at, _) in enumerate(lines):
        if number >= ROWS:
            steps[round(100 * at / seconds, 2)] = (number - ROWS + 1) * LINE
    frames = " ".join(f"{at}% {{ transform: translateY(-{up}px); }}" for at, up in steps.items())
    last = max(steps.values(), default=0)
    return (f"@keyframes scroll {{ {frames} }}\n"
            f"g {{ transform: translateY(-{last}px); animation: scroll {seconds}s step-end; }}\n")


def picture(cast):
    lines, columns = lines_of(cast)
    seconds = max(round(lines[-1][0], 2), 1)
    width, height = round(columns * COLUMN) + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{MARGIN + (number + 1) * LINE - 4}" style="animation-delay: {round(at, 2)}s"'
        f'{" class=" + chr(34) + "command" + chr(34) if is_command(text) else ""}>{html.escape(text)}</text>'
        for number, (at, text) in enumerate(lines) if text.strip())
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
            f"<style>{STYLE}{scrolling(lines, seconds)}{STILL}</style>\n"
            f'<rect width="{width}" height="{height}" fill="#1e1e1e"/>\n<g>\n{rows}\n</g>\n</svg>\n')


def markdown(name, cast):
    """The picture in a part that the reader opens, and the same as text."""
    return (f'<details class="recording">\n<summary>Play the recording</summary>\n'
            f'<img loading="lazy" src="{name}.svg" alt="The lines below, one after the other">\n</details>\n\n'
            f"`````text\n{transcript(cast)}`````\n")
