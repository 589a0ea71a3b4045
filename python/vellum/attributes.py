"""Attributes and dicts: JSON values by name, part of the version like the arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from ._mapping import Mapping
from .errors import InvalidArgument, ReadOnly


def _as_json(value: Any) -> Any:
    """The value as JSON keeps it; numpy's numbers and arrays become Python's."""

    def default(part: Any) -> Any:
        if isinstance(part, np.generic):
            return part.item()
        if isinstance(part, np.ndarray):
            return part.tolist()
        raise TypeError(f"{type(part).__name__} is no JSON value")

    try:
        return json.loads(json.dumps(value, default=default))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"not a JSON value: {error}") from error


class _JsonMapping(MutableMapping[str, Any]):
    """A mapping in the catalog. What it gives out is a copy: assign to change."""

    _part = ""

    def __init__(self, mapping: Mapping, name: str) -> None:
        self._mapping = mapping
        self._name = name

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._mapping.catalog.find(self._name)[self._part]
        return values

    def _to_change(self) -> dict[str, Any]:
        if self._mapping.version is not None:
            raise ReadOnly(f"{self._mapping.title} is open read-only")
        self._mapping.catalog.dirty = True
        return self._values()

    def __getitem__(self, key: str) -> Any:
        return _copied(self._values()[key])

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise InvalidArgument(f"{key!r} is no name: the names of JSON values are strings")
        value = _as_json(value)
        self._to_change()[key] = value

    def __delitem__(self, key: str) -> None:
        self._values()[key]
        del self._to_change()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values()))

    def __len__(self) -> int:
        return len(self._values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values()!r})"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value)) if isinstance(value, (dict, list)) else value


class Attributes(_JsonMapping):
    """The attributes of a group or an array."""

    _part = "attrs"


class Dict(_JsonMapping):
    """A dict of small objects: JSON values. All of it is written with each commit that changes it."""

    _part = "items"

    @property
    def attrs(self) -> Attributes:
        """The attributes of the dict itself."""
        return Attributes(self._mapping, self._name)
