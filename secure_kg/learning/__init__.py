"""Local training: `learner` is the interface, `kge` the learner of embeddings; `config` is free of torch."""
