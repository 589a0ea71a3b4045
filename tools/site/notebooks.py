"""A notebook as Markdown: its text, its code, and the output and plots of the code."""

import json


def fenced(language, text):
    return f"`````{language}\n{text.rstrip()}\n`````\n"


def printed(output):
    """The output of a cell: text, a picture, or the value of its last line."""
    if output["output_type"] == "stream":
        return fenced("text", "".join(output["text"]))
    data = output.get("data", {})
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="the plot that the code above draws" src="data:image/png;base64,{png}">\n'
    return fenced("text", "".join(data.get("text/plain", [])))


def markdown(text):
    out = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(source + "\n")
        else:
            out.append(fenced("python", source))
            out += [printed(output) for output in cell["outputs"]]
    return "\n".join(out)
