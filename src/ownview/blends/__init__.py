"""Several recommenders, blended at home."""
