"""Private names of `torch.export` that packages import."""
