"""Checks of arguments: `InvalidArgument` names the argument and what it accepts."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Any

from . import _core
from .errors import InvalidArgument

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def is_utf8(text: str) -> bool:
    """Whether a text can be written. File names may have halves of characters (`os.fsdecode`), which cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def text(value: Any, meaning: str) -> str:
    """A text, such as "name of a version"."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{value!r} is no {meaning}: that is a str, and this is of type {type(value).__name__}")
    if not is_utf8(value):
        raise InvalidArgument(f"{value!r} is no {meaning}: it cannot be written as UTF-8")
    return value


def version_name(value: Any) -> str:
    """The name of a version, or of a branch."""
    return text(value, "name of a version")


def version_names(values: Any) -> list[str]:
    """The names of some versions."""
    if isinstance(values, (str, bytes)):
        raise InvalidArgument(f"versions is a list: [{values!r}]")
    if not isinstance(values, Iterable):
        raise InvalidArgument(f"versions is a list of names, and not {values!r}")
    return [version_name(each) for each in values]


def number(value: Any, meaning: str, most: int = (1 << 63) - 1) -> int:
    """A whole number that is not negative."""
    try:
        found = -1 if type(value).__name__ in ("bool", "bool_") else operator.index(value)
    except TypeError:
        found = -1
    if not 0 <= found <= most:
        raise InvalidArgument(f"{value!r} is no {meaning}: a whole number from 0 to {most}")
    return found


def file_name(path: Any) -> str:
    """The path of a file; "~" is the user's home."""
    try:
        given = os.fsdecode(path)
    except TypeError as error:
        raise InvalidArgument(f"{path!r} is no path: {error}") from error
    if given == "" or "\0" in given:
        raise InvalidArgument(f"{given!r} is no path")
    return os.path.expanduser(given)


def where(path: Any) -> tuple[str, bool]:
    """The absolute path of a store, and False; or the URL of a remote, and True."""
    given = file_name(path)
    if _core.is_remote_url(given):
        return given, True
    return os.path.abspath(given), False
