"""`image::*`: pictures read and written by Pillow, which torchvision needs anyway."""

import io

import rushlight as torch
from rushlight import Tensor
from rushlight.library import Library

_library = Library("image", "DEF")
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}  # by torchvision.io.ImageReadMode; 0: as in the file
_PLAIN = ("L", "LA", "RGB", "RGBA", "CMYK", "I;16")


def _bytes_of(name: str, data: Tensor) -> bytes:
    if data.dtype != torch.uint8 or data.dim() != 1 or not data.numel():
        raise RuntimeError(
            f"{name}: expected a non empty 1-dimensional tensor of uint8, got {list(data.shape)} of "
            f"{data.dtype}"
        )
    return data.contiguous().numpy().tobytes()


def _opened(name: str, data: Tensor, formats=None):
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(_bytes_of(name, data)), formats=formats)
        image.load()
    except Image.UnidentifiedImageError:
        kinds = " or ".join(formats or ["picture"])
        raise RuntimeError(f"{name}: the {data.numel()} bytes are no {kinds} that Pillow knows") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise RuntimeError(f"{name}: {error}") from None
    return image


def _tensor_of(image, mode: int) -> Tensor:
    if mode in _MODES:
        image = image.convert(_MODES[mode])
    elif image.mode not in _PLAIN:
        transparent = image.mode == "PA" or "transparency" in image.info
        image = image.convert("L" if image.mode == "1" else "RGBA" if transparent else "RGB")
    dtype = torch.uint16 if image.mode == "I;16" else torch.uint8
    elements = torch.frombuffer(bytearray(image.tobytes()), dtype=dtype)
    return elements.reshape(image.height, image.width, -1).permute(2, 0, 1)


def _decoder(name: str, formats=None):
    def decode(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
        image = _opened(name, data, formats)
        if image.format == "GIF":
            return decode_gif(data)
        if apply_exif_orientation:
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
        return _tensor_of(image, mode)

    return decode


def decode_gif(encoded_data: Tensor) -> Tensor:
    """(3, H, W) of a picture, (frames, 3, H, W) of several."""
    from PIL import ImageSequence

    image = _opened("decode_gif", encoded_data)
    frames = [_tensor_of(frame, 3) for frame in ImageSequence.Iterator(image)]
    return frames[0] if len(frames) == 1 else torch.stack(frames)


def decode_webp(encoded_data: Tensor, mode: int) -> Tensor:
    return _decoder("decode_webp", ["WEBP"])(encoded_data, mode)


def _encode(name: str, data: Tensor, **options) -> Tensor:
    from PIL import Image

    if data.dtype != torch.uint8:
        raise RuntimeError(f"{name}: Input tensor dtype should be uint8, got {data.dtype}")
    if data.dim() != 3 or data.size(0) not in (1, 3):
        raise RuntimeError(
            f"{name}: the number of channels should be 1 or 3 of 3 dimensions, got {list(data.shape)}"
        )
    rows = data.permute(1, 2, 0).contiguous().numpy()
    image = Image.fromarray(rows[:, :, 0] if data.size(0) == 1 else rows)
    file = io.BytesIO()
    image.save(file, **options)
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


def encode_png(data: Tensor, compression_level: int) -> Tensor:
    if not 0 <= compression_level <= 9:
        raise RuntimeError(
            f"encode_png: Compression level should be between 0 and 9, got {compression_level}"
        )
    return _encode("encode_png", data, format="PNG", compress_level=compression_level)


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    if not 1 <= quality <= 100:
        raise RuntimeError(
            f"encode_jpeg: Image quality should be a positive number between 1 and 100, got {quality}"
        )
    return _encode("encode_jpeg", data, format="JPEG", quality=quality)


def read_file(filename: str) -> Tensor:
    try:
        with open(filename, "rb") as file:
            content = file.read()
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{filename}'") from None
    if not content:
        raise RuntimeError(f"read_file: Expected a non empty file, but '{filename}' has no content")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def write_file(filename: str, data: Tensor) -> None:
    content = _bytes_of("write_file", data)
    try:
        with open(filename, "wb") as file:
            file.write(content)
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{filename}'") from None


for _schema, _function in [
    (
        "decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
        _decoder("decode_png", ["PNG"]),
    ),
    (
        "decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
        _decoder("decode_jpeg", ["JPEG"]),
    ),
    (
        "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",
        _decoder("decode_image"),
    ),
    ("decode_gif(Tensor encoded_data) -> Tensor", decode_gif),
    ("decode_webp(Tensor encoded_data, int mode) -> Tensor", decode_webp),
    ("encode_png(Tensor data, int compression_level) -> Tensor", encode_png),
    ("encode_jpeg(Tensor data, int quality) -> Tensor", encode_jpeg),
    ("read_file(str filename) -> Tensor", read_file),
    ("write_file(str filename, Tensor data) -> ()", write_file),
]:
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")
