"""Rules of ONNX's opset 11 that other packages' rules are made of."""

__all__ = ["select", "squeeze", "unsqueeze"]


def unsqueeze(g, self, dim):
    return g.op("Unsqueeze", self, axes_i=[dim])


def squeeze(g, self, dim=None):
    return g.op("Squeeze", self) if dim is None else g.op("Squeeze", self, axes_i=[dim])


def select(g, self, dim, index):
    return g.op("Gather", self, index, axis_i=dim)
