"""Guarded sentences of the chapter on sequence transformations."""

from ..figures.sequence_transformations import rnn_orders

VERDICTS = {
    "The order alone brings {glue:text}`rnn_order`, as the middle program shows": lambda: (
        rnn_orders.largest()[1] > 1.2
    ),
    "and the first two lines run together": lambda: 0.8 < rnn_orders.smallest()[1] < 1.25,
}
