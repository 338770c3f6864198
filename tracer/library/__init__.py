"""What is done with a model: text from it, counts, what its heads look at."""
