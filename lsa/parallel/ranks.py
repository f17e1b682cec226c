"""The ranks that share a sequence, and the exchange of states between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..checks import one_of
from ..compat import describe_exchanges
from .collectives import arrived, gather, pass_on, sum_over_ranks
from .transitions import Transition, chain

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

WAYS = ("gather", "scan")


@dataclass(frozen=True)
class Ranks:
    """The ranks of `group`, in order: rank r holds the r-th part of each sequence.

    Parts may differ in length, and may be empty. Every rank makes the same calls. A loss is the sum
    of the ranks' terms, and each rank must take part in its gradient.

    way: "gather": every rank gets all transitions in one exchange and chains those before it
        (LASP-2, Sun et al., 2025). "scan": a prefix scan in about 1 + log2(ranks) exchanges (Hillis
        and Steele, 1986), in which a rank receives less if there are more than four.
    """

    group: ProcessGroup
    way: str = "gather"

    def __post_init__(self) -> None:
        one_of("way", self.way, WAYS)
        if self.group is None:  # of this rank, if it is none of the group's
            raise ValueError("group: expected a process group that this rank is in, got None")
        describe_exchanges()

    @property
    def rank(self) -> int:
        return self.group.rank()

    @property
    def size(self) -> int:
        return self.group.size()

    @property
    def name(self) -> str:
        return self.group.group_name

    def lengths(self, T: int, device: torch.device | None = None) -> list[int]:
        """Number of tokens of each rank. T: number on this rank."""
        mine = torch.tensor([T], device=device)
        return arrived(gather(mine, self.size, self.name)).tolist()

    def start(self, part: Transition, initial_state: Tensor | None = None) -> Exchange:
        """Start to send this rank's effect on a state. Work up to `Exchange.before` overlaps.

        initial_state: the state before the whole sequence, zeros by default. Only the first rank's
        is used.
        """
        return Exchange(self, part, initial_state if self.rank == 0 else None)


class Exchange:
    """An exchange of transitions between ranks, under way."""

    def __init__(self, ranks: Ranks, part: Transition, initial_state: Tensor | None) -> None:
        self.ranks, self.part, self.initial_state = ranks, part, initial_state
        if initial_state is not None:  # the first rank applies its part to it, instead of to zeros
            part = part._replace(added=part(initial_state))
        self.shapes = [*(x.shape for x in part if x is not None)]
        sent = torch.cat([x.flatten() for x in part if x is not None])
        if ranks.way == "gather":
            self.got = gather(sent, ranks.size, ranks.name)
        else:
            self.got = self._passed(sent, 1, 0)

    def before(self) -> Tensor:
        """The state before this rank's part."""
        x = self.got = arrived(self.got)
        if self.ranks.way == "gather":
            state = self._chained(x, self.ranks.rank)
        else:
            x = self._scanned(x)
            state = self._transition(x).added if self.ranks.rank else None
        if state is None:
            state = torch.zeros_like(self.part.added)
            if self.initial_state is not None:
                state = state + self.initial_state
        # The sum of no numbers is zero; it puts the exchange into this rank's gradient.
        return state + x[:0].sum()

    def after(self, before: Tensor) -> Tensor:
        """The state after the last rank's part, on every rank. before: the state before this one's.

        A loss may use it on one rank only; otherwise it counts several times.
        """
        ranks = self.ranks
        if ranks.way == "gather":
            state = self._chained(self.got, ranks.size)
            assert state is not None  # there is at least one rank
            return state
        state = self.part(before)
        if ranks.rank < ranks.size - 1:
            state = torch.zeros_like(state) + state.flatten()[:0].sum()
        return arrived(sum_over_ranks(state, ranks.name))

    def _transition(self, numbers: Tensor) -> Transition:
        sizes = [shape.numel() for shape in self.shapes]
        each = zip(numbers.split(sizes), self.shapes, strict=True)
        return Transition(*(x.view(shape) for x, shape in each))

    def _chained(self, gathered: Tensor, ranks: int) -> Tensor | None:
        """The state after the first `ranks` ranks."""
        state = None
        for numbers in gathered.view(self.ranks.size, -1)[:ranks].unbind():
            part = self._transition(numbers)
            state = part.added if state is None else part(state)
        return state

    def _passed(self, x: Tensor, by: int, first: int) -> Tensor:
        """x of the rank that is `by` ranks before, if that is at least `first`; else [0]."""
        r, P = self.ranks.rank, self.ranks.size
        to = r + by if r >= first and r + by < P else None
        got = {r - by: x.numel()} if r - by >= first else {}
        return pass_on(x, to, got, P, self.ranks.name)

    def _scanned(self, x: Tensor) -> Tensor:
        """A prefix scan: rank r combines the transitions of 1, 2, 4, ... ranks before it."""
        by = 1
        while by < self.ranks.size - 1:
            came = arrived(self._passed(x, by, 1))
            if came.numel():
                both = chain(self._transition(came), self._transition(x))
                x = torch.cat([x.flatten() for x in both if x is not None])
            else:
                x = x + came.sum()
            by *= 2
        return x
