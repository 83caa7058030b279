"""What notebooks show of tensors and modules: at most 20 kB, made in milliseconds, whatever the size."""

import base64
import math
import struct
import zlib
from html import escape

import rushlight as torch

__all__ = ["module_html", "tensor_html"]

_CELLS = 48  # of a side of the picture, at most
_CELL = 8  # pixels
_SHADES = 127  # from no colour to full colour
_SAMPLE = 1 << 14  # elements that statistics of large tensors look at
_TEXT = 8000  # characters of values
_PRINTED = 1500  # elements
_MODULES = 60  # that are shown of a model


def _palette():
    """From blue over white to red."""
    for shade in range(-_SHADES, _SHADES + 1):
        fade = round(255 * (1 - abs(shade) / _SHADES))
        yield bytes((255, fade, fade) if shade >= 0 else (fade, fade, 255))


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _heat_map(values):
    """A picture of a matrix, thinned out to a few cells a side."""
    rows, columns = values.shape
    values = values[:: -(-rows // _CELLS), :: -(-columns // _CELLS)].float().nan_to_num(0, 0, 0)
    top = float(values.abs().max()) or 1.0
    shades = (values / top * _SHADES).round().add(_SHADES).to(torch.uint8).tolist()
    height, width = values.shape
    png = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
    png += _chunk(b"PLTE", b"".join(_palette()))
    png += _chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in shades)))
    data = base64.b64encode(png + _chunk(b"IEND", b"")).decode()
    return (
        f'<img width="{width * _CELL}" height="{height * _CELL}" alt="" src="data:image/png;base64,{data}" '
        'style="border:1px solid #bbb;image-rendering:pixelated"><br>'
    )


def _sample(tensor):
    """Some elements of a tensor, spread over its first dimensions."""
    while tensor.dim() and tensor.numel() > _SAMPLE:
        longest = max(range(tensor.dim()), key=lambda d: tensor.shape[d])
        step = min(-(-tensor.numel() // _SAMPLE), tensor.shape[longest])
        tensor = tensor[(slice(None),) * longest + (slice(None, None, step),)]
    return tensor


def _statistics(tensor):
    if not tensor.is_floating_point() or tensor.dim() == 0:
        return ""
    part = _sample(tensor)
    finite = part[part.isfinite()].double()
    others = part.numel() - finite.numel()
    text = f" &middot; {others} not finite" if others else ""
    if part.numel() < tensor.numel():
        text += f" (of {part.numel():,} elements)"
    if not finite.numel():
        return text
    return f" &middot; {finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}{text}"


def _values(tensor):
    """The values as text: of many dimensions the first slice, of a long text its beginning."""
    shown, first = tensor, 0
    while shown.dim() > 2 and math.prod(min(n, 7) for n in shown.shape) > _PRINTED:
        shown, first = shown[0], first + 1
    before = torch._tensor_str.PRINT_OPTS.threshold
    torch._tensor_str.PRINT_OPTS.threshold = min(before, _PRINTED)
    try:
        text = repr(shown)
    finally:
        torch._tensor_str.PRINT_OPTS.threshold = before
    if len(text) > _TEXT:
        text = text[:_TEXT] + "\n..."
    label = f"[{', '.join('0' * first)}] = " if first else ""
    return f"<pre>{label}{escape(text)}</pre>"


def tensor_html(tensor):
    """The tensor's description, its values, and a picture of a matrix; None where it has no values."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_quantized:
        return None
    plain = tensor.detach()
    head = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}{_statistics(plain)}"
    if tensor.grad_fn is not None:
        head += f" &middot; {escape(tensor.grad_fn.name())}"
    elif tensor.requires_grad:
        head += " &middot; requires grad"
    picture = ""
    if plain.dim() == 2 and plain.numel() > 1 and plain.is_floating_point():
        picture = _heat_map(plain)
    return f"<div><code>{head}</code><br>{picture}{_values(tensor)}</div>"


def module_html(module):
    """The modules as a tree that folds, with their parameters; of large models the outer ones."""
    shown, level = {module}, [module]
    while level:
        level = [child for m in level for child in m.children()]
        if len(shown) + len(level) > _MODULES:
            break
        shown.update(level)
    return f"<div>{_branch('', module, shown)}</div>"


def _branch(name, module, shown):
    count = sum(p.numel() for p in module.parameters() if not torch.nn.parameter.is_lazy(p))
    title = f"{escape(name)}: " if name else ""
    extra = escape(module.extra_repr().replace("\n", " ")[:100])
    text = f"<code>{title}<b>{escape(type(module).__name__)}</b>({extra})</code> {count:,} parameters"
    children = list(module.named_children())
    if children and children[0][1] not in shown and len(shown) > 1:
        text += f" in {len(children)} modules"
        children = []
    if not children:
        return f'<div style="margin-left:1.2em">{text}</div>'
    kept = children[:_MODULES]
    inside = "".join(_branch(own, child, shown) for own, child in kept)
    if len(kept) < len(children):
        inside += f'<div style="margin-left:1.2em">... {len(children) - len(kept)} more</div>'
    opened = " open" if not name else ""
    return f'<details style="margin-left:1.2em"{opened}><summary>{text}</summary>{inside}</details>'
