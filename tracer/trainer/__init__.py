"""Train a model of one's own, and the experiments made of such runs."""
