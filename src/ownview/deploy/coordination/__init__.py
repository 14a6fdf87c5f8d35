"""The coordinator's side of a round: who is there, asking, what has arrived, what was counted."""
