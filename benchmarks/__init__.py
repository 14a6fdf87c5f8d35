"""Speed, measured as ratios in one run. Never part of the tests."""
