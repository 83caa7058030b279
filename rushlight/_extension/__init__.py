"""Names that PyTorch has in its extension module and that are plain Python here."""
