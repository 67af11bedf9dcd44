"""FedE's model fusion (Chen et al. 2021, section 2.2.3): after training, each client alone joins its two models."""
