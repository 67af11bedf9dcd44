"""Published tables measured again: which runs they need, how these are started, and what comes of them."""
