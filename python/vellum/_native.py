"""Stores as the extension module has them."""

from __future__ import annotations

from . import _core
from ._arguments import Path, where
from .errors import InvalidArgument, NotFound, StoreNotFound


def open_store(path: Path, create: bool) -> _core.Store:
    """The store at a path or URL. StoreNotFound: there is none."""
    place, is_url = where(path)
    if is_url and create:
        raise InvalidArgument(f"{place!r}: a remote is made by a push of a store: create goes with a directory")
    try:
        return _core.Store.open_or_create(place) if create else _core.Store.open(place)
    except NotFound as error:
        raise StoreNotFound(error.message) from None
