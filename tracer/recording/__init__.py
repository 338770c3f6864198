"""Record one training run and one generation."""
