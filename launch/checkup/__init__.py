"""Checks of a machine before a run, for `launch.doctor`."""
