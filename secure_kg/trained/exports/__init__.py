"""A client's trained model in the formats of other programs, one per module."""
