"""A breach: an observation that breaks a rule of the soak test."""

from __future__ import annotations

from typing import NamedTuple


class Breach(NamedTuple):
    """A broken rule, its conversation if it has one, and its evidence: names of requests, or figures."""

    what: str
    talk: int | None
    refers: str

    def __str__(self) -> str:
        """Write it in one line."""
        where = "" if self.talk is None else f" in conversation {self.talk}"
        return f"{self.what}{where}: {self.refers}"
