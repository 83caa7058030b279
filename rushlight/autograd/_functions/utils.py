"""Between a tensor's shape and the shape it was broadcast to."""


def maybe_view(tensor, size, check_same_size=True):
    """`tensor` in the shape `size`."""
    return tensor if check_same_size and tensor.size() == size else tensor.contiguous().view(size)


def maybe_unexpand(tensor, old_size, check_same_size=True):
    """`tensor` summed over what broadcasting from `old_size` repeated."""
    return tensor if check_same_size and tensor.size() == old_size else tensor.sum_to_size(old_size)
