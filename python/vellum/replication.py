"""`Replication`: a background thread pushes each commit of a store to a remote."""

from __future__ import annotations

import atexit
from types import TracebackType
from typing import Protocol

from . import _core
from ._arguments import text
from .errors import Error, InvalidArgument, IOFailure

_STEP_SECONDS = 0.05  # between two looks at signals
_LONGEST_SECONDS = 1e9


class Replicated(Protocol):
    """A `Store`."""

    _native: _core.Store

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def remotes(self) -> list[_core.RemoteInfo]: ...  # noqa: D102


class Replication:
    """Sends each commit and each new snapshot to a remote, until `stop()`: see `Store.replicate`.

    Use it with `with`, which stops it, or keep it. One that is not stopped goes on to the end of the program,
    which waits for a last push.
    """

    def __init__(self, store: Replicated, url: str, interval: float, take_over: bool) -> None:
        if not isinstance(interval, (int, float)) or not 0.001 <= interval <= _LONGEST_SECONDS:
            raise InvalidArgument(f"an interval of a replication takes from 0.001 s to 1e9 s, not {interval!r}")
        self.store, self.url = store, text(url, "URL")
        self._native = _core.Replication(store._native, url, round(interval * 1000), bool(take_over))
        self._is_stopped = False
        try:
            self._wait_until_known()
        except BaseException:
            self._native.ask_end()
            raise
        atexit.register(self.stop)

    def _wait_until_known(self) -> None:
        """A malformed URL, or a server that does not answer, raises in the caller that started it."""
        while not any(remote.url == self.url for remote in self.store.remotes):
            if self._native.wait(_STEP_SECONDS):
                self._native.rethrow()

    def __repr__(self) -> str:
        return f"<Replication of {self.store.path} to {self.url}: {'running' if self.running else 'ended'}>"

    @property
    def state(self) -> _core.ReplicateState:
        """What it has done, how far it is behind, and why its last push failed."""
        return self._native.state

    @property
    def running(self) -> bool:
        """False: it was stopped, or no later push can succeed: `state.failure`, which `stop()` raises."""
        return not self._native.wait(0)

    def stop(self) -> _core.ReplicateState:
        """Pushes new commits and ends. Stopping twice does nothing.

        What ended it earlier is raised: `Busy` where another store has pushed a branch. `IOFailure`: the remote
        does not have all commits.
        """
        self._native.ask_end()
        while not self._native.wait(_STEP_SECONDS):
            pass  # Ctrl-C ends this wait, and not the last push
        atexit.unregister(self.stop)
        was_stopped, self._is_stopped = self._is_stopped, True
        state = self.state
        if not was_stopped:
            self._native.rethrow()
            if state.failure:
                raise IOFailure(f"the remote does not have all commits: {state.failure}")
        return state

    def __enter__(self) -> Replication:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Error as failure:
            if error is None:
                raise
            error.add_note(f"replication to {self.url}: {failure}")
