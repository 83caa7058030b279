// A sum that follows a convolution of integers becomes a part of it: what the convolution gives is rounded as
// before, but never written.
#include <algorithm>

#include "jit/alias.h"
#include "jit/passes.h"

namespace rushlight::jit {
namespace {

// Where operators have their arguments.
enum ConvArgument : size_t { kScale = 11, kZero, kDType, kActivation, kConvArguments = 17 };
enum SumArgument : size_t { kFirst = 0, kSecond = 3, kSumScale = 6, kSumZero, kSumDType, kRelu };

class SumFuser {
 public:
  explicit SumFuser(Graph& graph)
      : graph_(graph), uses_(graph.values.size(), 0), maker_(graph.values.size(), SIZE_MAX) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const Argument& a : graph.nodes[i].arguments) each_use(a, [&](const Use& u) { ++uses_[u.id]; });
      for (const ValueId id : graph.nodes[i].results)
        if (id != kNoValue) maker_[id] = i;
    }
    for (const Output& out : graph.outputs) ++uses_[out.value];
  }
  void run() {
    for (Node& node : graph_.nodes)
      if (node.op && node.op == sum_) fuse(node);
    std::erase_if(graph_.nodes,
                  [this](const Node& node) { return node.op && node.op == conv_ && is_gone(node); });
  }

 private:
  bool is_gone(const Node& node) const {
    return node.results[0] != kNoValue && uses_[node.results[0]] == kGone;
  }

  // The convolution that makes an addend for this sum alone, in the same integers.
  const Node* convolution(const Node& sum, size_t at) const {
    const Use* use = sum.arguments[at].get<Use>();
    if (!use || uses_[use->id] != 1 || maker_[use->id] == SIZE_MAX) return nullptr;
    const Node& node = graph_.nodes[maker_[use->id]];
    if (node.op != conv_ || node.arguments.size() != kConvArguments) return nullptr;
    const auto* activation = node.arguments[kActivation].get<std::string>();
    const bool same = node.arguments[kScale] == sum.arguments[at + 1] &&
                      node.arguments[kZero] == sum.arguments[at + 2] &&
                      node.arguments[kDType] == sum.arguments[kSumDType];
    return same && activation && (*activation == "none" || *activation == "relu") ? &node : nullptr;
  }
  bool has_type_of(const Node& sum, size_t at) const {
    const Use* use = sum.arguments[at].get<Use>();
    const auto* dtype = sum.arguments[kSumDType].get<DType>();
    return use && dtype && graph_.values[use->id].type.dtype == *dtype;
  }

  void fuse(Node& sum) {
    // Of two convolutions the later one: its addend is there by then, and still near.
    const Node *first = convolution(sum, kFirst), *second = convolution(sum, kSecond);
    if (!has_type_of(sum, kFirst) || !has_type_of(sum, kSecond) || (!first && !second)) return;
    const bool takes_second = second && (!first || second > first);
    const Node& conv = takes_second ? *second : *first;
    const size_t other = takes_second ? kFirst : kSecond;
    std::vector<Argument> arguments(conv.arguments.begin(), conv.arguments.begin() + kActivation + 1);
    for (const size_t i : {other, other + 1, other + 2, size_t{kSumScale}, size_t{kSumZero}, size_t{kRelu}})
      arguments.push_back(sum.arguments[i]);
    arguments.push_back({takes_second});
    uses_[conv.results[0]] = kGone;
    sum.op = fused_;
    sum.arguments = std::move(arguments);
  }

  static constexpr uint32_t kGone = UINT32_MAX;
  Graph& graph_;
  const Op *conv_ = find_operator("onednn::qconv_pointwise"), *sum_ = find_operator("_quantized_sum"),
           *fused_ = find_operator("_quantized_conv_sum");
  std::vector<uint32_t> uses_;
  std::vector<size_t> maker_;
};

}  // namespace

void fuse_quantized_sums(Graph& graph) {
  if (std::ranges::any_of(graph.nodes, writes)) return;
  SumFuser(graph).run();
}

}  // namespace rushlight::jit
