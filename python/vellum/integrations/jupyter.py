"""Undo and branches for a notebook: `%load_ext vellum`.

`%vellum open PATH` opens a region as `region`. Each cell that changes it is a version. `%vellum keep NAME` moves an
array, a frame or an Arrow table of the notebook into the region. The guide is docs/guides/jupyter.md.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np

import vellum
from vellum.restore import take_content

try:
    from IPython.core.error import UsageError
    from IPython.core.magic import Magics, line_magic, magics_class
except ImportError as error:
    raise ImportError("vellum.integrations.jupyter needs IPython: pip install vellum[jupyter]") from error

__all__ = ["VellumMagics", "load", "unload"]

_CELL = re.compile(r"cell-(\d+)-(.+)")
_BACK = "back to "  # the message of a commit that is no cell's change, but an undo or a redo


@magics_class
class VellumMagics(Magics):  # type: ignore[misc]
    """`%vellum`, `%undo`, `%redo` and `%branch`."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._region: vellum.Region | None = None
        self._seen = 0  # the sequence of the last commit whose cell is known

    # ---- The region

    @property
    def region(self) -> vellum.Region:
        """The open region. UsageError: there is none."""
        if self._region is None or self._region.closed:
            raise UsageError("no region is open: %vellum open PATH")
        return self._region

    @line_magic("vellum")  # type: ignore[untyped-decorator]
    def manage(self, line: str) -> None:
        """`open PATH [BRANCH]`, `keep NAME...`, `cells`, or `close`."""
        words = shlex.split(line)
        if words[:1] == ["open"] and len(words) in (2, 3):
            self._take(vellum.open(words[1], *words[2:], create=True))
        elif words[:1] == ["keep"] and len(words) > 1:
            for name in words[1:]:
                self._keep(name)
        elif words == ["cells"]:
            undone = self._undone
            print("\n".join(f"{v.name}  {v.message}{' (undone)' * (v.name in undone)}" for v in self._cells()))
        elif words == ["close"]:
            self.region.close()
            self._region = None
        else:
            raise UsageError("%vellum open PATH [BRANCH] | keep NAME... | cells | close")

    def _take(self, region: vellum.Region) -> None:
        if not self._cells_of(region):
            region.snapshot(_name(0, region.branch), "opened")
        self._region, self.shell.user_ns["region"] = region, region
        head = region.store.version(region.branch)
        known = [v.sequence for v in self._cells_of(region)]
        self._seen = head.sequence if head.message.startswith(_BACK) else max(known)
        self._keep_change("committed outside of a cell")  # or by a kernel that ended before it had a version

    # ---- Versions of cells

    @staticmethod
    def _cells_of(region: vellum.Region) -> list[vellum.VersionInfo]:
        """The versions of cells on the region's branch, oldest first."""
        return [v for v in reversed(region.log()) if (found := _CELL.fullmatch(v.name)) and found[2] == region.branch]

    def _cells(self) -> list[vellum.VersionInfo]:
        return self._cells_of(self.region)

    @property
    def _undone(self) -> list[str]:
        """The cells of the branch that are undone, oldest first: in the region, so that another kernel goes on."""
        cells = {v.name for v in self._cells()}
        return [name for name in self.region.attrs.get("undone", []) if name in cells]

    def after_cell(self, result: Any) -> None:
        """Keeps what a cell changed as a version, also if the cell failed."""
        if self._region is not None and not self._region.closed:
            text = (getattr(getattr(result, "info", None), "raw_cell", "") or "").strip().splitlines()
            self._keep_change(text[0][:60] if text else "")

    def _keep_change(self, message: str) -> None:
        region = self.region
        try:
            sequence = region.commit().sequence
        except vellum.Busy:  # a transaction over several cells: its end is a cell's change
            return
        if sequence == self._seen:
            return
        for name in self._undone:  # another change follows: what was undone cannot be redone
            region.store.remove_snapshot(name)
        region.attrs["undone"] = []
        name = _name(_number(self._cells()) + 1, region.branch)
        self._seen = region.snapshot(name, message).sequence

    # ---- Undo

    @line_magic  # type: ignore[untyped-decorator]
    def undo(self, line: str) -> None:
        """Takes back what the last cell changed in the region; `%undo 3`: the last three."""
        cells = [v.name for v in self._cells() if v.name not in self._undone]
        count = _count(line)
        if count >= len(cells):
            raise UsageError(f"{len(cells) - 1} cells have changed the region")
        self._back_to(cells[-1 - count], [*cells[len(cells) - count :], *self._undone])

    @line_magic  # type: ignore[untyped-decorator]
    def redo(self, line: str) -> None:
        """Brings back what `%undo` took, until a cell changes the region."""
        count, undone = _count(line), self._undone
        if count > len(undone):
            raise UsageError(f"{len(undone)} cells are undone")
        self._back_to(undone[count - 1], undone[count:])

    def _back_to(self, version: str, undone: list[str]) -> None:
        whole, region = self._whole_arrays(), self.region
        with region.transaction(f"{_BACK}{version}"):  # one commit: what is undone, and that it is
            take_content(region._used(), version)
            region.attrs["undone"] = undone
        self._seen = region.commit().sequence
        self._rebind(whole)
        print(f"{region.branch} is as after {version}")

    # ---- Branches

    @line_magic  # type: ignore[untyped-decorator]
    def branch(self, line: str) -> None:
        """Goes to a branch, which begins here if it is new; variables follow. Without a name: lists them."""
        region, name = self.region, line.strip()
        if not name:
            print("\n".join(("* " if each == region.branch else "  ") + each for each in region.branches))
            return
        whole = self._whole_arrays()
        region.commit()
        other = region.checkout(name, create=name not in region.branches)
        names = [key for key, value in self.shell.user_ns.items() if value is region]
        self._take(other)
        self.shell.user_ns.update(dict.fromkeys(names, other))
        self._rebind(whole)
        region.close()

    # ---- The notebook's variables

    def _whole_arrays(self) -> dict[str, tuple[str, str]]:
        """The variables that are an array, a frame or a table of the region: the name there, and what they are."""
        found = {}
        for key, value in self.shell.user_ns.items():
            if isinstance(value, vellum.Array) and (name := self._name_of(value)):
                found[key] = (name, "array")
            elif (kept := self.region.attrs.get("notebook", {}).get(key)) and type(value).__name__ == kept:
                found[key] = (key, kept)
        return found

    def _name_of(self, array: vellum.Array) -> str | None:
        """The name of a variable that is all of an array of the open region."""
        try:
            name = array.name
        except ValueError:
            return None
        whole = self.region[name] if name in self.region else None
        same = isinstance(whole, vellum.Array) and np.shares_memory(whole, array) and whole.shape == array.shape
        return name if same else None

    def _rebind(self, whole: dict[str, tuple[str, str]]) -> None:
        """Gives variables what has their name now: an array that a cell has resized has its old length again."""
        for key, (name, kind) in whole.items():
            if name in self.region:
                self.shell.user_ns[key] = self._opened(name, kind)
            else:
                del self.shell.user_ns[key]

    def _opened(self, name: str, kind: str) -> Any:
        item = self.region[name]
        if kind == "DataFrame":
            import pandas as pd

            return pd.DataFrame(dict(item), copy=False)
        return item.to_arrow() if kind == "Table" else item

    def _keep(self, name: str) -> None:
        """Moves a variable's value into the region; the variable then shows the region's memory."""
        value = self.shell.user_ns.get(name)
        kind = _kind(value)
        if kind in ("DataFrame", "Table"):
            columns = _columns(name, value, kind)
            with self.region.transaction(f"keep {name}"):
                self.region.pop(name, None)
                group = self.region.create_group(name)
                for column, values in columns.items():
                    if values.dtype == object:
                        group.create_strings(column, values)
                    else:
                        group[column] = values
                self.region.attrs["notebook"] = {**self.region.attrs.get("notebook", {}), name: kind}
        elif isinstance(value, np.ndarray):
            kind = "array"
            with self.region.transaction(f"keep {name}"):
                self.region.pop(name, None)
                self.region[name] = value
        else:
            raise UsageError(f"{name} is no array, DataFrame of pandas or Arrow table")
        self.shell.user_ns[name] = self._opened(name, kind)


def _kind(value: Any) -> str:
    """DataFrame, Table, or "": another library's frame would come back as one of pandas."""
    kind, library = type(value).__name__, type(value).__module__.partition(".")[0]
    return kind if (kind, library) in (("DataFrame", "pandas"), ("Table", "pyarrow")) else ""


def _columns(name: str, value: Any, kind: str) -> dict[str, np.ndarray[Any, Any]]:
    """A frame's or a table's columns. UsageError: the region would give back something else."""
    names = list(value.columns if kind == "DataFrame" else value.column_names)
    for column in names:
        if not isinstance(column, str) or not column or "/" in column:
            raise UsageError(f"{name} has a column {column!r}: names of columns are text, without '/': rename it")
    if len(set(names)) < len(names):
        raise UsageError(f"{name} has two columns of one name: rename one of them")
    if kind == "DataFrame" and not _is_plain(value.index):
        raise UsageError(f"{name} has an index, which is not kept: {name}.reset_index() makes columns of it")
    return {column: _values(f"{name}[{column!r}]", value[column], kind) for column in names}


def _is_plain(index: Any) -> bool:
    """Whether an index is the one of a frame that has none: 0, 1, 2."""
    plain = type(index).__name__ == "RangeIndex" and index.name is None
    return plain and (len(index) == 0 or (index.start == 0 and index.step == 1))


def _values(title: str, column: Any, kind: str) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = column.to_numpy()
    is_text = values.dtype == object and all(isinstance(each, str) for each in values)
    if values.dtype == object and not is_text:
        raise UsageError(f"{title} has values that are no text: give it a dtype of numpy, or fill what is missing")
    if not (_is_kept_frame if kind == "DataFrame" else _is_kept_table)(column, values, is_text):
        raise UsageError(f"{title} is not as numpy has it: use astype() or cast(), or fill what is missing")
    return values


def _is_kept_frame(column: Any, values: np.ndarray[Any, Any], is_text: bool) -> bool:
    return bool(str(column.dtype) != "category" if is_text else column.dtype == values.dtype)


def _is_kept_table(column: Any, values: np.ndarray[Any, Any], is_text: bool) -> bool:
    import pyarrow as pa

    if is_text:
        return str(column.type) in ("string", "large_string", "string_view")
    return not column.null_count and bool(column.type == pa.from_numpy_dtype(values.dtype))


def _name(number: int, branch: str) -> str:
    return f"cell-{number}-{branch}"


def _number(cells: list[vellum.VersionInfo]) -> int:
    return max((int(_CELL.fullmatch(v.name)[1]) for v in cells), default=0)  # type: ignore[index]


def _count(line: str) -> int:
    if line.strip() and not line.strip().isdigit():
        raise UsageError(f"{line.strip()!r} is no number of cells")
    return int(line.strip() or 1)


def load(shell: Any) -> None:
    """`%load_ext vellum`."""
    magics = VellumMagics(shell)
    shell.register_magics(magics)
    shell.events.register("post_run_cell", magics.after_cell)
    shell._vellum_magics = magics


def unload(shell: Any) -> None:
    """`%unload_ext vellum`."""
    shell.events.unregister("post_run_cell", shell._vellum_magics.after_cell)
