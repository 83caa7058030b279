"""Behind ``torch.library``: schema inference and custom operators."""
