#!/usr/bin/env bash
# Builds a site from the documents in build/docs/site. Fails on a broken link or anchor, and when the search does not
# find the pages that answer users' questions.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/install-deps.sh --for docs
tools/check-documents.py
venv=build/docs/venv
if ! cmp -s docs/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet -r docs/requirements.txt
  cp docs/requirements.txt "$venv/requirements.txt"
fi
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict --quiet
if grep -qE '"location":"(source/|manual/vellum-(ls|tag)\.1)' build/docs/site/search/search_index.json; then
  echo "docs: the search has sources, or a manual page under its second name" >&2
  exit 1
fi
echo "docs: the first hits of the site's search"
node tools/site/search.js build/docs/site
echo "docs: build/docs/site; to read it: python3 -m http.server --directory build/docs/site"
