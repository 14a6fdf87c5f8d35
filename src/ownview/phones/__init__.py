"""A model as one file that a telephone's runtime reads: ONNX (docs/phones.md)."""
