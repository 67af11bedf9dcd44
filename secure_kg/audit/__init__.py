"""Audit of what the server really observed: its transcript read back, classed, checked and attacked.

An audit works from a transcript and the run's public parameters alone. What clients hold (their names, rows, triples)
is used for nothing but to score attacks, and the receipts of clients for nothing but to check the transcript.
"""
