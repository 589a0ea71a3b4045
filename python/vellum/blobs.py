"""Bytes of any length under names of a group: an array of bytes each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import Array
from .errors import InvalidArgument
from .group import Group


def is_blob(array: Any) -> bool:
    """Whether it is an array of bytes with one axis."""
    return isinstance(array, Array) and array.dtype == "u1" and array.ndim == 1


def put(group: Group, name: str, content: np.ndarray[Any, Any], *, append: bool = False) -> None:
    """Makes or replaces an array of bytes, in its place where it can: a commit then costs what differs.

    InvalidArgument: it is an array of another type, and has no end to append to.
    """
    begin, is_there = 0, name in group
    if is_there and not is_blob(group[name]):
        if append:
            raise InvalidArgument(f"{name!r} is an array of {group[name].dtype}, and not bytes to append to")
        del group[name]
        is_there = False
    if is_there:
        begin = len(group[name]) if append else 0
        try:
            group.resize(name, begin + len(content))[begin:] = content
            return
        except BufferError:  # an array of it is in use, and it is too long for its place
            content = np.concatenate([group[name][:begin], content])
        del group[name]
    group.create_array(name, data=content, room=0)


def bytes_of(array: Array, start: int | None = None, end: int | None = None) -> np.ndarray[Any, Any]:
    """The bytes of an array, or of a part of it, without a copy.

    Corrupted: a page cannot be read. A load instruction cannot say so.
    """
    if array.nbytes == 0:
        return np.empty(0, "u1")
    part: Any = array.reshape(-1).view("u1")[start:end]
    if part.nbytes:
        part.prefetch()
    return np.asarray(part)
