// Table: all operator records, and the builder with which the family files fill it.
#pragma once
#include <deque>
#include <string_view>
#include <vector>

#include "dispatch/op.h"
#include "dispatch/refused_derivative.h"

namespace rushlight {

// Fluent access to the record just added.
class OpBuilder {
 public:
  explicit OpBuilder(Op& op) : op_(op) {}
  OpBuilder& doc(const char* text) {
    op_.doc = text;
    return *this;
  }
  OpBuilder& family(Family f) {
    op_.family = f;
    return f == Family::View || f == Family::Pointwise ? on_devices() : *this;
  }
  template <class F>
  OpBuilder& derivative(F rule) {
    op_.derivative = make_derivative(rule);
    return *this;
  }
  OpBuilder& not_differentiable(const char* reason) {
    op_.refusal = reason;
    op_.intercepted &= ~kAutograd;
    return *this;
  }
  // Recorded, but the backward pass raises this reason.
  template <RefusalText reason, int... more_outputs>
  OpBuilder& refused_derivative() {
    op_.refusal = reason.text;
    return derivative(RefusedDerivative<reason, more_outputs...>{});
  }
  // Of a composite: what it calls is recorded and refuses.
  OpBuilder& refused_derivative_of(const Op& called) {
    op_.refusal = called.refusal;
    return *this;
  }
  // What the result looks like depends on the operands' values: no shapes on the meta device.
  OpBuilder& no_meta(const char* reason) {
    op_.meta_refusal = reason;
    return *this;
  }
  OpBuilder& inplace() {  // also `name_`
    op_.has_inplace = true;
    return *this;
  }
  OpBuilder& out(OutRule demand = OutRule::Castable) {  // also out=
    op_.has_out = true;
    op_.traits.out = demand;
    return *this;
  }
  OpBuilder& function_only() {
    op_.is_method = false;
    return *this;
  }
  OpBuilder& method_only() {
    op_.is_function = false;
    return *this;
  }
  OpBuilder& internal() {
    op_.is_method = op_.is_function = false;
    return *this;
  }  // C++ only
  // A composite that reads values or memory: under vmap it runs once for every example.
  OpBuilder& example_by_example() {
    op_.intercepted |= kWrapped;
    return *this;
  }
  // The kernel serves other devices too: it touches no data but through ops/device_loops.h.
  OpBuilder& on_devices() {
    op_.kernel[static_cast<int>(DeviceType::CUDA)] = op_.kernel[0];
    return *this;
  }
  OpBuilder& data(const void* family_data) {
    op_.family_data = family_data;
    return *this;
  }
  Op& op() { return op_; }

  // Traits. Note [Traits]
  OpBuilder& tangent(Tangent rule) {
    op_.traits.tangent = rule;
    return *this;
  }
  OpBuilder& linear() { return tangent(Tangent::Linear); }
  OpBuilder& batching(Batching rule) {
    op_.traits.batching = rule;
    return *this;
  }
  OpBuilder& autocast(Cast cpu, Cast cuda) {
    op_.traits.autocast_cpu = cpu;
    op_.traits.autocast_cuda = cuda;
    return *this;
  }
  OpBuilder& autocast(Cast both) { return autocast(both, both); }
  OpBuilder& may_return_input() {
    op_.traits.aliasing = Aliasing::MayReturnInput;
    return *this;
  }
  OpBuilder& out_apart(uint64_t operands) {
    op_.traits.out_overlap.apart = operands;
    return *this;
  }
  OpBuilder& out_strictly_apart(uint64_t operands) {
    op_.traits.out_overlap.strict = true;
    return out_apart(operands);
  }
  OpBuilder& out_accumulates() {
    op_.traits.out_overlap.accumulates = true;
    return *this;
  }
  OpBuilder& numbers(Numbers which) {
    op_.traits.numbers = which;
    return *this;
  }
  OpBuilder& on_quantized(OnQuantized rule) {
    op_.traits.on_quantized = rule;
    return *this;
  }
  OpBuilder& writes_unmarked(uint64_t parameters, int where = -1) {
    op_.traits.unmarked_writes = {parameters, where};
    return *this;
  }
  OpBuilder& special_dtypes() {
    op_.traits.special_dtypes = true;
    return *this;
  }
  OpBuilder& random() {
    op_.traits.random = true;
    return *this;
  }
  OpBuilder& uninitialized() {
    op_.traits.uninitialized = true;
    return *this;
  }
  OpBuilder& elementwise() {
    op_.traits.elementwise = true;
    return *this;
  }
  OpBuilder& same_elements() {
    op_.traits.same_elements = true;
    return *this;
  }
  OpBuilder& examples(uint64_t parameters) {
    op_.traits.examples = parameters;
    return *this;
  }
  OpBuilder& reshapes(Reshaping what) {
    op_.traits.reshaping = what;
    return *this;
  }
  OpBuilder& layer(LayerOperands operands) {
    op_.traits.layer = operands;
    return *this;
  }
  OpBuilder& overlapping() {
    op_.traits.overlapping = true;
    return *this;
  }
  OpBuilder& gives_bool() {
    op_.traits.gives_bool = true;
    return *this;
  }
  OpBuilder& reads_values() {
    op_.traits.reads_values = true;
    return *this;
  }
  OpBuilder& limits() {
    op_.traits.limits = true;
    return *this;
  }
  OpBuilder& absent_in_pytorch() {
    op_.traits.absent_in_pytorch = true;
    return *this;
  }
  OpBuilder& kept_whole() {
    op_.traits.kept_whole = true;
    return *this;
  }
  OpBuilder& variadic() {
    op_.is_variadic = true;
    return *this;
  }
  OpBuilder& data_dependent_shape() {
    op_.traits.data_dependent_shape = true;
    return *this;
  }
  OpBuilder& any_device(uint64_t parameters) {
    op_.traits.any_device = parameters;
    return *this;
  }
  OpBuilder& result_serves() {
    op_.derivative.result_serves = true;
    return *this;
  }
  OpBuilder& inplace_function() {
    op_.traits.inplace_function = true;
    return *this;
  }
  OpBuilder& node(const char* name) {
    op_.traits.node = name;
    return *this;
  }
  OpBuilder& node_of_number(int parameter, const char* name) {
    op_.traits.number_nodes.push_back({parameter, name});
    return *this;
  }
  OpBuilder& inplace_overload(const char* name) {
    op_.traits.overloads.inplace = name;
    return *this;
  }
  OpBuilder& out_overload(const char* name) {
    op_.traits.overloads.out = name;
    return *this;
  }
  OpBuilder& overload(const char* name) {
    op_.traits.overloads.own = name;
    return *this;
  }
  OpBuilder& number_overload(uint64_t numbers, OverloadNames names) {
    op_.traits.number_overloads.push_back({numbers, names});
    return *this;
  }
  OpBuilder& spelling(Spelling who) {
    op_.traits.spelling = who;
    return *this;
  }
  // A composite that PyTorch differentiates as one operator.
  OpBuilder& one_node() {
    op_.traits.one_node = true;
    op_.intercepted |= kAutograd;
    return *this;
  }

 private:
  Op& op_;
};

class Table {
  // What sees the calls that a composite makes, and so need not see the composite itself.
  static constexpr uint32_t kFollowed =
      kAutograd | kForwardGrad | kWrapped | kLowered | kSpecialElements | kPythonDispatch;

 public:
  // A kernel operator: the CPU kernel (also used for meta tensors where the family knows shapes without
  // data).
  template <class R, class... A>
  OpBuilder op(Fn<R(A...)>& handle, const char* schema,
               std::type_identity_t<R (*)(const Call&, A...)> cpu_kernel) {
    Op& op = add(schema, &detail::Signature<R, A...>::trampoline, sizeof...(A));
    op.kernel[0] = reinterpret_cast<const void*>(cpu_kernel);
    handle.bind(&op);
    return OpBuilder(op);
  }
  // A composite: written in public operators, the same on every device; autograd sees what it calls.
  template <class R, class... A>
  OpBuilder composite(Fn<R(A...)>& handle, const char* schema,
                      std::type_identity_t<R (*)(const Call&, A...)> body) {
    OpBuilder r = op(handle, schema, body);
    r.op().kernel.fill(reinterpret_cast<const void*>(body));
    r.op().intercepted &= ~kFollowed;
    return r.family(Family::Composite);
  }
  // A composite that no C++ code calls by handle.
  template <class R, class... A>
  OpBuilder composite(const char* schema, R (*body)(const Call&, A...)) {
    Op& op = add(schema, &detail::Signature<R, A...>::trampoline, sizeof...(A));
    op.kernel.fill(reinterpret_cast<const void*>(body));
    op.intercepted &= ~kFollowed;
    return OpBuilder(op).family(Family::Composite);
  }

  // An operator that a program defines while it runs; `kernel` serves every device. The text must live on.
  Op& define(const char* schema, Op::Trampoline trampoline, const void* kernel);

  // Gives an operator, composite or not, a rule for sparse operands.
  template <class R, class... A>
  void sparse(const Fn<R(A...)>& handle, std::type_identity_t<R (*)(const Call&, A...)> kernel) {
    Op& op = ops_[handle.op().id];
    op.sparse_kernel = reinterpret_cast<const void*>(kernel);
    op.intercepted |= kSpecialElements;
  }

  // The same for quantised operands: by a rule of its own, or by one of those that serve many operators.
  template <class R, class... A>
  void quantized(const Fn<R(A...)>& handle, std::type_identity_t<R (*)(const Call&, A...)> kernel) {
    Op& op = ops_[handle.op().id];
    op.quantized_kernel = reinterpret_cast<const void*>(kernel);
    op.intercepted |= kSpecialElements;
  }
  template <class R, class... A>
  void quantized(const Fn<R(A...)>& handle, OnQuantized rule) {
    ops_[handle.op().id].traits.on_quantized = rule;
  }

  // All records in registration order; overloads of one name keep that order when arguments are matched.
  const std::deque<Op>& ops() const { return ops_; }
  std::deque<Op>& ops() { return ops_; }
  std::vector<const Op*> find(std::string_view space, std::string_view name) const;
  void freeze();  // completes the traits and checks every record

 private:
  static constexpr size_t kAnyLength = ~size_t{0};
  Op& add(const char* schema, Op::Trampoline trampoline, size_t parameters);
  std::deque<Op> ops_;
};

// The one table; filled on first use by register_all_operators (transform/operator_table.cpp).
const Table& operator_table();
Table& mutable_operator_table();

}  // namespace rushlight
