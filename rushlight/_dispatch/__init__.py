"""PyTorch's private path to what a program may ask of the dispatcher."""
