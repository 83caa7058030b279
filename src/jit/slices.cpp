#include "jit/slices.h"

#include <algorithm>
#include <optional>

#include "core/deferred_layout.h"
#include "jit/alias.h"
#include "jit/step.h"
#include "ops/join.h"
#include "ops/view.h"

namespace rushlight::jit {
namespace {

constexpr int64_t kCacheBytes = int64_t{4} << 20;  // what a core finds again in its caches, more or less
constexpr int64_t kSliceBytes = int64_t{2} << 20;
// Bytes that a core moves from memory while it calls an operator.
constexpr int64_t kCallBytes = int64_t{64} << 10;
constexpr int64_t kWeightCopies = 4;  // Winograd's filters are larger than those that they are made of
constexpr int64_t kSomeBatch = 8;     // where callers choose how many examples there are

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), made_(graph.values.size(), SIZE_MAX) {}

  std::vector<Slices> find() {
    if (!find_batch()) return {};
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const ValueId id : graph_.nodes[i].results)
        if (id != kNoValue) made_[id] = i;
    std::vector<Slices> found;
    std::vector<Layer> row;  // layers that follow each other
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.is_constant()) continue;
      if (const auto layer = layer_of(i)) {
        row.push_back(*layer);
        continue;
      }
      add_best(row, found);
      row.clear();
    }
    add_best(row, found);
    return found;
  }

 private:
  // A node that treats each example alone, and the bytes that it moves for one of them and for all.
  struct Layer {
    size_t node;
    int64_t example = 0, shared = 0;
  };

  bool find_batch() {
    if (graph_.inputs.empty()) return false;
    const Type& type = graph_.values[graph_.inputs[0]].type;
    if (!type.has_sizes || type.sizes.empty() || !type.sizes[0].known) return false;
    batch_ = type.sizes[0];
    count_ = batch_.is_number() ? batch_.offset : kSomeBatch;
    return count_ > 1;
  }
  const Type& type_of(ValueId id) const { return graph_.values[id].type; }
  bool is_constant(ValueId id) const {
    return made_[id] != SIZE_MAX && graph_.nodes[made_[id]].is_constant();
  }
  bool counts_examples(ValueId id) const {
    const Type& type = type_of(id);
    return type.is_tensor() && type.has_sizes && !type.sizes.empty() && type.sizes[0] == batch_ &&
           std::all_of(type.sizes.begin() + 1, type.sizes.end(), [](const Size& s) { return s.is_number(); });
  }
  int64_t bytes_of(ValueId id, size_t first) const {
    const Type& type = type_of(id);
    auto bytes = static_cast<int64_t>(element_size(type.dtype));
    for (size_t d = first; d < type.sizes.size(); ++d) bytes *= type.sizes[d].offset;
    return bytes;
  }

  std::optional<Layer> layer_of(size_t at) const {
    const Node& node = graph_.nodes[at];
    if (!node.op || node.inplace || writes(node) || may_differ(node)) return std::nullopt;
    if ((may_alias(node) && !node.op->traits.examples) || is_given_sizes(node)) return std::nullopt;
    const uint64_t examples = parameters_of_examples(node);
    Layer layer{at};
    bool alone = examples != 0;
    for (const ValueId id : node.results) {
      if (id == kNoValue) continue;
      alone = alone && counts_examples(id);
      if (alone) layer.example += bytes_of(id, 1);
    }
    for (size_t i = 0; i < node.arguments.size(); ++i)
      each_use(node.arguments[i], [&](const Use& use) {
        const bool example = examples >> i & 1;
        alone = alone && (example ? counts_examples(use.id) : is_constant(use.id));
        if (alone) (example ? layer.example : layer.shared) += bytes_of(use.id, example ? 1 : 0);
      });
    return alone ? std::optional(layer) : std::nullopt;
  }

  // Whether an argument is the sizes of a result, such as a gradient's of its input: those of all examples.
  bool is_given_sizes(const Node& node) const {
    const auto is_size = [](const auto& element, const Size& size) {
      const auto* number = std::get_if<int64_t>(&element);
      return number && size.is_number() && *number == size.offset;
    };
    return std::ranges::any_of(node.arguments, [&](const Argument& a) {
      const List* list = a.get<List>();
      return list && std::ranges::any_of(node.results, [&](ValueId id) {
               return id != kNoValue && type_of(id).is_tensor() &&
                      std::ranges::equal(*list, type_of(id).sizes, is_size);
             });
    });
  }

  // Parameters whose first dimension counts examples, each of which gives its own part of the results.
  uint64_t parameters_of_examples(const Node& node) const {
    const Op* op = node.op;
    if (op->traits.examples) return op->traits.examples;
    if (op->traits.batching == Batching::Window || op->traits.batching == Batching::Batch) {
      const Use* first = node.arguments[0].get<Use>();  // a single image has three dimensions at most
      return first && type_of(first->id).sizes.size() >= 4 ? op->tensor_parameters : 0;
    }
    if (!op->traits.elementwise || node.results.empty() || node.results[0] == kNoValue) return 0;
    uint64_t examples = 0;
    const size_t rank = type_of(node.results[0]).sizes.size();
    for (size_t i = 0; i < node.arguments.size(); ++i)
      each_use(node.arguments[i], [&](const Use& use) {
        if (counts_examples(use.id) && type_of(use.id).sizes.size() == rank) examples |= uint64_t{1} << i;
      });
    return examples;
  }

  // Of layers that follow each other, those that gain most by slices.
  void add_best(const std::vector<Layer>& row, std::vector<Slices>& found) const {
    int64_t largest = 1;
    for (const Layer& l : row) largest = std::max(largest, l.example);
    const int64_t together = std::max<int64_t>(1, kSliceBytes / largest), more = (count_ - 1) / together;
    int64_t best = 0, sum = 0;
    size_t first = 0, begin = 0, end = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      const int64_t moved = count_ * row[i].example;
      const int64_t gain =
          (moved > kCacheBytes ? moved : 0) - more * (kWeightCopies * row[i].shared + kCallBytes);
      if (sum <= 0) sum = 0, first = i;
      sum += gain;
      if (sum > best) best = sum, begin = first, end = i + 1;
    }
    if (end - begin < 2) return;
    Slices slices;
    slices.begin = row[begin].node, slices.end = row[end - 1].node + 1;
    for (size_t i = begin; i < end; ++i) slices.bytes = std::max(slices.bytes, row[i].example);
    find_ends(slices);
    found.push_back(std::move(slices));
  }

  void find_ends(Slices& slices) const {
    const auto inside = [&](size_t node) { return node >= slices.begin && node < slices.end; };
    std::vector<bool> seen(graph_.values.size(), false);
    const auto take = [&](std::vector<ValueId>& list, ValueId id) {
      if (!seen[id]) list.push_back(id);
      seen[id] = true;
    };
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const Argument& a : graph_.nodes[i].arguments)
        each_use(a, [&](const Use& use) {
          const bool own = made_[use.id] != SIZE_MAX && inside(made_[use.id]) && !is_constant(use.id);
          if (inside(i) && !own && !is_constant(use.id)) take(slices.inputs, use.id);
          if (!inside(i) && own) take(slices.outputs, use.id);
        });
    for (const Output& out : graph_.outputs)
      if (made_[out.value] != SIZE_MAX && inside(made_[out.value]) && !is_constant(out.value))
        take(slices.outputs, out.value);
  }

  const Graph& graph_;
  Size batch_;
  int64_t count_ = 0;
  std::vector<size_t> made_;  // by which node
};

}  // namespace

std::vector<Slices> find_slices(const Graph& graph) {
  if (std::ranges::any_of(graph.nodes, writes)) return {};
  return Finder(graph).find();
}

void Slices::run(const std::vector<Step>& steps, Frame& frame) const {
  std::vector<Tensor> whole;
  bool deferred = false;
  for (const ValueId id : inputs) {
    const Tensor& t = whole.emplace_back(std::move(frame.tensors[id]));
    deferred |= has_deferred_layout(t);
  }
  const int64_t count = whole[0].size(0), step = std::max<int64_t>(1, kSliceBytes / bytes);
  std::vector<std::vector<Tensor>> parts(outputs.size());
  for (int64_t at = 0; at < count; at += step) {
    for (size_t i = 0; i < inputs.size(); ++i)
      frame.tensors[inputs[i]] =
          step < count ? ops::narrow(image_of(whole[i]), 0, at, std::min(step, count - at)) : whole[i];
    for (size_t i = begin; i < end; ++i) steps[i].run(frame);
    for (size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(std::move(frame.tensors[outputs[i]]));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (frame.tensors[inputs[i]].defined()) frame.tensors[inputs[i]] = std::move(whole[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& to = frame.tensors[outputs[i]];
    to = parts[i].size() == 1 ? std::move(parts[i][0]) : ops::cat(TensorList(parts[i]), 0);
    // To others such an image looks contiguous, as it would in one piece.
    if (deferred && !to.is_contiguous() && to.dim() == 4) to = defer_layout(to);
  }
}

}  // namespace rushlight::jit
