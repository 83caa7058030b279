#include "autograd/op_node.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "autograd/engine.h"
#include "autograd/gradient_ops.h"
#include "autograd/node_names.h"

namespace rushlight {
namespace {

// Free lists for nodes of up to 1 KiB, in steps of 64 bytes.
constexpr size_t kStep = 64, kClasses = 16;
template <size_t... I>
constexpr auto make_pools(std::index_sequence<I...>) {
  struct Pool {
    void* (*take)();
    void (*give)(void*) noexcept;
  };
  return std::array<Pool, sizeof...(I)>{
      Pool{&FreeList<(I + 1) * kStep, 16>::take, &FreeList<(I + 1) * kStep, 16>::give}...};
}
constexpr auto pools = make_pools(std::make_index_sequence<kClasses>{});

void* take_memory(size_t bytes) {
  const size_t c = (bytes - 1) / kStep;
  return c < kClasses ? pools[c].take() : ::operator new(bytes, std::align_val_t(16));
}
void give_memory(void* memory, size_t bytes) noexcept {
  const size_t c = (bytes - 1) / kStep;
  if (c < kClasses)
    pools[c].give(memory);
  else
    ::operator delete(memory, std::align_val_t(16));
}

// Calls f(parameter) for every bit.
template <class F>
void each_bit(uint64_t bits, F&& f) {
  for (; bits; bits &= bits - 1) f(std::countr_zero(bits));
}

TensorList tensors_of(const Value& v, const Tensor*& single) {
  if (v.tag() == Tag::TensorList) return v.tensors();
  single = &v.tensor();
  return {single, 1};
}
TensorList tensors_of(const Value& v) {
  const Tensor* single;
  return tensors_of(v, single);
}

size_t list_bytes(const Value& v) {
  switch (v.tag()) {
    case Tag::IntList:
      return v.ints().size() * sizeof(int64_t);
    case Tag::FloatList:
      return v.floats().size_bytes();
    case Tag::ScalarList:
      return v.scalars().size_bytes();
    case Tag::BoolList:
      return v.bools().size_bytes();
    case Tag::String:
      return v.string().size();
    default:
      return 0;
  }
}
size_t round_up(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

// `v` with its list, if it is one, moved to `memory`.
Value keep_value(const Value& v, std::byte*& memory) {
  const size_t n = list_bytes(v);
  void* to = memory;
  auto keep = [&](const void* from) {
    if (n) std::memcpy(to, from, n);
    memory += round_up(n);
  };
  switch (v.tag()) {
    case Tag::IntList:
      keep(v.ints().data());
      return IntList(static_cast<int64_t*>(to), v.ints().size());
    case Tag::FloatList:
      keep(v.floats().data());
      return FloatList(static_cast<double*>(to), v.floats().size());
    case Tag::ScalarList:
      keep(v.scalars().data());
      return ScalarList(static_cast<Scalar*>(to), v.scalars().size());
    case Tag::BoolList:
      keep(v.bools().data());
      return std::span<const bool>(static_cast<bool*>(to), v.bools().size());
    case Tag::String:
      keep(v.string().data());
      return std::string_view(static_cast<char*>(to), v.string().size());
    default:
      return v;
  }
}

// The gradient of which parameter a rule that returns one Tensor computes; -1: of all, as Grads.
int single_parameter(const Op& op, const Value* args) {
  if (!op.derivative.single) return -1;
  int first = std::countr_zero(op.tensor_parameters);
  for (uint64_t bits = op.tensor_parameters; bits; bits &= bits - 1) {
    const int p = std::countr_zero(bits);
    for (const Tensor& t : tensors_of(args[p]))
      if (t.defined() && is_differentiable(t.dtype())) return p;
  }
  return first;
}

// What the rule of a view reads of what it saved: sizes, strides and offset, never the elements. Later writes
// do not matter, and no memory is kept.
Tensor layout_of(const Tensor& t) {
  if (t->flags & (kPythonDispatch | kSpecialElements)) return tensor_data(t);
  Tensor layout = empty_strided_tensor(t.sizes(), t.strides(), t.dtype(), Device(DeviceType::Meta));
  layout->offset = t.storage_offset();
  return layout;
}

InputMeta describe_meta(const Tensor& t) {
  return t.defined() ? InputMeta{t->sizes, t.dtype(), t.device()} : InputMeta{};
}

}  // namespace

namespace {

// What a recorded call of an operator keeps, unless some of it is a list: lists are as long as a call makes
// them.
struct Kept {
  bool known = false, fixed = false;
  uint8_t operands = 0, saved = 0, shapes = 0, attributes = 0;
  uint16_t unused = 0;
};

Kept count_kept(const Op& op) {
  const Derivative& d = op.derivative;
  Kept kept{.known = true, .fixed = true};
  for (size_t i = 0; i < op.schema.parameters.size(); ++i) {
    const Tag type = op.schema.parameters[i].type;
    const bool list = type == Tag::IntList || type == Tag::FloatList || type == Tag::ScalarList ||
                      type == Tag::BoolList || type == Tag::String;
    kept.fixed &= type != Tag::TensorList && !(list && (d.saved_attributes >> i & 1));
  }
  kept.operands = static_cast<uint8_t>(std::popcount(op.tensor_parameters));
  kept.saved = static_cast<uint8_t>(std::popcount(d.saved_inputs) + std::popcount(d.saved_outputs));
  kept.shapes = static_cast<uint8_t>(std::popcount(d.saved_shapes));
  kept.attributes = static_cast<uint8_t>(std::popcount(d.saved_attributes));
  return kept;
}

// Counted at the operator's first call, on any thread.
Kept kept_by(const Op& op) {
  static std::array<std::atomic<uint64_t>, 4096> table{};
  if (op.id >= table.size()) return count_kept(op);
  Kept kept = std::bit_cast<Kept>(table[op.id].load(std::memory_order_relaxed));
  if (!kept.known) [[unlikely]]
    table[op.id].store(std::bit_cast<uint64_t>(kept = count_kept(op)), std::memory_order_relaxed);
  return kept;
}

}  // namespace

// What a recorded call needs, counted before the memory is taken.
struct OpNode::Plan {
  int single;
  size_t outputs, edges = 0, shapes = 0, attributes = 0, saved = 0, parameters = 0, list_bytes = 0;
  size_t bytes = 0;

  Plan(const Op& op, const Value* args)
      : single(single_parameter(op, args)), outputs(op.schema.returns.size()) {
    if (const Kept kept = kept_by(op); kept.fixed)
      take(kept);
    else
      count(op, args);
    bytes = sizeof(OpNode) + edges * sizeof(Edge) + (outputs + shapes) * sizeof(InputMeta) +
            attributes * sizeof(Value) + saved * sizeof(SavedVariable) +
            round_up((parameters + 1) * sizeof(Start)) + list_bytes;
  }

 private:
  void take(const Kept& kept) {
    parameters = kept.operands;
    edges = single < 0 ? kept.operands : 1;
    saved = kept.saved, shapes = kept.shapes, attributes = kept.attributes;
  }
  void count(const Op& op, const Value* args) {
    const Derivative& d = op.derivative;
    each_bit(op.tensor_parameters, [&](int p) {
      const size_t n = args[p].tag() == Tag::TensorList ? args[p].tensors().size() : 1;
      ++parameters;
      if (single < 0 || single == p) edges += n;
      if (d.saved_inputs >> p & 1) saved += n;
      if (d.saved_shapes >> p & 1) shapes += n;
    });
    saved += std::popcount(d.saved_outputs);
    each_bit(d.saved_attributes,
             [&](int p) { ++attributes, list_bytes += round_up(rushlight::list_bytes(args[p])); });
  }
};

namespace {
template <class T>
T* carve(std::byte*& memory, size_t n) {
  T* items = reinterpret_cast<T*>(memory);
  for (size_t i = 0; i < n; ++i) new (items + i) T();
  memory += round_up(n * sizeof(T));
  return items;
}
}  // namespace

OpNode::OpNode(const Op& op, const Plan& plan, std::byte* memory)
    : op_(op),
      bytes_(static_cast<uint32_t>(plan.bytes)),
      saved_count_(static_cast<uint32_t>(plan.saved)),
      shape_count_(static_cast<uint32_t>(plan.shapes)) {
  is_op = true;
  edge_count_ = static_cast<uint32_t>(plan.edges);
  output_count_ = static_cast<uint32_t>(plan.outputs);
  edges_ = carve<Edge>(memory, plan.edges);
  outputs_ = carve<InputMeta>(memory, plan.outputs);
  shapes_ = carve<InputMeta>(memory, plan.shapes);
  attributes_ = carve<Value>(memory, plan.attributes);
  saved_ = carve<SavedVariable>(memory, plan.saved);
  starts_ = carve<Start>(memory, plan.parameters + 1);
}

OpNode::~OpNode() {
  std::destroy_n(edges_, edge_count_);
  if (outputs_on_heap_)
    delete[] outputs_;
  else
    std::destroy_n(outputs_, output_count_);
  std::destroy_n(shapes_, shape_count_);
  std::destroy_n(saved_, saved_count_);
}

void OpNode::free() noexcept {
  const size_t bytes = bytes_;
  this->~OpNode();
  give_memory(this, bytes);
}

Ref<OpNode> OpNode::record(const Op& op, const Value* args, uint64_t overwritten) {
  const Plan plan(op, args);
  auto* memory = static_cast<std::byte*>(take_memory(plan.bytes));
  Ref<OpNode> node = Ref<OpNode>::adopt(new (memory) OpNode(op, plan, memory + sizeof(OpNode)));
  node->fill(args, plan, overwritten);
  return node;
}

void OpNode::fill(const Value* args, const Plan& plan, uint64_t overwritten) {
  const Derivative& d = op_.derivative;
  Start at{};
  int rank = 0;
  each_bit(op_.tensor_parameters, [&](int p) {
    starts_[rank++] = at;
    for (const Tensor& t : tensors_of(args[p])) {
      if (t.defined() && t.is_wrapped_number() && p < 8) numbers |= static_cast<uint8_t>(1 << p);
      if (plan.single < 0 || plan.single == p) {
        if (t.defined()) edges_[at.edge] = gradient_edge(t);
        ++at.edge;
      }
      if (d.saved_shapes >> p & 1) shapes_[at.shape++] = describe_meta(t);
    }
    if (d.saved_inputs >> p & 1) at.saved += static_cast<uint32_t>(tensors_of(args[p]).size());
  });
  starts_[rank] = at;
  each_bit(d.column_majors, [&](int p) {
    if (is_column_major(args[p].tensor())) column_majors_ |= static_cast<uint8_t>(1 << p);
  });
  // Edges come first: whether a tensor must be saved depends on them.
  each_bit(d.saved_inputs, [&](int p) {
    if (p < Derivative::kConditional && d.saved_for[p]) {
      bool wanted = false;
      // A parameter that is no tensor never wants one.
      each_bit(d.saved_for[p] & op_.tensor_parameters, [&](int other) { wanted |= needs(other, 0); });
      // Gradients of sparse operands have their pattern.
      if (!wanted && !(args[p].tensor()->flags & kSpecialElements)) return;
    }
    uint32_t i = start(p).saved;
    const bool copy = overwritten >> p & 1, layout = op_.family == Family::View;
    std::optional<NoSavedHooks> unseen;  // a layout is nothing that a program saves
    if (layout && saved_hooks_active()) unseen.emplace();
    for (const Tensor& t : tensors_of(args[p])) {
      SavedVariable* empty = saved_ + i++;
      if (copy && d.result_serves)
        std::construct_at(empty);  // record_written keeps the result there
      else if (layout || copy)
        std::construct_at(empty, layout ? layout_of(t) : gradient_ops.clone(t), false);
      else
        std::construct_at(empty, t, false);
    }
  });
  auto* lists = reinterpret_cast<std::byte*>(starts_) + round_up((plan.parameters + 1) * sizeof(Start));
  int a = 0;
  each_bit(d.saved_attributes, [&](int p) { attributes_[a++] = keep_value(args[p], lists); });
}

void OpNode::set_output_count(size_t n) {
  std::destroy_n(outputs_, output_count_);
  outputs_ = new InputMeta[n];
  outputs_on_heap_ = true;
  output_count_ = static_cast<uint32_t>(n);
}

std::span<SavedVariable> OpNode::saved_inputs(int parameter) {
  if (!(op_.derivative.saved_inputs >> parameter & 1)) return {};
  const Start* s = &start(parameter);
  return {saved_ + s[0].saved, s[1].saved - s[0].saved};
}

SavedVariable* OpNode::saved_output(int index) {
  const uint32_t outputs = op_.derivative.saved_outputs;
  if (index >= 32 || !(outputs >> index & 1)) return nullptr;
  return saved_ + saved_count_ - std::popcount(outputs) + std::popcount(outputs & ((1u << index) - 1));
}

const Value* OpNode::attribute(int parameter) const {
  const uint64_t bits = op_.derivative.saved_attributes;
  if (!(bits >> parameter & 1)) return nullptr;
  return attributes_ + std::popcount(bits & ((1ull << parameter) - 1));
}

const InputMeta* OpNode::saved_shape(int parameter) const {
  return op_.derivative.saved_shapes >> parameter & 1 ? shapes_ + start(parameter).shape : nullptr;
}

const Edge* OpNode::edge(int parameter, int element) const {
  const Start* s = &start(parameter);
  const uint32_t i = s[0].edge + static_cast<uint32_t>(element);
  return i < s[1].edge && edges_[i] ? &edges_[i] : nullptr;
}

void OpNode::release_saved() { rushlight::release_saved({saved_, saved_count_}, *this); }

// The node as a derivative sees it, together with the gradients of this run.
class OpContext final : public BackwardContext {
 public:
  OpContext(OpNode& node, const Gradients& grads) : node_(node), grads_(grads) {}
  Tensor grad(int output) const override {
    return static_cast<size_t>(output) < grads_.size() ? grads_[output] : Tensor();
  }
  int output_count() const override { return static_cast<int>(node_.outputs().size()); }
  Tensor input(int parameter) const override {
    const auto saved = node_.saved_inputs(parameter);
    return saved.empty() ? Tensor() : saved[0].unpack(node_);
  }
  std::vector<Tensor> input_list(int parameter) const override {
    std::vector<Tensor> list;
    for (const SavedVariable& s : node_.saved_inputs(parameter)) list.push_back(s.unpack(node_));
    return list;
  }
  Tensor output(int index) const override { return node_.saved_output(index)->unpack(node_); }
  Value attribute(int parameter) const override { return *node_.attribute(parameter); }
  const InputMeta& meta(int parameter) const override { return node_.shapes_[node_.start(parameter).shape]; }
  std::vector<InputMeta> meta_list(int parameter) const override {
    const OpNode::Start* s = &node_.start(parameter);
    return {node_.shapes_ + s[0].shape, node_.shapes_ + s[1].shape};
  }
  bool needs(int parameter, int element) const override {
    const Edge* edge = node_.edge(parameter, element);
    return edge && pass_wants(node_, *edge);
  }
  bool column_major(int parameter) const override { return node_.column_majors_ >> parameter & 1; }

 private:
  OpNode& node_;
  const Gradients& grads_;
};

Gradients OpNode::apply(Gradients grads) {
  Gradients results(edge_count_);
  if (!grads.any_defined()) return results;
  const OpContext context(*this, grads);
  Grads computed = op_.derivative.apply(context);
  RL_ASSERT(computed.size() <= edge_count_, "the derivative of ", op_.name(), " returned too many gradients");
  for (size_t i = 0; i < computed.size(); ++i)
    if (edges_[i]) results[i] = std::move(computed[i]);
  return results;
}

std::string OpNode::name() const { return end_of ? name_of_composite(*this) : backward_name(op_, numbers); }

}  // namespace rushlight
