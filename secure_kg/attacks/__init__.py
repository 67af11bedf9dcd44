"""What an adversary makes of a view. Each module states who attacks, what it has, and what it gains."""
