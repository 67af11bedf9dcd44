"""What several tests use: federations in threads, conversations, recorded runs, published vectors."""
