"""The top layer: sparse codes of patches, with a noise variance at every pixel."""
