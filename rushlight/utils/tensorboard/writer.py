"""Writers of event files."""

import os
import socket
import time
from datetime import datetime

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from rushlight.utils.tensorboard import summary
from rushlight.utils.tensorboard.arrays import figure_to_image, make_np, scalar, to_bytes

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file in `log_dir`: events are queued and written by a thread."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None):
        """Queues an event at `walltime` (now) and `step`."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(scalar(step))
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Queues a Summary."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile, walltime=None):
        """Queues a pair of graph and run metadata."""
        graph, metadata = graph_profile
        self.add_event(event_pb2.Event(graph_def=graph.SerializeToString()), None, walltime)
        tagged = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=metadata.SerializeToString())
        self.add_event(event_pb2.Event(tagged_run_metadata=tagged), None, walltime)

    def flush(self):
        """Writes what is queued."""
        self.event_writer.flush()

    def close(self):
        """Writes what is queued and closes the file."""
        self.event_writer.close()

    def reopen(self):
        """Opens the file again after `close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Logs numbers, histograms, pictures, sound, text, curves, embeddings and graphs for TensorBoard.

    `log_dir` defaults to ``runs/DATE_HOST`` + `comment`. Steps from `purge_step` on that an interrupted run
    wrote are hidden. Files in the format of ``tensorboard``; call `close`, or use it as a context manager."""

    def __init__(
        self,
        log_dir=None,
        comment="",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix="",
    ):
        if not log_dir:
            started = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{started}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer = self.all_writers = None
        self._get_file_writer()
        self._projector = ProjectorConfig()

    def _new_writer(self, folder):
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self):
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                log = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=step, session_log=log), step)
        return self.file_writer

    def get_logdir(self):
        """The folder of the event files."""
        return self.log_dir

    def _add(self, content, global_step, walltime):
        self._get_file_writer().add_summary(content, global_step, walltime)

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False
    ):
        """One number."""
        content = summary.scalar(tag, scalar_value, new_style, double_precision)
        self._add(content, global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one chart, each in a run of its own."""
        self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + tag)
            if folder not in self.all_writers:
                self.all_writers[folder] = self._new_writer(folder)
            self.all_writers[folder].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A whole tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """The distribution of values. Raises ``ValueError`` when there are none."""
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag,
        min,  # noqa: A002 - PyTorch's names
        max,  # noqa: A002
        num,
        sum,  # noqa: A002
        sum_squares,
        bucket_limits,
        bucket_counts,
        global_step=None,
        walltime=None,
    ):
        """A histogram that was computed elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        content = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(content, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture; floating-point values count from 0 to 1."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """A batch of pictures in a grid."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self,
        tag,
        img_tensor,
        box_tensor,
        global_step=None,
        walltime=None,
        rescale=1,
        dataformats="CHW",
        labels=None,
    ):
        """A picture with rectangles."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        content = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(content, global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A matplotlib figure, or a list of them, which is closed afterwards."""
        layout = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, layout)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Moving pictures ``[N, T, C, H, W]``."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Sound ``[L]`` or ``[1, L]`` with values between -1 and 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The modules of `model` and how their results flow, seen in one call with `input_to_model`.

        Raises RuntimeError for a model that returns a dictionary, unless `use_strict_trace` is off.
        """
        from rushlight.utils.tensorboard.graph import graph

        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_embedding(
        self,
        mat,
        metadata=None,
        label_img=None,
        global_step=None,
        tag="default",
        metadata_header=None,
    ):
        """Points ``[N, D]`` for the projector, with labels and small pictures ``[N, C, H, W]``."""
        mat = make_np(mat)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        step = 0 if global_step is None else int(scalar(global_step))
        folder = f"{step:05d}/{tag}"
        path = os.path.join(self._get_file_writer().get_logdir(), folder)
        os.makedirs(path, exist_ok=True)
        entry = self._projector.embeddings.add()
        entry.tensor_name = f"{tag}:{step:05d}"
        entry.tensor_path = os.path.join(folder, "tensors.tsv")
        with open(os.path.join(path, "tensors.tsv"), "w") as file:
            file.writelines("\t".join(map(str, row)) + "\n" for row in mat.tolist())
        if metadata is not None:
            if len(metadata) != mat.shape[0]:
                raise AssertionError("#labels should equal with #data points")
            entry.metadata_path = os.path.join(folder, "metadata.tsv")
            rows = (
                ["\t".join(map(str, r)) for r in [metadata_header, *metadata]]
                if metadata_header
                else metadata
            )
            with open(os.path.join(path, "metadata.tsv"), "w", encoding="utf8") as file:
                file.writelines(f"{row}\n" for row in rows)
        if label_img is not None:
            if mat.shape[0] != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            entry.sprite.image_path = os.path.join(folder, "sprite.png")
            entry.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
            self._save_sprite(make_np(label_img), os.path.join(path, "sprite.png"))
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w") as file:
            file.write(str(self._projector))

    def _save_sprite(self, images, path):
        from PIL import Image

        from rushlight.utils.tensorboard.arrays import grid

        columns = int((len(images) - 1) ** 0.5) + 1  # a square, as the projector wants it
        Image.fromarray(to_bytes(grid(images, columns))).save(path)

    def add_pr_curve(
        self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None
    ):
        """Precision against recall of binary predictions."""
        content = summary.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(content, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds=127,
        weights=None,
        walltime=None,
    ):
        """A precision-recall curve that was computed elsewhere."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        content = summary.pr_curve_raw(tag, *counts, precision, recall, num_thresholds)
        self._add(content, global_step, walltime)

    def add_custom_scalars(self, layout):
        """Charts of several scalars: ``{category: {title: ["Multiline" or "Margin", [tags]]}}``."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """One chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """One chart of a value between a lower and an upper one: three tags."""
        if len(tags) != 3:
            raise AssertionError(f"a margin chart has three tags, got {len(tags)}")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(
        self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None
    ):
        """Points or triangles in space."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ):
        """Hyperparameters and the metrics reached with them, as a run of its own."""
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for part in parts:
                writer.file_writer.add_summary(part, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def flush(self):
        """Writes what is queued."""
        if self.all_writers is not None:
            for writer in self.all_writers.values():
                writer.flush()

    def close(self):
        """Writes what is queued and closes the files; a later call opens them again."""
        if self.all_writers is None:
            return
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()
