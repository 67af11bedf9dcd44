"""Learners of graph networks, one module each."""
