"""Progress of long calls, by tqdm where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Callback = Callable[[int, int, str], None]


@contextmanager
def shown(title: str, progress: bool | Callback | None) -> Iterator[Callback | None]:
    """What the library calls: the caller's function, a bar, or nothing.

    `progress`: a function of done, total and unit; True or False; None for a bar where standard error is a
    terminal and tqdm is there.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or (progress is None and not sys.stderr.isatty()):
        yield None
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(desc=title, unit_scale=True, leave=False) as bar:
        yield lambda done, total, unit: _update(bar, done, total, unit)


def _update(bar: Any, done: int, total: int, unit: str) -> None:
    bar.total, bar.unit = total or None, unit or "it"
    bar.update(done - bar.n)
