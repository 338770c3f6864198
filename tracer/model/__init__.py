"""The model: its config, layers and kernels, its tokenizer, sampler, optimizer and the files it is kept in."""
