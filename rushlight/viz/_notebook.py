"""What notebooks show of tensors and modules."""

from html import escape

import rushlight as torch

__all__ = ["module_html", "tensor_html"]

_CELLS = 48  # of a side of the picture, at most
_CELL = 8  # pixels


def _colour(share):
    """From blue over white to red, for -1 to 1."""
    fade = round(255 * (1 - min(abs(share), 1)))
    return f"#ff{fade:02x}{fade:02x}" if share >= 0 else f"#{fade:02x}{fade:02x}ff"


def _heat_map(values):
    """An SVG of a matrix, thinned out to a few cells a side."""
    rows, columns = values.shape
    values = values[:: -(-rows // _CELLS), :: -(-columns // _CELLS)]
    top = float(values.abs().max()) or 1.0
    cells = "".join(
        f'<rect x="{j * _CELL}" y="{i * _CELL}" width="{_CELL}" height="{_CELL}" fill="{_colour(v / top)}"/>'
        for i, row in enumerate(values.tolist())
        for j, v in enumerate(row)
    )
    width, height = values.shape[1] * _CELL, values.shape[0] * _CELL
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'style="border:1px solid #bbb">{cells}</svg>'
    )


def _statistics(tensor):
    if not tensor.is_floating_point():
        return ""
    finite = tensor[tensor.isfinite()].double()
    others = tensor.numel() - finite.numel()
    text = f" &middot; {others} not finite" if others else ""
    if not finite.numel():
        return text
    return f" &middot; {finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}{text}"


def tensor_html(tensor):
    """The tensor's description, a picture if it is a matrix, and its values; None where it has no values."""
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
        picture = _heat_map(plain.float().nan_to_num(0, 0, 0))
    values = f"<details><summary>values</summary><pre>{escape(repr(tensor))}</pre></details>"
    return f"<div><code>{head}</code><br>{picture}{values}</div>"


def module_html(module):
    """The modules as a tree that folds, with their parameters."""
    return f"<div>{_branch('', module)}</div>"


def _branch(name, module):
    count = sum(p.numel() for p in module.parameters() if not torch.nn.parameter.is_lazy(p))
    title = f"{escape(name)}: " if name else ""
    extra = escape(module.extra_repr().replace("\n", " "))
    text = f"<code>{title}<b>{escape(type(module).__name__)}</b>({extra})</code> {count:,} parameters"
    children = list(module.named_children())
    if not children:
        return f'<div style="margin-left:1.2em">{text}</div>'
    inside = "".join(_branch(*child) for child in children)
    opened = " open" if not name else ""
    return f'<details style="margin-left:1.2em"{opened}><summary>{text}</summary>{inside}</details>'
