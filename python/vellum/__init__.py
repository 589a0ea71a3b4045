"""numpy arrays that have versions.

An array of a region is a plain numpy array. What is stored into it becomes durable in one step with a commit,
stays as a snapshot, and opens at any version in any process::

    import vellum

    with vellum.open("/data/s", create=True) as r:
        x = r.create_array("x", shape=(1_000_000, 8), dtype="f4")
        with r.transaction("day 1"):      # commits; an exception rolls back
            x[:] = 1
        r.snapshot("day-1")

    old = vellum.open("/data/s", version="day-1")["x"]

The guide is docs/guides/python.md.
"""

import atexit

from . import _core, errors
from . import forks as forks
from ._core import (
    CommitReport,
    Damage,
    GcReport,
    PulledVersion,
    PullReport,
    PushedVersion,
    PushReport,
    RemoteInfo,
    ReplicateState,
    StoreStat,
    VerifyReport,
    VersionInfo,
    VersionSpace,
    library_version,
)
from .array import Array
from .attributes import Attributes, Dict
from .diff import ArrayDiff, Diff
from .errors import (
    AlreadyExists,
    Busy,
    Corrupted,
    Error,
    InvalidArgument,
    IOFailure,
    NewerFormat,
    NoSpace,
    NotAStore,
    NotFound,
    OutOfMemory,
    Poisoned,
    ReadOnly,
    StoreNotFound,
    Unsupported,
    Untrusted,
    WrongKey,
)
from .group import Group
from .reference import pickle_references
from .region import Region, WriterReference, close_all, open
from .replication import Replication
from .store import Store, clone
from .strings import Strings

__version__ = library_version()


def load_ipython_extension(shell: object) -> None:
    """`%load_ext vellum`."""
    from .integrations import jupyter

    jupyter.load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext vellum`."""
    from .integrations import jupyter

    jupyter.unload(shell)


# Registered first, so it runs last: threads inside the library at that point stay there (interpreter.hpp).
atexit.register(_core.begin_end)

__all__ = [
    "AlreadyExists",
    "Array",
    "ArrayDiff",
    "Attributes",
    "Busy",
    "CommitReport",
    "Corrupted",
    "Damage",
    "Dict",
    "Diff",
    "Error",
    "GcReport",
    "Group",
    "IOFailure",
    "InvalidArgument",
    "NewerFormat",
    "NoSpace",
    "NotAStore",
    "NotFound",
    "OutOfMemory",
    "Poisoned",
    "PullReport",
    "PulledVersion",
    "PushReport",
    "PushedVersion",
    "ReadOnly",
    "Region",
    "RemoteInfo",
    "ReplicateState",
    "Replication",
    "Store",
    "StoreNotFound",
    "StoreStat",
    "Strings",
    "Unsupported",
    "VerifyReport",
    "VersionInfo",
    "VersionSpace",
    "WriterReference",
    "Untrusted",
    "WrongKey",
    "clone",
    "close_all",
    "errors",
    "open",
    "pickle_references",
]
