"""Audit of a recorded session of score queries (`secure_kg.runs.score_recording`)."""
