"""What exports and imports share: which items, in which pieces, how far."""

from __future__ import annotations

import itertools
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._arguments import Path, file_name, is_utf8
from ..array import Array
from ..errors import AlreadyExists, InvalidArgument
from ..progress import Callback, shown

PIECE_BYTES = 8 << 20
PIECE_VALUES = 4096

Where = tuple[slice, ...]
Count = Callable[[int], None]


# Groups and strings are made of this, not the other way round.
Group = Any
Strings = Any


def is_group(item: Any) -> bool:
    """Whether it has items of its own, of all kinds."""
    return hasattr(item, "visit")


def items_of(group: Group, names: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
    """Everything below by its name, or what has one of `names`; a group comes before what lies in it."""
    for name in group if names is None else names:
        item = group[name]
        if not is_utf8(name):
            raise InvalidArgument(f"{name!r} cannot be written as UTF-8, as names of an export are")
        yield name, item
        if is_group(item):
            yield from ((f"{name}/{inner}", each) for inner, each in items_of(item, None))


def is_wanted(name: str, names: Iterable[str] | None) -> bool:
    """Whether an item of a source is, or lies in, one of `names`."""
    return names is None or any(name == each or name.startswith(f"{each}/") for each in names)


def pieces(shape: Sequence[int], item_bytes: int, chunks: Sequence[int] | None = None) -> Iterator[Where]:
    """Ranges that cover an array, in C order. Each is of whole chunks, and of about 8 MiB."""
    steps = [1] * len(shape) if chunks is None else [max(step, 1) for step in chunks]
    for axis in reversed(range(len(shape))):
        one = math.prod(steps) * max(item_bytes, 1)
        steps[axis] *= max(PIECE_BYTES // one, 1)
        if steps[axis] < shape[axis]:
            break
        steps[axis] = max(shape[axis], 1)
    ranges = [range(0, length, step) for length, step in zip(shape, steps, strict=True)]
    for begins in itertools.product(*ranges):
        yield tuple(slice(b, min(b + s, n)) for b, s, n in zip(begins, steps, shape, strict=True))


def part_of(array: Any, where: Where) -> Any:
    """A view of a piece, also of an array without axes."""
    return array[(*where, ...)]


def read_array(group: Group, name: str, source: Any, dtype: Any, chunks: Sequence[int] | None, count: Count) -> Array:
    """Makes an array of what another library has: `source` has a shape, and gives pieces by indexing."""
    array: Array = group.create_array(name, source.shape, dtype)
    for where in pieces(source.shape, array.itemsize, chunks):
        part = part_of(array, where)
        part[...] = part_of(source, where)
        count(part.nbytes)
    return array


def parts_of(array: Array, count: Count, chunks: Sequence[int] | None = None) -> Iterator[tuple[Where, Any]]:
    """The pieces of an array that is exported. Those of a version leave memory again. Corrupted: one is damaged."""
    for where in pieces(array.shape, array.itemsize, chunks):
        part = part_of(array, where)
        part.prefetch()
        yield where, part
        part._leave_memory()
        count(part.nbytes)


def batches_of(strings: Strings) -> Iterator[list[Any]]:
    """The values of strings, so many at once."""
    for begin in range(0, len(strings), PIECE_VALUES):
        yield strings[begin : begin + PIECE_VALUES]


def create_strings(group: Group, name: str, kind: str) -> Strings:
    """Empty ones, of kind "string" or "bytes"."""
    return group.create_strings(name) if kind == "string" else group.create_bytes(name)


def byte_count_of(items: Iterable[tuple[str, Any]]) -> int:
    """For progress: the bytes of all arrays, as of a library that has `nbytes`."""
    return sum(int(getattr(item, "nbytes", 0)) for _, item in items)


@contextmanager
def counted(title: str, total: int, progress: bool | Callback | None) -> Iterator[Count]:
    """A function to call with the bytes that are done."""
    done = 0
    with shown(title, progress) as callback:

        def count(more: int) -> None:
            nonlocal done
            done += more
            if callback is not None:
                callback(done, max(total, done), "B")

        yield count


def as_plain(value: Any) -> Any:
    """An attribute of another library as JSON can keep it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return value.decode("utf-8") if isinstance(value, bytes) else value


@contextmanager
def new_file(path: Path) -> Iterator[str]:
    """A name that is free, for a file that is whole or gone at the end. AlreadyExists: it is taken."""
    where = file_name(path)
    if os.path.lexists(where):
        raise AlreadyExists(f"{where} exists: an export makes a new file")
    try:
        yield where
    except FileExistsError:
        raise AlreadyExists(f"{where} exists: an export makes a new file") from None
    except BaseException:
        remove(where)
        raise


def remove(path: str) -> None:
    """What an export that failed has left."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)
