"""MkDocs' hooks (mkdocs.yml): pages that are not Markdown files of docs/.

The README is the start page. Manual pages are converted by mandoc, public headers by headers.py, notebooks by
notebooks.py, recordings by recording.py; any other file that a document links to becomes a page with its text. Links in the documents are those of
the repository, and are converted to the site's pages as each page is read.
"""

import os
import posixpath
import re
import subprocess
import sys

from mkdocs.structure.files import File

sys.path.insert(0, os.path.dirname(__file__))
import headers
import notebooks
import recording

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
RECORDING = re.compile(r"<!-- recording: (\w+) -->")
LANGUAGES = {".hpp": "cpp", ".h": "cpp", ".cpp": "cpp", ".c": "c", ".py": "python", ".sh": "bash"}

pages = {}    # path in the repository: page of the site
sources = {}  # page of the site: path in the repository


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def listed(folder, pattern):
    return sorted(f"{folder}/{name}" for name in os.listdir(os.path.join(ROOT, folder))
                  if re.fullmatch(pattern, name))


def manual_markdown(path):
    """A manual page as Markdown headings with HTML between them."""
    text = read(path)
    is_alias = text.startswith(".so ")
    if is_alias:
        path = posixpath.join("docs/man", posixpath.basename(text.split()[1]))
    html = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", os.path.join(ROOT, path)],
                          check=True, capture_output=True).stdout.decode()
    html = re.sub(r"<table class=\"(head|foot)\">.*?</table>", "", html, flags=re.S)
    html = re.sub(r"</?section[^>]*>", "", html)
    html = re.sub(r"<div class=\"manual-text\">|</div>\s*$", "", html.strip())

    def reference(match):
        page = f"{match.group(1)}.{match.group(2)}"
        here = f"docs/man/{page}" in pages
        return f'<a href="{page}.html">{match.group(0)}</a>' if here else match.group(0)

    html = re.sub(r"<b>([\w-]+)</b>\((\d)\)", reference, html)
    parts = re.split(r"<h([12]) class=\"S[hs]\"[^>]*>(.*?)</h\1>", html, flags=re.S)
    out = [f"{NOT_SEARCHED if is_alias else ''}# {posixpath.basename(path)[:-2]}({path[-1]})\n"]

    def wrap(piece):
        if piece.strip():
            out.append(f'<div class="man">\n{piece.strip()}\n</div>\n')

    wrap(parts[0])
    for level, title, body in zip(parts[1::3], parts[2::3], parts[3::3]):
        title = " ".join(re.sub(r"<[^>]*>", "", title).split()).capitalize()
        out.append(f"{'#' * (int(level) + 1)} {title}\n")
        wrap(body)
    return "\n".join(out)


# A user's question is rather answered in a guide or a manual page than in a page about the design with the same words.
BOOSTS = {"guides/": 2, "manual/": 1.5, "headers/": 0.7, "decisions/": 0.5, "architecture": 0.5}
# Pages with this are in the site but not in its search: sources, and second names of manual pages.
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n"


def text_page(path):
    language = LANGUAGES.get(os.path.splitext(path)[1], "text")
    return f"{NOT_SEARCHED}# {path}\n\n`````{language}\n{read(path)}\n`````\n"


def plan():
    """Fills `pages` with every file that gets its own page."""
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        for name in names:
            path = posixpath.relpath(posixpath.join(folder, name), ROOT)
            pages[path] = path[len("docs/"):]
    pages["README.md"] = "index.md"
    for path in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        pages[path] = f"project/{path.lower()}"
    for path in listed("docs/notebooks", r".*\.ipynb"):
        pages[path] = f"notebooks/{posixpath.basename(path)}.md"
    for path in listed("docs/man", r".*\.\d"):
        pages[path] = f"manual/{posixpath.basename(path)}.md"
    pages["docs/man"] = "manual/index.md"
    for path in public_headers():
        pages[path] = f"headers/{posixpath.basename(path)}.md"
    pages["include/vellum"] = pages["include/privateer"] = "headers/index.md"
    for path in [p for p in pages if p.endswith(".md")]:
        for _, _, link in LINK.findall(read(path)):
            target = resolve(path, link.partition("#")[0])
            if target and target not in pages and os.path.isfile(os.path.join(ROOT, target)):
                pages[target] = f"source/{target}.md"


def public_headers():
    return (listed("include/vellum", r".*\.hpp|vellum\.h|msync\.h|cards\.h|mpi\.h") +
            listed("include/privateer", r".*\.hpp"))


def resolve(path, link):
    """The path in the repository that a link of `path` leads to; None for a link out of the repository."""
    if not link or re.match(r"[a-z]+:", link):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def content_of(path):
    if path.endswith(".md"):
        return read(path)
    if path.startswith("docs/man/"):
        return manual_markdown(path)
    if path.endswith(".ipynb"):
        return notebooks.markdown(read(path))
    if path.startswith("include/"):
        return headers.markdown(path, read(path))
    return text_page(path)


def index_of(title, paths, name_of):
    lines = [f"# {title}\n"]
    for path in paths:
        lines.append(f"- [{posixpath.basename(path)}]({posixpath.basename(pages[path])}): {name_of(path)}")
    return "\n".join(lines) + "\n"


def manual_name(path):
    text = read(path)
    if text.startswith(".so "):
        return "another name of `" + posixpath.basename(text.split()[1]) + "`"
    return re.search(r"\.SH NAME\n.*? \\- (.*)", text).group(1).replace("\\-", "-")


def on_config(config):
    plan()
    manual, public = listed("docs/man", r".*\.\d"), public_headers()
    config["nav"] += [
        {"Manual pages": ["manual/index.md"] + [{p.split("/")[-1]: pages[p]} for p in manual]},
        {"Headers": ["headers/index.md"] + [{p.split("/")[-1]: pages[p]} for p in public]},
        {"Project": [{"Contributing": "project/contributing.md"}, {"Changelog": "project/changelog.md"},
                     {"Security policy": "project/security.md"}]},
    ]
    return config


def on_files(files, config):
    generated = {page: content_of(path) for path, page in pages.items()
                 if page.endswith(".md") and os.path.isfile(os.path.join(ROOT, path))
                 and path != "docs/" + page}
    generated["manual/index.md"] = index_of("Manual pages", listed("docs/man", r".*\.\d"), manual_name)
    generated["headers/index.md"] = index_of(
        "Headers", public_headers(), lambda path: headers.summary(read(path)))
    for page, content in generated.items():
        files.append(File.generated(config, page, content=content))
    for cast in listed("docs/recordings", r".*\.cast"):
        page = pages[cast].replace(".cast", ".svg")
        files.append(File.generated(config, page, content=recording.picture(read(cast))))
    sources.update({page: path for path, page in pages.items()})
    return files


def recorded(match):
    name = match.group(1)
    return recording.markdown(name, read(f"docs/recordings/{name}.cast"))


def on_page_markdown(markdown, page, config, files):
    for folder, boost in BOOSTS.items():
        if page.file.src_uri.startswith(folder):
            page.meta.setdefault("search", {"boost": boost})
    path = sources.get(page.file.src_uri)
    if path is None or not path.endswith(".md"):
        return markdown

    def turned(match):
        bang, text, link = match.groups()
        link, hash_, fragment = link.partition("#")
        target = resolve(path, link)
        if target is None:
            return match.group(0)
        if target not in pages:
            return text  # a folder: the site has no page of it
        there = posixpath.relpath(pages[target], posixpath.dirname(page.file.src_uri) or ".")
        return f"{bang}[{text}]({there}{hash_}{fragment})"

    return RECORDING.sub(recorded, LINK.sub(turned, markdown))
