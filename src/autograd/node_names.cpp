#include "autograd/node_names.h"

#include <algorithm>
#include <cctype>

#include "dispatch/table.h"

namespace rushlight {
namespace {

// PyTorch numbers the derivatives of one name's overloads in the order of its own table.
struct NodeName {
  std::string_view name, overload, node;
};
constexpr NodeName kNodeNames[] = {
    {"sum", "dim_IntList", "SumBackward1"},
    {"mean", "dim", "MeanBackward1"},
    {"prod", "dim_int", "ProdBackward1"},
    {"max", "", "MaxBackward1"},
    {"min", "", "MinBackward1"},
    {"median", "dim", "MedianBackward1"},
    {"squeeze", "dim", "SqueezeBackward1"},
    {"squeeze", "dims", "SqueezeBackward2"},
    {"nanmedian", "dim", "NanmedianBackward1"},
    {"clamp", "", "ClampBackward1"},
    {"clamp_min", "Tensor", "ClampMinBackward1"},
    {"clamp_max", "Tensor", "ClampMaxBackward1"},
    {"div", "Tensor_mode", "DivBackward2"},
    {"scatter", "value", "ScatterBackward1"},
    {"sort", "stable", "SortBackward1"},
    {"copy_", "", "CopyBackwards"},
    {"normal", "Tensor_float", "NormalBackward1"},
    {"normal", "float_Tensor", "NormalBackward2"},
    {"normal", "Tensor_Tensor", "NormalBackward3"},
    {"_cdist_forward", "", "CdistBackward0"},
    {"_pdist_forward", "", "PdistBackward0"},
    {"_lstm_layer", "", "MkldnnRnnLayerBackward0"},
    {"adaptive_max_pool2d_with_indices", "", "AdaptiveMaxPool2DBackward0"},
    {"adaptive_max_pool3d_with_indices", "", "AdaptiveMaxPool3DBackward0"},
    // Pooled there as images of one line.
    {"max_pool1d_with_indices", "", "SqueezeBackward1"},
    {"adaptive_max_pool1d_with_indices", "", "SqueezeBackward1"},
    {"avg_pool1d", "", "SqueezeBackward1"},
    {"adaptive_avg_pool1d", "", "SqueezeBackward1"},
    // Composites that are one step there.
    {"cross", "", "LinalgCrossBackward0"},
    {"rrelu", "", "RreluWithNoiseBackward0"},
    {"unsafe_chunk", "", "UnsafeSplitBackward0"},
    {"squeeze_copy", "dim", "SqueezeBackward1_copy"},
    {"squeeze_copy", "dims", "SqueezeBackward2_copy"},
};

// Names that depend on whether a parameter was a tensor or a number. The first row that fits counts.
struct NumberName {
  std::string_view name;
  int parameter;  // given a number
  std::string_view node;
};
constexpr int kNone = -1;
constexpr NumberName kNumberNames[] = {
    {"pow", 1, "PowBackward0"},
    {"pow", 0, "PowBackward2"},
    {"pow", kNone, "PowBackward1"},
    {"remainder", 1, "RemainderBackward0"},
    {"remainder", kNone, "RemainderBackward1"},
    {"fmod", 1, "FmodBackward0"},
    {"fmod", kNone, "FmodBackward1"},
    {"copysign", 1, "CopysignBackward1"},
    {"lerp", 2, "LerpBackward0"},
    {"lerp", kNone, "LerpBackward1"},
    {"masked_fill", 2, "MaskedFillBackward0"},
    {"masked_fill", kNone, "MaskedFillBackward1"},
    {"index_fill", 3, "IndexFillBackward0"},
    {"index_fill", kNone, "IndexFillBackward1"},
    {"fill", 1, "FillBackward0"},
    {"fill", kNone, "FillBackward1"},
    {"fill_", 1, "FillBackward2"},
    {"fill_", kNone, "FillBackward3"},
    {"rsub", 1, "RsubBackward1"},
    {"xlogy", 1, "XlogyBackward2"},
    {"xlogy", 0, "XlogyBackward1"},
};

constexpr std::string_view kOneStep[] = {
    "addbmm",
    "addmv",
    "addr",
    "as_strided_scatter",
    "block_diag",
    "celu",
    "channel_shuffle",
    "cholesky",
    "clamp_max",
    "clamp_min",
    "conj",
    "deg2rad",
    "cross",
    "diagonal_scatter",
    "dist",
    "fill",
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "glu",
    "index_reduce",
    "ldexp",
    "lu_unpack",
    "max_unpool2d",
    "max_unpool3d",
    "mvlgamma",
    "narrow_copy",
    "pixel_shuffle",
    "pixel_unshuffle",
    "polar",
    "rad2deg",
    "renorm",
    "rot90",
    "rrelu",
    "rsub",
    "select_scatter",
    "slice_scatter",
    "trace",
    "unsafe_chunk",
    "unsafe_split",
};
constexpr std::string_view kOneStepOfLinalg[] = {"cross", "lu", "solve_ex"};

// Copies of views are called after the view.
constexpr std::string_view kViewCopies[] = {
    "alias_copy",     "as_strided_copy", "diagonal_copy",         "expand_copy",    "permute_copy",
    "select_copy",    "slice_copy",      "split_with_sizes_copy", "squeeze_copy",   "t_copy",
    "transpose_copy", "unbind_copy",     "unfold_copy",           "unsqueeze_copy", "view_copy",
};

template <size_t n>
bool lists(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string in_camel_case(std::string_view name) {
  std::string text;
  bool upper = true;
  for (char c : name) {
    if (c != '_') text += static_cast<char>(upper ? std::toupper(c) : c);
    upper = !std::isalpha(static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace

std::string backward_name(const Op& op, uint32_t numbers) {
  const Schema& s = op.schema;
  for (const NodeName& n : kNodeNames)
    if (n.name == s.name && n.overload == s.overload) return std::string(n.node);
  for (const NumberName& n : kNumberNames)
    if (n.name == s.name && (n.parameter == kNone || numbers >> n.parameter & 1)) return std::string(n.node);
  if (lists(kViewCopies, s.name))
    return in_camel_case(std::string_view(s.name).substr(0, s.name.size() - 5)) + "Backward0_copy";
  const char* space = s.space == "linalg" ? "Linalg" : s.space == "special" ? "Special" : "";
  return space + in_camel_case(s.name) + "Backward0";
}

std::string name_of_composite(const Node& node) {
  return backward_name(operator_table().ops()[node.end_of - 1], node.numbers);
}

bool is_one_step(const Op& op) {
  if (op.family != Family::Composite) return false;
  const std::string_view name = op.schema.name;
  return op.schema.space == "linalg" ? lists(kOneStepOfLinalg, name)
                                     : lists(kOneStep, name) || lists(kViewCopies, name);
}

}  // namespace rushlight
