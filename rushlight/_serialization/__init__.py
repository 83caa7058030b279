"""The parts of `torch.save` and `torch.load`: containers, picklers, settings."""
