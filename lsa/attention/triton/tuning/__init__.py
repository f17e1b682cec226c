"""What a call launches: plans for its shapes and its GPU, and the tables behind them."""
