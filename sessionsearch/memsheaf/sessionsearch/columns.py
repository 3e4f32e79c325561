"""Arrays of one length that grow together, and are mapped from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Columns"]

Array = npt.NDArray[Any]


class Columns:
    """Named arrays with room to grow.

    Args:
        types: Type by name, and what a new place holds; `("<i4", -1)`.
        size: How many places there are at first.
    """

    def __init__(self, types: Mapping[str, tuple[str, int]], size: int = 0) -> None:
        self._types = dict(types)
        self.size = size
        self._arrays = {
            name: np.full(max(size, 64), fill, kind) for name, (kind, fill) in types.items()
        }

    def __getitem__(self, name: str) -> Array:
        """A column, without its room to grow."""
        return self._arrays[name][: self.size]

    def set(self, place: int, values: Mapping[str, Any]) -> None:
        """Write into a place."""
        for name, value in values.items():
            self._arrays[name][place] = value

    def grow(self, size: int) -> None:
        """Make it at least this long."""
        room = len(next(iter(self._arrays.values())))
        if size > room:
            for name, (kind, fill) in self._types.items():
                more = np.full(max(size, 2 * room), fill, kind)
                more[: self.size] = self._arrays[name][: self.size]
                self._arrays[name] = more
        self.size = max(size, self.size)

    def save(self, folder: Path, prefix: str) -> None:
        """Write the columns into a folder, a file each."""
        for name in self._types:
            np.save(folder / f"{prefix}.{name}.npy", self[name])

    @classmethod
    def load(cls, types: Mapping[str, tuple[str, int]], folder: Path, prefix: str) -> Columns:
        """Map what `save` wrote; writing does not reach the files.

        Raises:
            ValueError: It is not that.
            OSError: It cannot be read.
        """
        made = cls(types)
        sizes = set()
        for name, (kind, _) in types.items():
            path = folder / f"{prefix}.{name}.npy"
            mapped = np.load(path, mmap_mode="c" if path.stat().st_size > 4096 else None)
            array = np.asarray(mapped)
            if array.dtype != np.dtype(kind) or array.ndim != 1:
                raise ValueError(f"{prefix}.{name} has another type")
            made._arrays[name] = array
            sizes.add(len(array))
        if len(sizes) != 1:
            raise ValueError(f"the columns of {prefix} differ in length")
        made.size = sizes.pop()
        return made
