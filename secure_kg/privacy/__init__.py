"""Differential privacy of training. Unit: one triple, added or removed; entity and relation sets are public."""
