"""A method looked at before it is trained: types, soundness, one step on drawn values."""
