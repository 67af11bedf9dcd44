"""Tests mirror the folders of the packages; `tests.support` has what several of them use."""
