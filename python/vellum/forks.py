"""The parent's regions in a child of fork(2): reopened at the same addresses."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings

from . import _core, _mapping
from ._native import open_store
from .errors import Error, NotFound
from .restore import parts_of, used_bytes
from .space import PAGE, Extent, round_up

# Bytes of uncommitted arrays in use, from before a fork to its end.
_copies: dict[_mapping.Mapping, dict[Extent, bytes]] = {}


def _before_fork() -> None:
    for mapping in _mapping.everyone():
        _copies[mapping] = {
            extent: ctypes.string_at(mapping.core.address + extent[0], length)
            for extent, length in _uncommitted(mapping).items()
        }


def _after_fork_in_parent() -> None:
    _copies.clear()


def _uncommitted(mapping: _mapping.Mapping) -> dict[Extent, int]:
    """The extents that arrays use and no commit has, with the bytes that are values.

    Arrays without a name have none: they are in no version.
    """
    if mapping.version is not None:
        return mapping.covered
    catalog = mapping.catalog
    live = dict.fromkeys((e for e in mapping.live() if not catalog.space.is_committed(e)), 0)
    for name, part in parts_of(catalog.entries) if live else ():
        extent: Extent = tuple(catalog.entries[name][part])
        if extent in live:
            live[extent] = used_bytes(mapping, name, part)
    return live


def _after_fork_in_child() -> None:
    """A child has none of its parent's regions. What was read is opened again, in its place.

    Of a branch that the parent writes, the child gets the last commit, to read, and copies of the arrays that are in
    use and not committed.
    """
    _core.begin_child()
    mappings = _mapping.everyone()
    for mapping in mappings:
        mapping.extents.lock = threading.RLock()  # another thread of the parent may have had it
    # All addresses are reserved first: the next opening could otherwise occupy one of them.
    for step in (_keep_place, _open_in_place):
        for mapping in list(mappings):
            try:
                step(mapping)
            except Error as error:
                mappings.remove(mapping)
                text = f"{mapping.title} is not in this child process, and a touch is a crash: {error}"
                warnings.warn(text, RuntimeWarning, stacklevel=1)
    _copies.clear()


def _keep_place(mapping: _mapping.Mapping) -> None:
    _core.reserve(mapping.core.address, mapping.core.capacity_bytes)


def _open_in_place(mapping: _mapping.Mapping) -> None:
    parents = mapping.core
    options = _core.OpenOptions()
    options.reserved_address, options.capacity_bytes = parents.address, parents.capacity_bytes
    was_writer = mapping.version is None
    store = open_store(mapping.store.path, False)
    core, info = store.open_version(mapping.name, options), store.version(mapping.name)
    if not was_writer and core.sequence != mapping.sequence:
        raise NotFound("the branch has gone on")
    mapping.parents.append(parents)  # its memory is the parent's: nothing here may end it
    mapping.store, mapping.core, mapping.version = store, core, info
    mapping.ending.core, mapping.ending.pid = core, os.getpid()
    if was_writer:
        mapping.sequence = core.sequence
        mapping.catalog.load()
        warnings.warn(
            f"{mapping.title}: the child process has its last commit, to read; a store to it is a crash. Arrays that "
            "are not committed are copies",
            RuntimeWarning,
            stacklevel=1,
        )
    _cover(mapping, _copies.get(mapping, {}))


def _cover(mapping: _mapping.Mapping, copies: dict[Extent, bytes]) -> None:
    """Copies uncommitted bytes to their addresses, in memory of the child's own."""
    mapping.covered = {extent: len(content) for extent, content in copies.items()}
    core, pages = mapping.core, set[int]()
    for (offset, length), content in copies.items():
        begin, end = offset // PAGE * PAGE, round_up(offset + length, PAGE)
        if begin == offset and length % PAGE == 0:
            _core.cover(core.address + begin, end - begin)
        elif begin not in pages:  # an array without axes shares its page with others
            pages.add(begin)
            kept = max(0, min(end, core.size_bytes) - begin)
            page = ctypes.string_at(core.address + begin, kept)
            _core.cover(core.address + begin, end - begin)
            ctypes.memmove(core.address + begin, page, kept)
        ctypes.memmove(core.address + offset, content, len(content))


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
