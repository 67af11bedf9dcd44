"""Private training as benchmarks measure it: by who adds the noise, in one process and in a whole federation."""
