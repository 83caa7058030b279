"""Scripts in the words of PyTorch's archives: the text from which PyTorch, and C++ here, make them again."""
