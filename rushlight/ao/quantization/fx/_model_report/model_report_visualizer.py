"""Tables and pictures of a report's features."""

from collections import OrderedDict

import rushlight

__all__ = ["ModelReportVisualizer"]

_NOT_APPLICABLE = "Not Applicable"


def _has_channels(value):
    """Whether a feature has a value for each channel."""
    return isinstance(value, list) or (isinstance(value, rushlight.Tensor) and value.ndim > 0)


def _plain(value):
    return value.item() if isinstance(value, rushlight.Tensor) else value


class ModelReportVisualizer:
    """Shows features by layer, ``{path: {feature: value}}``.

    Filters are parts of names: of features, and of paths of layers. "" lets all pass.
    """

    TABLE_TENSOR_KEY = "tensor_level_info"
    TABLE_CHANNEL_KEY = "channel_level_info"

    # Columns before the features: index and layer, then the channel.
    NUM_NON_FEATURE_TENSOR_HEADERS = 2
    NUM_NON_FEATURE_CHANNEL_HEADERS = 3
    CHANNEL_NUM_INDEX = 2

    def __init__(self, generated_reports):
        self.generated_reports = generated_reports

    def get_all_unique_module_fqns(self):
        return set(self.generated_reports)

    def get_all_unique_feature_names(self, plottable_features_only=True):
        return {
            name
            for features in self.generated_reports.values()
            for name, value in features.items()
            if not plottable_features_only or type(value) is rushlight.Tensor
        }

    def _filtered(self, feature_filter, module_fqn_filter):
        return OrderedDict(
            (fqn, {name: value for name, value in features.items() if feature_filter in name})
            for fqn, features in self.generated_reports.items()
            if module_fqn_filter in fqn
        )

    def generate_filtered_tables(self, feature_filter="", module_fqn_filter=""):
        """Headers and rows of two tables: features of layers, and features of their channels."""
        chosen = self._filtered(feature_filter, module_fqn_filter)
        of_layers, of_channels = set(), set()
        for features in chosen.values():
            for name, value in features.items():
                (of_channels if _has_channels(value) else of_layers).add(name)
        return {
            self.TABLE_TENSOR_KEY: self._layer_table(chosen, sorted(of_layers)),
            self.TABLE_CHANNEL_KEY: self._channel_table(chosen, sorted(of_channels)),
        }

    @staticmethod
    def _layer_table(chosen, names):
        if not chosen or not names:
            return [], []
        rows = [
            [index, fqn, *(_plain(features.get(name, _NOT_APPLICABLE)) for name in names)]
            for index, (fqn, features) in enumerate(chosen.items())
        ]
        return ["idx", "layer_fqn", *names], rows

    @staticmethod
    def _channel_table(chosen, names):
        if not names:
            return [], []
        channels = {
            fqn: max((len(features[name]) for name in names if name in features), default=0)
            for fqn, features in chosen.items()
        }
        most = max(channels.values())
        rows: list = []
        for fqn, features in chosen.items():
            for channel in range(channels[fqn] or most):
                values = (
                    _plain(features[name][channel]) if name in features else _NOT_APPLICABLE for name in names
                )
                rows.append([len(rows), fqn, channel, *values])
        return ["idx", "layer_fqn", "channel", *names], rows

    def generate_table_visualization(self, feature_filter="", module_fqn_filter=""):
        """Print both tables."""
        from rushlight.fx.graph import _table

        tables = self.generate_filtered_tables(feature_filter, module_fqn_filter)
        parts = [
            f"{title}\n{_table(rows, headers)}"
            for title, (headers, rows) in (
                ("Tensor Level Information", tables[self.TABLE_TENSOR_KEY]),
                ("Channel Level Information", tables[self.TABLE_CHANNEL_KEY]),
            )
            if headers
        ]
        print("\n\n".join(parts) or "No data points to generate table with.")

    def _get_plottable_data(self, feature_filter, module_fqn_filter):
        """Indices of layers, the one feature's values, and whether these are lists, one for each channel."""
        tables = self.generate_filtered_tables(feature_filter, module_fqn_filter)
        layer_headers, layer_rows = tables[self.TABLE_TENSOR_KEY]
        channel_headers, channel_rows = tables[self.TABLE_CHANNEL_KEY]
        if len(layer_headers) == self.NUM_NON_FEATURE_TENSOR_HEADERS + 1:
            rows = [row for row in layer_rows if not isinstance(row[-1], str)]
            return [row[0] for row in rows], [row[-1] for row in rows], False
        if len(channel_headers) != self.NUM_NON_FEATURE_CHANNEL_HEADERS + 1:
            raise ValueError(
                "Make sure to pick only a single feature with your filter to plot a graph. "
                "We recommend calling get_all_unique_feature_names() to find unique feature names. "
                "Pick one of those features to plot."
            )
        layers = list(dict.fromkeys(row[1] for row in channel_rows))
        lines: list = [[] for _ in range(max(row[self.CHANNEL_NUM_INDEX] for row in channel_rows) + 1)]
        x_data = []
        for _, fqn, channel, value in channel_rows:
            if isinstance(value, str):
                continue
            if channel == 0:
                x_data.append(layers.index(fqn))
            lines[channel].append(value)
        return x_data, lines, True

    def generate_plot_visualization(self, feature_filter, module_fqn_filter=""):
        """A line of one feature over the layers; of channels their average."""
        plt = _pyplot()
        if plt is None:
            return
        x_data, y_data, by_channel = self._get_plottable_data(feature_filter, module_fqn_filter)
        axes = plt.subplot()
        axes.set_ylabel(feature_filter)
        axes.set_title(f"{feature_filter} Plot")
        axes.set_xticks(x_data)
        axes.set_xlabel("First idx of module" if by_channel else "idx")
        if by_channel:
            layers = [[line[i] for line in y_data if i < len(line)] for i in range(len(x_data))]
            means = [sum(values) / len(values) for values in layers]
            axes.plot(x_data, means, label=f"Average Value Across {len(y_data)} Channels")
            axes.legend(loc="upper right")
        else:
            axes.plot(x_data, y_data)
        plt.show()

    def generate_histogram_visualization(self, feature_filter, module_fqn_filter="", num_bins=10):
        """How often values of one feature occur."""
        plt = _pyplot()
        if plt is None:
            return
        _, y_data, by_channel = self._get_plottable_data(feature_filter, module_fqn_filter)
        values = [value for line in y_data for value in line] if by_channel else y_data
        axes = plt.subplot()
        axes.set_xlabel(feature_filter)
        axes.set_ylabel("Frequency")
        axes.set_title(f"{feature_filter} Histogram")
        _, edges, _ = axes.hist(values, bins=num_bins, rwidth=0.8)
        axes.set_xticks(edges)
        plt.show()


def _pyplot():
    """matplotlib, or None after a word that it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        print("make sure to install matplotlib and try again.")
        return None
    return plt
