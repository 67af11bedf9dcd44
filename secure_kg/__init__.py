"""Federated knowledge-graph embeddings with secure aggregation."""

__version__ = "0.1.0"
