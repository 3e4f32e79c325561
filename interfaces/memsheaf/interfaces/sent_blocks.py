"""The blocks that agents sent in the kept conversations: what is forgotten leaves them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from memsheaf.stack import ForgetReport, hookimpl

__all__ = ["SentBlocks"]


class SentBlocks:
    """A listener that empties the blocks with a forgotten memory.

    Args:
        folder: Of the conversations, beside which the blocks lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @hookimpl
    def after_forget(self, report: ForgetReport) -> None:
        """Drop what a forgotten memory was in."""
        if not self._folder.is_dir():
            return
        from memsheaf.agent.ledger import BLOCKS, BlockLedger  # there is seldom anything to do

        if (self._folder / BLOCKS).exists():
            with closing(BlockLedger(self._folder / BLOCKS)) as ledger:
                ledger.after_forget(report)
