"""Values that users log as NumPy arrays, and pictures in TensorBoard's layout."""

import numpy as np

import rushlight


def make_np(x):
    """A NumPy array of a tensor, array, number or list; ``NotImplementedError`` for other types."""
    if isinstance(x, (np.ndarray, list)):
        return np.asarray(x)
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, rushlight.Tensor):
        x = x.detach()
        return (x.float() if x.dtype == rushlight.bfloat16 else x).cpu().numpy()
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def scalar(x) -> float:
    """The number in `x`, which must hold exactly one."""
    x = make_np(x).squeeze()
    if x.ndim != 0:
        raise AssertionError(f"scalar should be 0D, got shape {x.shape}")
    return float(x)


def picture(tensor, layout: str):
    """`tensor`, laid out as the letters N, C, H, W say in any order, as one image ``[height, width, 3 or
    4]``.

    A batch becomes a grid. Raises ``AssertionError`` when letters and dimensions do not fit."""
    letters = layout.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {layout}")
    if len(tensor.shape) != len(letters):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {tensor.shape}, "
            f"input_format: {layout}"
        )
    if len(letters) == 4:
        return grid(tensor.transpose([letters.find(c) for c in "NCHW"]))
    if len(letters) == 3:
        image = tensor.transpose([letters.find(c) for c in "HWC"])
        return np.concatenate([image] * 3, 2) if image.shape[2] == 1 else image
    if len(letters) == 2:
        image = tensor.transpose([letters.find(c) for c in "HW"])
        return np.stack([image] * 3, 2)
    raise AssertionError(f"expected 2 to 4 dimensions, got the format {layout}")


def grid(images, columns=8):
    """Images ``[N, C, H, W]`` side by side, at most `columns` in a row: ``[height, width, 3]``."""
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    n, channels, height, width = images.shape
    columns = min(n, columns)
    rows = -(-n // columns)
    canvas = np.zeros((channels, rows * height, columns * width), images.dtype)
    for i in range(n):
        y, x = i // columns * height, i % columns * width
        canvas[:, y : y + height, x : x + width] = images[i]
    return canvas.transpose(1, 2, 0)


def to_bytes(image):
    """Values of an image as bytes: floating-point ones count from 0 to 1."""
    if image.dtype == np.uint8:
        return image
    scaled = image.astype(np.float32) * 255 if image.dtype.kind == "f" else image
    return scaled.clip(0, 255).astype(np.uint8)


def figure_to_image(figures, close=True):
    """A matplotlib figure, or a list of them, drawn: ``[3, H, W]``, or ``[N, 3, H, W]``, as bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def draw(figure):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3].transpose(2, 0, 1).copy()
        if close:
            import matplotlib.pyplot as plt

            plt.close(figure)
        return pixels

    return np.stack([draw(f) for f in figures]) if isinstance(figures, list) else draw(figures)
