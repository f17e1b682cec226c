"""The numbers beside the claims are those of the stored runs."""

import pytest

from book.figures.index import loss_curves
from book.figures.reproduce import claims


def test_a_share_is_that_of_softmaxs_loss_after_the_same_updates():
    for context in claims.CONTEXTS:
        softmax, linear = loss_curves.nano_pair(context)
        after = loss_curves.common_updates(softmax, linear)
        ratio = loss_curves.loss_after(linear, after) / loss_curves.loss_after(softmax, after)
        assert claims.worse_share(context) == pytest.approx(ratio - 1)
