"""What the protocols cost. Every benchmark compares side by side in one run, for machines are noisy."""
