"""What is logged, as TensorBoard's protocol buffers."""

import io
import json
import wave

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

import rushlight
from rushlight.utils.tensorboard.arrays import make_np, picture, to_bytes
from rushlight.utils.tensorboard.arrays import scalar as number


def _metadata(plugin, content=b"", description=None):
    return SummaryMetadata(
        plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content),
        summary_description=description,
    )


def _float_tensor(values):
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in values.shape])
    return TensorProto(dtype="DT_FLOAT", float_val=values.reshape(-1).tolist(), tensor_shape=shape)


def scalar(name, value, new_style=False, double_precision=False):
    """One number; the new style carries it as a tensor, float64 with `double_precision`."""
    value = number(value)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=value)])
    tensor = TensorProto(dtype="DT_DOUBLE", double_val=[value]) if double_precision else None
    tensor = tensor or TensorProto(dtype="DT_FLOAT", float_val=[value])
    return Summary(value=[Summary.Value(tag=name, tensor=tensor, metadata=_metadata("scalars"))])


_FIELDS = {  # of a tensor's message, by dtype
    "float16": ("DT_HALF", "half_val"),
    "bfloat16": ("DT_BFLOAT16", "half_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "uint8": ("DT_UINT8", "int_val"),
    "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}


def tensor_proto(tag, tensor):
    """A whole tensor of numbers."""
    kind = str(tensor.dtype).rpartition(".")[2]
    if kind not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}: TensorBoard has no such type")
    dtype, field = _FIELDS[kind]
    if kind == "bfloat16":
        tensor = tensor.detach().contiguous().view(rushlight.int16)
    array = make_np(tensor).reshape(-1)
    if field == "half_val":  # the sixteen bits of each number
        array = array.view(np.uint16)
    if kind.startswith("complex"):
        array = np.ascontiguousarray(array).view(array.real.dtype)
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in tensor.shape])
    proto = TensorProto(dtype=dtype, tensor_shape=shape, **{field: array.tolist()})
    return Summary(value=[Summary.Value(tag=tag, tensor=proto, metadata=_metadata("tensor"))])


# --- histograms -----------------------------------------------------------------------------------


def _tensorflow_edges():
    """Edges that grow by a tenth, as TensorFlow's histograms have them."""
    positive = []
    edge = 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return [-edge for edge in reversed(positive)] + [0] + positive


def histogram(name, values, bins="tensorflow", max_bins=None):
    """Counts of `values` between edges: "tensorflow", or what ``numpy.histogram`` takes."""
    values = make_np(values).reshape(-1).astype(float)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(values, bins=_tensorflow_edges() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, range(0, len(counts), step))
        edges = np.append(edges[:-1:step], edges[-1])
    # Keep the filled bins and one empty one on each side.
    filled = np.flatnonzero(counts)
    start, end = filled[0], filled[-1] + 1
    counts = np.concatenate([counts[start - 1 : end] if start > 0 else [0, *counts[:end]]])
    limits = edges[start : end + 1]
    return histogram_raw(
        name, values.min(), values.max(), values.size, values.sum(), values.dot(values), limits, counts
    )


def histogram_raw(name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):  # noqa: A002
    """A histogram whose counts are known."""
    proto = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=np.asarray(bucket_limits).tolist(),
        bucket=np.asarray(bucket_counts).tolist(),
    )
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


# --- pictures, sound, text ------------------------------------------------------------------------


def _encoded(pixels):
    from PIL import Image

    height, width, channels = pixels.shape
    output = io.BytesIO()
    Image.fromarray(pixels).save(output, format="PNG")
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=output.getvalue()
    )


def _calc_scale_factor(tensor):
    """By what values of an image are multiplied to be bytes."""
    return 1 if make_np(tensor).dtype == np.uint8 else 255


def _resized(pixels, rescale):
    from PIL import Image

    picture = Image.fromarray(pixels)
    return picture.resize((int(picture.width * rescale), int(picture.height * rescale)))


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """A picture, or a batch of them in a grid; `dataformats` names the dimensions."""
    pixels = to_bytes(picture(make_np(tensor), dataformats))
    if rescale != 1:
        pixels = np.asarray(_resized(pixels, rescale))
    return Summary(value=[Summary.Value(tag=tag, image=_encoded(pixels))])


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None):
    """A picture with rectangles ``[N, 4]`` (left, top, right, bottom) drawn on it."""
    from PIL import ImageDraw

    drawing = _resized(to_bytes(picture(make_np(tensor_image), dataformats)), rescale)
    pen = ImageDraw.Draw(drawing)
    for i, (left, top, right, bottom) in enumerate(make_np(tensor_boxes) * rescale):
        corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        pen.line(corners, width=2, fill="red")
        if labels is not None:
            pen.text((left + 2, top + 2), str(labels[i]), fill="red")
    return Summary(value=[Summary.Value(tag=tag, image=_encoded(np.asarray(drawing)))])


def video(tag, value, fps=4):
    """Moving pictures ``[N, T, C, H, W]`` as an animated GIF, the batch side by side."""
    from PIL import Image

    frames = to_bytes(make_np(value))
    if frames.ndim != 5:
        raise ValueError(f"add_video: expected 5 dimensions (N, T, C, H, W), got shape {frames.shape}")
    pictures = [picture(frames[:, i], "NCHW") for i in range(frames.shape[1])]
    images = [Image.fromarray(p) for p in pictures]
    output = io.BytesIO()
    images[0].save(
        output, format="GIF", save_all=True, append_images=images[1:], duration=int(1000 / fps), loop=0
    )
    height, width, channels = pictures[0].shape
    proto = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=output.getvalue()
    )
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def audio(tag, value, sample_rate=44100):
    """Sound with values between -1 and 1, one channel."""
    samples = make_np(value).squeeze()
    if samples.ndim != 1:
        raise AssertionError(f"input tensor should be 1 dimensional, got shape {samples.shape}")
    samples = (samples.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2")
    output = io.BytesIO()
    with wave.open(output, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    proto = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=samples.size,
        encoded_audio_string=output.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=proto)])


def text(tag, value):
    """Markdown."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    proto = TensorProto(dtype="DT_STRING", string_val=[value.encode("utf8")], tensor_shape=shape)
    metadata = _metadata("text", TextPluginData(version=0).SerializeToString())
    return Summary(value=[Summary.Value(tag=tag + "/text_summary", metadata=metadata, tensor=proto)])


# --- curves, charts, meshes -----------------------------------------------------------------------


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """Precision and recall of `predictions` in [0, 1] for boolean `labels` at evenly spaced thresholds."""
    num_thresholds = min(num_thresholds, 127)
    labels = make_np(labels).reshape(-1).astype(bool)
    predictions = make_np(predictions).reshape(-1)
    weights = np.ones(labels.shape) if weights is None else np.broadcast_to(make_np(weights), labels.shape)
    buckets = np.floor(predictions * (num_thresholds - 1)).astype(int)
    count = lambda mask: np.bincount(buckets, weights * mask, num_thresholds)[::-1].cumsum()[::-1]  # noqa: E731
    tp, fp = count(labels), count(~labels)
    tn, fn = fp[0] - fp, tp[0] - tp
    tiny = 1e-7
    return pr_curve_raw(
        tag, tp, fp, tn, fn, tp / np.maximum(tiny, tp + fp), tp / np.maximum(tiny, tp + fn), num_thresholds
    )


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127):
    """A precision-recall curve whose values are known."""
    num_thresholds = min(num_thresholds, 127)
    data = np.stack([make_np(v).reshape(-1) for v in (tp, fp, tn, fn, precision, recall)])
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    value = Summary.Value(tag=tag, metadata=_metadata("pr_curves", content), tensor=_float_tensor(data))
    return Summary(value=[value])


def custom_scalars(layout):
    """Charts that show several scalars: ``{category: {title: ["Multiline" or "Margin", [tags]]}}``."""
    categories = []
    for category, charts in layout.items():
        made = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                made.append(
                    layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))
                )
            else:
                lines = layout_pb2.MultilineChartContent(tag=list(tags))
                made.append(layout_pb2.Chart(title=title, multiline=lines))
        categories.append(layout_pb2.Category(title=category, chart=made))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    metadata = _metadata("custom_scalars")
    return Summary(value=[Summary.Value(tag="custom_scalars__config__", tensor=proto, metadata=metadata)])


def mesh(tag, vertices, colors, faces, config_dict):
    """Points ``[B, N, 3]`` with optional colours ``[B, N, 3]`` and triangles ``[B, M, 3]``."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    parts = [
        (vertices, MeshPluginData.VERTEX),
        (faces, MeshPluginData.FACE),
        (colors, MeshPluginData.COLOR),
    ]
    parts = [(make_np(data), kind) for data, kind in parts if data is not None]
    components = metadata.get_components_bitmask([kind for _, kind in parts])
    values = []
    for data, kind in parts:
        about = metadata.create_summary_metadata(
            tag,
            tag,
            kind,
            components,
            data.shape,
            "",
            json_config=json.dumps(config_dict or {}, sort_keys=True),
        )
        instance = metadata.get_instance_name(tag, kind)
        values.append(
            Summary.Value(tag=instance, tensor=_float_tensor(data.astype(np.float32)), metadata=about)
        )
    return Summary(value=values)


# --- hyperparameters ------------------------------------------------------------------------------


def hparams(hparam_dict, metric_dict, hparam_domain_discrete=None):
    """The experiment's table and this run's row: three summaries, to be written in this order."""
    from google.protobuf import struct_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    for what, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"{what} should be a dictionary, got {type(given).__name__}")
    domains = hparam_domain_discrete or {}
    start, infos = plugin_data_pb2.SessionStartInfo(), []
    for key, value in hparam_dict.items():
        if value is None:
            continue
        if not isinstance(value, (bool, str)):
            value = number(value)
        field = (
            "bool_value"
            if isinstance(value, bool)
            else "string_value"
            if isinstance(value, str)
            else "number_value"
        )
        kind = {"bool_value": "BOOL", "string_value": "STRING", "number_value": "FLOAT64"}[field]
        setattr(start.hparams[key], field, value)
        domain = None
        if key in domains:
            domain = struct_pb2.ListValue(values=[struct_pb2.Value(**{field: v}) for v in domains[key]])
        infos.append(
            api_pb2.HParamInfo(
                name=key, type=api_pb2.DataType.Value("DATA_TYPE_" + kind), domain_discrete=domain
            )
        )
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=k)) for k in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value("STATUS_SUCCESS"))

    def summary_of(tag, **content):
        data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
        about = _metadata(metadata.PLUGIN_NAME, data.SerializeToString())
        return Summary(value=[Summary.Value(tag=tag, metadata=about)])

    return (
        summary_of(metadata.EXPERIMENT_TAG, experiment=experiment),
        summary_of(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        summary_of(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )
