"""Gradients of convolutions on their own."""

import rushlight as torch
from rushlight.nn import functional as F


def _grad(output, operand, grad_output):
    return torch.autograd.grad(output, operand, grad_output, create_graph=torch.is_grad_enabled())[0]


def _input_grad(conv, input_size, weight, grad_output, stride, padding, dilation, groups):
    # Convolution is linear in its input, so the gradient does not depend on what the input was.
    with torch.enable_grad():
        input = weight.new_zeros(tuple(input_size)).requires_grad_()
        output = conv(input, weight, None, stride, padding, dilation, groups)
    return _grad(output, input, grad_output)


def _weight_grad(conv, input, weight_size, grad_output, stride, padding, dilation, groups):
    with torch.enable_grad():
        weight = input.new_zeros(tuple(weight_size)).requires_grad_()
        output = conv(input, weight, None, stride, padding, dilation, groups)
    return _grad(output, weight, grad_output)


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its input."""
    return _input_grad(F.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its weight."""
    return _weight_grad(F.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its input."""
    return _input_grad(F.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its weight."""
    return _weight_grad(F.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its input."""
    return _input_grad(F.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its weight."""
    return _weight_grad(F.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)
