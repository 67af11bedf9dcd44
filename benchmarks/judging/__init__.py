"""Finished runs of `launch.fedcqa`, judged as only an experiment can: with everybody's triples and models."""
