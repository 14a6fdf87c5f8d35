"""Many runs on one grid: suites, published tables, tuning."""
