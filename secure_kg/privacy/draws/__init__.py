"""What private training draws from the operating system's randomness: noise on a grid, and Poisson samples."""
