"""Guarded sentences of the chapter on sequence transformations."""

from ..figures.sequence_transformations import rnn_orders

VERDICTS = {
    "The order alone brings {glue:text}`rnn_order`, as the middle program shows": lambda: (
        rnn_orders.largest()[1] > 1.2
    ),
    "A larger width gets there with fewer layers, so the bytes decide": lambda: (
        rnn_orders.step()[0] < rnn_orders.step()[1] <= 2 * rnn_orders.step()[0]
    ),
    "and the first two lines run together": lambda: 0.8 < rnn_orders.smallest()[1] < 1.25,
}
