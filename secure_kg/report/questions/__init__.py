"""The page of a session of questions, for the asker."""
