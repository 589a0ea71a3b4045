"""The exceptions: one base class, `Error`, and for each code the built-in exception of its meaning, too."""

from __future__ import annotations

import errno as _errno

__all__ = [
    "AlreadyExists",
    "Busy",
    "Corrupted",
    "Error",
    "InvalidArgument",
    "IOFailure",
    "NewerFormat",
    "NoSpace",
    "NotAStore",
    "NotFound",
    "OutOfMemory",
    "Poisoned",
    "ReadOnly",
    "StoreNotFound",
    "Unsupported",
    "Untrusted",
    "WrongKey",
]


class Error(Exception):
    """Every failure that Vellum reports. `code` is a short, stable name, such as "not_found"."""

    code = "io"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type[Error], tuple[str]]:
        return type(self), (self.message,)


class _OSFailure(Error, OSError):
    """A failure with an `errno`."""

    number = _errno.EIO

    def __init__(self, message: str) -> None:
        OSError.__init__(self, self.number, message)
        self.message = message


class InvalidArgument(Error, ValueError):
    """A value outside its range, a malformed name."""

    code = "invalid_argument"


class NotFound(Error, KeyError):
    """No such version, branch, array or group."""

    code = "not_found"


class StoreNotFound(_OSFailure, FileNotFoundError):
    """There is no store at the path."""

    code = "not_found"
    number = _errno.ENOENT


class AlreadyExists(_OSFailure, FileExistsError):
    """The name is taken."""

    code = "already_exists"
    number = _errno.EEXIST


class NotAStore(_OSFailure):
    """The path exists, but is not a store."""

    code = "not_a_store"
    number = _errno.ENOTDIR


class NewerFormat(Error, ValueError):
    """A newer Vellum has written it. Nothing is touched."""

    code = "newer_format"


class Busy(_OSFailure, BlockingIOError):
    """Another writer has the branch, or a transaction is open."""

    code = "busy"
    number = _errno.EAGAIN


class ReadOnly(_OSFailure, PermissionError):
    """The medium, the store or the version cannot be written."""

    code = "read_only"
    number = _errno.EROFS


class NoSpace(_OSFailure):
    """The disk is full. The last commit stays, and everything stored stays in memory."""

    code = "no_space"
    number = _errno.ENOSPC


class IOFailure(_OSFailure):
    """The operating system refused; the message gives its reason."""

    code = "io"


class Corrupted(_OSFailure):
    """Bytes fail their checks; the message names file, offset, version and page."""

    code = "corrupted"
    number = _errno.EBADMSG


class Poisoned(_OSFailure):
    """A flush failed earlier: the branch takes no commits until it is opened again."""

    code = "poisoned"


class Unsupported(_OSFailure):
    """This kernel or this build cannot do it."""

    code = "unsupported"
    number = _errno.ENOTSUP


class OutOfMemory(Error, MemoryError):
    """Address space, memory or descriptors were refused."""

    code = "out_of_memory"


class WrongKey(_OSFailure, PermissionError):
    """The store is encrypted, and no key was given, or one that does not fit; or it is plain, and only encrypted
    stores are wanted.
    """

    code = "wrong_key"
    number = _errno.EACCES


class Untrusted(Error):
    """A version is not signed by a wanted key, or is not what was signed; or a remote shows an older or a forked head
    than before.
    """

    code = "untrusted"


_BY_CODE: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (
        InvalidArgument, NotFound, AlreadyExists, NotAStore, NewerFormat, Busy, ReadOnly, NoSpace, IOFailure,
        Corrupted, Poisoned, Unsupported, OutOfMemory, WrongKey,
        Untrusted,
    )
}  # fmt: skip


def make(code: str, message: str) -> Error:
    """The exception for a code of the C++ library. For the extension module."""
    return _BY_CODE.get(code, Error)(message)
