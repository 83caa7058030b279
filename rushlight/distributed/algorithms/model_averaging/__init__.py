"""Models averaged over processes from time to time, instead of gradients in every step."""
