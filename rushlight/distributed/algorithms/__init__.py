"""What changes how process groups are used: communication hooks, uneven inputs, checkpoint wrappers."""
