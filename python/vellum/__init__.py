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

from . import errors
from ._core import (
    CommitReport,
    GcReport,
    PullReport,
    PushReport,
    RemoteInfo,
    ReplicateState,
    StoreStat,
    VerifyReport,
    VersionInfo,
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
)
from .group import Group
from .reference import WriterReference
from .region import Region, open
from .replication import Replication
from .store import Store, clone
from .strings import Strings

__version__ = library_version()

__all__ = [
    "AlreadyExists",
    "Array",
    "ArrayDiff",
    "Attributes",
    "Busy",
    "CommitReport",
    "Corrupted",
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
    "PushReport",
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
    "WriterReference",
    "clone",
    "errors",
    "open",
]
