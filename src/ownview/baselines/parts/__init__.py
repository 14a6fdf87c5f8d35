"""What several baselines share: kinds of central models, samples, packages behind them."""
