"""Trained models of finished runs: load, predict, evaluate, export."""
