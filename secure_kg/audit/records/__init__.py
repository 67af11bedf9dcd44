"""Typed records of `audit.json`. They depend on no check and no attack: a page can be made from the file alone."""
