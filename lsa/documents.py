"""Several documents in one row, so that none of them sees another: where each begins.

A row may hold packed documents, or padding on the left of one; the padding is a document too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .checks import is_at_hand, tensor


def document_starts(cu_seqlens: Tensor, x: Tensor, *, part: bool = False) -> Tensor:
    """Mask [B, T] of the first tokens of documents in x [B, T, ...]; each row begins with one.

    cu_seqlens: int32 or int64 [N + 1], from 0 to B T: the ends of N documents in the B rows laid
        end to end, 0 in front. Its values are checked unless that would force a sync.
    part: x is a rank's part of the rows, which may begin inside a document. cu_seqlens may then be
        the mask itself, bool [B, T].

    Raises ValueError for another dtype, shape or device, and for values that are not such ends.
    """
    B, T = x.shape[:2]
    tensor("cu_seqlens", cu_seqlens, "[N + 1]")
    if part and cu_seqlens.dtype == torch.bool and cu_seqlens.shape == (B, T):
        return cu_seqlens
    if cu_seqlens.dtype not in (torch.int32, torch.int64) or cu_seqlens.dim() != 1:
        got = f"{cu_seqlens.dtype} {[*cu_seqlens.shape]}"
        raise ValueError(f"cu_seqlens: expected int32 or int64 [N + 1], got {got}")
    if cu_seqlens.device != x.device:
        raise ValueError(f"cu_seqlens: expected device {x.device}, got {cu_seqlens.device}")
    if is_at_hand(cu_seqlens):
        ends = cu_seqlens.tolist()
        if ends != sorted(ends) or ends[:1] != [0] or ends[-1] != B * T:
            got = f"{ends!r:.60}"
            raise ValueError(f"cu_seqlens: expected to rise from 0 to B T = {B * T}, got {got}")
    starts = torch.zeros(B * T + 1, dtype=torch.bool, device=x.device)
    starts = starts.index_fill(0, cu_seqlens.long(), True)[:-1].view(B, T)
    return torch.cat((torch.ones_like(starts[:, :1]), starts[:, 1:]), 1)


def places(starts: Tensor) -> Tensor:
    """Number of tokens of the same document before each token: [B, T] to int64 [B, T]."""
    place = torch.arange(starts.shape[1], device=starts.device)
    return place - torch.where(starts, place, 0).cummax(1).values


def same_document(starts: Tensor) -> Tensor:
    """Whether two tokens of a row belong to one document: [B, T] to [B, T, T]."""
    document = starts.cumsum(1)
    return document.unsqueeze(2) == document.unsqueeze(1)
