"""Graph networks: an encoder over a client's own graph, and a decoder that scores triples by what it gives.

Their settings (`config`, `noge_config`, `kbgat_config`) and their kinds by name (`kinds`) are free of torch.
"""
