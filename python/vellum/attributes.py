"""Attributes and dicts: JSON values by name, part of the version like the arrays."""

from __future__ import annotations

import functools
import json
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping
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


class _Owner:
    """The owner of lists and dicts of attributes: they report a change, so it is part of the next commit."""

    def __init__(self, mapping: Mapping) -> None:
        self.mapping = weakref.ref(mapping)  # a list that is kept does not keep the branch open
        self.generation = mapping.catalog.generation

    def to_change(self) -> None:
        mapping = self.mapping()
        if mapping is None:
            raise InvalidArgument("the region of this value is closed")
        mapping.require_open()
        if mapping.version is not None:
            raise ReadOnly(f"{mapping.title} is open read-only")
        if mapping.catalog.generation != self.generation:
            raise InvalidArgument(f"{mapping.title} was rolled back since this value was read: read it again")
        mapping.catalog.dirty = True

    def live(self, value: Any) -> Any:
        """A JSON value whose lists and dicts are of this owner."""
        if type(value) is list:
            return _List((self.live(each) for each in value), self)
        return _Dict({key: self.live(each) for key, each in value.items()}, self) if type(value) is dict else value


class _List(list[Any]):
    """A list in the catalog: a change of it is one of the region. Without an owner it is like any list."""

    def __init__(self, values: Iterable[Any] = (), owner: _Owner | None = None) -> None:
        super().__init__(values)
        self._owner = owner

    def __reduce_ex__(self, protocol: Any) -> Any:
        return list, (list(self),)

    def sort(self, **options: Any) -> None:
        self[:] = sorted(self, **options)


class _Dict(dict[str, Any]):
    """A dict in the catalog: a change of it is one of the region. Without an owner it is like any dict."""

    def __init__(self, values: Any = (), owner: _Owner | None = None) -> None:
        super().__init__(values)
        self._owner = owner

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self


def _changing(kind: type, name: str, prepare: Callable[..., tuple[Any, ...]]) -> None:
    """Makes a method of `kind` that changes the region; `prepare` gives JSON arguments for the plain one."""
    plain = getattr(kind.__mro__[1], name)

    @functools.wraps(plain)
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        owner = self._owner
        if owner is None:
            return plain(self, *args, **kwargs)
        prepared = prepare(*args, **kwargs)
        owner.to_change()
        return plain(self, *(owner.live(each) for each in prepared))

    setattr(kind, name, change)


def _as_it_is(*args: Any) -> tuple[Any, ...]:
    return args


def _last_as_json(*args: Any) -> tuple[Any, ...]:
    return (*args[:-1], _as_json(args[-1]))


def _item_as_json(index: Any, value: Any) -> tuple[Any, ...]:
    return index, _as_json(list(value) if isinstance(index, slice) else value)


def _named_as_json(key: Any, value: Any) -> tuple[Any, ...]:
    return _checked_key(key), _as_json(value)


def _all_as_json(values: Iterable[Any]) -> tuple[Any, ...]:
    return (_as_json(list(values)),)


def _dict_as_json(values: Any = (), **more: Any) -> tuple[Any, ...]:
    return ({_checked_key(key): _as_json(value) for key, value in dict(values, **more).items()},)


for _name in ("pop", "remove", "clear", "reverse", "__delitem__", "__imul__"):
    _changing(_List, _name, _as_it_is)
for _name in ("append", "insert"):
    _changing(_List, _name, _last_as_json)
for _name in ("extend", "__iadd__"):
    _changing(_List, _name, _all_as_json)
_changing(_List, "__setitem__", _item_as_json)
for _name in ("pop", "popitem", "clear", "__delitem__"):
    _changing(_Dict, _name, _as_it_is)
_changing(_Dict, "__setitem__", _named_as_json)
_changing(_Dict, "update", _dict_as_json)


def _checked_key(key: Any) -> str:
    if not isinstance(key, str):
        raise InvalidArgument(f"{key!r} is no name: the names of JSON values are strings")
    return key


class _JsonMapping(MutableMapping[str, Any]):
    """A mapping in the catalog. Lists and dicts in it are the region's own: changing one changes the region."""

    _part = ""

    def __init__(self, mapping: Mapping, name: str) -> None:
        self._mapping = mapping
        self._name = name

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._mapping.catalog.find(self._name)[self._part]
        return values

    def __getitem__(self, key: str) -> Any:
        values = self._values()
        value = values[key]
        if type(value) in (list, dict):
            value = values[key] = _Owner(self._mapping).live(value)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def update(self, values: Any = (), /, **more: Any) -> None:
        """All of the values, or none where one of them is no JSON value."""
        (new,) = _dict_as_json(values, **more)
        kept, owner = self._values(), _Owner(self._mapping)
        owner.to_change()
        kept.update(owner.live(new))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of the name; if there is none, `default` is stored first."""
        if key not in self:
            self[key] = default
        return self[key]

    def __delitem__(self, key: str) -> None:
        values = self._values()
        values[key]
        _Owner(self._mapping).to_change()
        del values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values()))

    def __len__(self) -> int:
        return len(self._values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values()!r})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        """This is no array: pandas and numpy would take the names for its values."""
        raise TypeError(f"{type(self).__name__} is a mapping of names: use dict() of it")

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


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
