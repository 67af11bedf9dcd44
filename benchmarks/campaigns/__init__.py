"""Campaigns: a long queue of cells, the rows of those that are finished, and what they say about claims."""
