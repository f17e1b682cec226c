"""Launches of a call: plans for its shapes and its GPU, and the tables behind them."""
