"""The format of recordings and experiments, and whether what they hold is so; torch not needed."""
