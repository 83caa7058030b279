// What TorchScript asks of tensors beside the operators of the table, and of the state of this thread.
#include <algorithm>

#include "frontend/torchscript/arguments.h"
#include "rushlight/autograd.h"
#include "transform/autocast.h"

namespace rushlight::jit {
namespace {

const Tensor& tensor(Arguments& a) { return a[0].toTensor(); }
bool is_autocast() { return autocast_state.cpu.enabled || autocast_state.cuda.enabled; }
IValue numbers(IntArrayRef list) { return IValue(list); }

std::optional<Device> device_of(const IValue& v) {
  if (v.isString()) return Device::parse(v.toStringRef());
  return v.toOptional<Device>();
}
std::optional<MemoryFormat> format_of(const IValue& v) {
  return v.isInt() ? std::optional(static_cast<MemoryFormat>(v.toInt() & 3)) : std::nullopt;
}

// to(dtype), to(device, dtype), to(other), to(dtype, layout, device, pin_memory), each with non_blocking,
// copy and memory_format behind.
IValue to(Arguments& a) {
  const Tensor& x = tensor(a);
  std::optional<DType> dtype;
  std::optional<Device> device;
  size_t at = 1;
  const auto next_is = [&](auto test) { return at < a.size() && test(a[at]); };
  const auto is_dtype = [](const IValue& v) { return v.isNone() || v.isInt(); };
  if (next_is([](const IValue& v) { return v.isTensor(); })) {
    dtype = a[at].toTensor().dtype(), device = a[at].toTensor().device();
    ++at;
  } else {
    if (next_is([](const IValue& v) { return v.isDevice() || v.isString(); })) device = device_of(a[at++]);
    if (next_is(is_dtype)) {
      if (a[at].isInt()) dtype = dtype_of_number(a[at].toInt());
      ++at;
    }
    // With a layout, a device and pin_memory between.
    if (!device && at + 3 <= a.size() && is_dtype(a[at]) && (a[at + 1].isDevice() || a[at + 1].isNone())) {
      device = device_of(a[at + 1]);
      at += 3;
    }
  }
  const auto rest = [&](size_t i, std::string_view name) { return a.find(at + i, name); };
  if (const IValue* v = a.find(SIZE_MAX, "dtype"); v && v->isInt()) dtype = dtype_of_number(v->toInt());
  if (const IValue* v = a.find(SIZE_MAX, "device")) device = device_of(*v);
  const IValue *non_blocking = rest(0, "non_blocking"), *copy = rest(1, "copy"),
               *format = rest(2, "memory_format");
  return IValue(x.to(device.value_or(x.device()), dtype.value_or(x.dtype()),
                     non_blocking && truth(*non_blocking), copy && truth(*copy),
                     format ? format_of(*format) : std::nullopt));
}

// Numbers, or lists of them to any depth.
void collect(const IValue& v, size_t depth, std::vector<int64_t>& sizes, std::vector<Scalar>& out) {
  if (!v.isList() && !v.isTuple()) {
    RL_CHECK_VALUE(depth == sizes.size(), "tensor: the lists are of different depths");
    return out.push_back(v.isTensor() ? v.toTensor().item() : v.toScalar());
  }
  const auto& items = v.isList() ? v.toListRef() : v.toTupleRef().items;
  if (depth == sizes.size()) {
    RL_CHECK_VALUE(out.empty() && depth < 64, "tensor: the lists are of different depths");
    sizes.push_back(std::ssize(items));
  }
  RL_CHECK_VALUE(sizes[depth] == std::ssize(items), "tensor: expected ", sizes[depth], " elements, but got ",
                 items.size());
  for (const IValue& item : items) collect(item, depth + 1, sizes, out);
}
Tensor made(const IValue& data) {
  if (data.isTensor()) return data.toTensor().detach().clone();
  std::vector<int64_t> sizes;
  std::vector<Scalar> elements;
  collect(data, 0, sizes, elements);
  DType dtype = get_default_dtype();
  if (!elements.empty()) {
    const Scalar& widest =
        *std::ranges::max_element(elements, {}, [](const Scalar& s) { return s.category(); });
    dtype = widest.dtype();
  } else if (data.isIntList() || data.isBoolList()) {
    dtype = data.isIntList() ? DType::Int64 : DType::Bool;
  }
  const Tensor t = empty_tensor(sizes, dtype);
  visit_dtype(Concat<TypeList<bool, int64_t>, Concat<FloatTypes, ComplexTypes>>{}, dtype, "tensor",
              [&](auto element) {
                auto* to = static_cast<decltype(element)*>(t.data_ptr());
                for (const Scalar& s : elements) *to++ = s.to<decltype(element)>();
              });
  return t;
}
IValue new_tensor(Arguments& a, bool fresh) {
  Tensor t = a[0].isTensor() && !fresh ? a[0].toTensor() : made(a[0]);
  const IValue *dtype = a.find(1, "dtype"), *device = a.find(2, "device"), *grad = a.find(3, "requires_grad");
  if (dtype && dtype->isInt()) t = t.to(dtype_of_number(dtype->toInt()));
  if (device && !device->isNone()) t = t.to(*device_of(*device));
  return IValue(fresh && grad && truth(*grad) ? t.set_requires_grad(true) : t);
}
// Lists as deep as the tensor has dimensions, of a number each.
IValue listed(const Tensor& x) {
  if (x.dim() == 0) return IValue(x.item());
  IValue::List items;
  for (int64_t i = 0; i < x.size(0); ++i) items.push_back(listed(x.select(0, i)));
  const DType dtype = x.dtype();
  const auto kind = x.dim() > 1            ? ivalue::Elements::Any
                    : dtype == DType::Bool ? ivalue::Elements::Bool
                    : is_complex(dtype)    ? ivalue::Elements::ComplexDouble
                    : is_floating(dtype)   ? ivalue::Elements::Double
                                           : ivalue::Elements::Int;
  return IValue(std::move(items), kind);
}
IValue is_contiguous(Arguments& a) {
  const IValue* format = a.find(1, "memory_format");
  return IValue(format && format->isInt() ? tensor(a).is_contiguous(*format_of(*format))
                                          : tensor(a).is_contiguous());
}
IValue size(Arguments& a) {
  return a.size() > 1 ? IValue(tensor(a).size(to_integer(a[1]))) : numbers(tensor(a).sizes());
}
IValue stride(Arguments& a) {
  return a.size() > 1 ? IValue(tensor(a).stride(to_integer(a[1]))) : numbers(tensor(a).strides());
}
IValue make_device(Arguments& a) {
  if (a[0].isDevice()) return a[0];
  const std::string text = a[0].toStringRef();
  return IValue(Device::parse(a.size() > 1 ? text + ":" + std::to_string(a[1].toInt()) : text));
}
IValue set_grad(Arguments& a) {
  GradMode::set(truth(a[0]));
  return IValue();
}
IValue unpack_number(Arguments& a) { return a[0].isTensor() ? IValue(a[0].toTensor().item()) : a[0]; }
template <bool Value>
IValue always(Arguments&) {
  return IValue(Value);
}
#define RL_OF_TENSOR(name, expression) {name, [](Arguments& a) { return IValue(tensor(a).expression); }}

}  // namespace

std::vector<NamedBuiltin> tensor_builtins() {
  return {
      {"aten::to", to},
      {"aten::size", size},
      {"aten::stride", stride},
      {"aten::sym_size", size},
      {"aten::is_contiguous", is_contiguous},
      {"aten::tensor", [](Arguments& a) { return new_tensor(a, true); }},
      {"aten::as_tensor", [](Arguments& a) { return new_tensor(a, false); }},
      {"prim::tolist", [](Arguments& a) { return listed(tensor(a)); }},
      {"prim::NumToTensor", [](Arguments& a) { return a[0].isTensor() ? a[0] : IValue(made(a[0])); }},
      {"aten::item", unpack_number},
      {"aten::ScalarImplicit", unpack_number},
      {"aten::ComplexImplicit", unpack_number},
      {"aten::device", make_device},
      {"python::device", make_device},
      RL_OF_TENSOR("aten::dim", dim()),
      RL_OF_TENSOR("aten::numel", numel()),
      RL_OF_TENSOR("aten::element_size", element_size()),
      RL_OF_TENSOR("aten::storage_offset", storage_offset()),
      RL_OF_TENSOR("aten::is_floating_point", is_floating_point()),
      RL_OF_TENSOR("aten::is_complex", is_complex()),
      RL_OF_TENSOR("aten::is_leaf", is_leaf()),
      RL_OF_TENSOR("aten::cpu", cpu()),
      RL_OF_TENSOR("aten::cuda", cuda()),
      RL_OF_TENSOR("aten::get_device", get_device()),
      RL_OF_TENSOR("prim::device", device()),
      RL_OF_TENSOR("prim::ndim", dim()),
      RL_OF_TENSOR("prim::is_cuda", is_cuda()),
      RL_OF_TENSOR("prim::is_meta", is_meta()),
      RL_OF_TENSOR("prim::is_sparse", is_sparse()),
      RL_OF_TENSOR("prim::is_cpu", device().is_cpu()),
      RL_OF_TENSOR("prim::requires_grad", requires_grad()),
      RL_OF_TENSOR("prim::data", data()),
      RL_OF_TENSOR("prim::itemsize", element_size()),
      RL_OF_TENSOR("prim::T", T()),
      RL_OF_TENSOR("prim::real", real()),
      RL_OF_TENSOR("prim::imag", imag()),
      {"prim::mT", [](Arguments& a) { return call_table("aten::transpose", a[0], -2, -1); }},
      {"prim::dtype", [](Arguments& a) { return IValue(number_of_dtype(tensor(a).dtype())); }},
      {"prim::layout", [](Arguments& a) { return IValue(static_cast<int64_t>(tensor(a).layout())); }},
      {"prim::shape", [](Arguments& a) { return numbers(tensor(a).sizes()); }},
      {"prim::grad",
       [](Arguments& a) { return tensor(a).grad().defined() ? IValue(tensor(a).grad()) : IValue(); }},
      {"prim::type",
       [](Arguments& a) { return IValue(std::string(device_type_name(a[0].toDevice().type()))); }},
      {"prim::index",
       [](Arguments& a) {
         return a[0].toDevice().has_index() ? IValue(int64_t{a[0].toDevice().index()}) : IValue();
       }},
      {"prim::is_quantized", always<false>},
      {"prim::is_mkldnn", always<false>},
      {"prim::is_xla", always<false>},
      {"prim::is_xpu", always<false>},
      {"prim::is_mps", always<false>},
      {"prim::is_nested", always<false>},
      {"prim::is_vulkan", always<false>},
      {"prim::is_ipu", always<false>},
      RL_OF_TENSOR("aten::is_signed", is_signed()),
      RL_OF_TENSOR("aten::is_inference", is_inference()),
      RL_OF_TENSOR("aten::data", data()),
      RL_OF_TENSOR("aten::is_nonzero", item().toBool()),
      RL_OF_TENSOR("aten::detach_", detach_()),
      {"aten::is_same_size",
       [](Arguments& a) { return IValue(tensor(a).sizes() == a[1].toTensor().sizes()); }},
      {"aten::requires_grad_",
       [](Arguments& a) { return IValue(tensor(a).requires_grad_(a.size() < 2 || truth(a[1]))); }},
      {"aten::is_scripting", always<true>},
      {"aten::is_grad_enabled", [](Arguments&) { return IValue(GradMode::is_enabled()); }},
      {"aten::set_grad_enabled", set_grad},
      {"aten::is_autocast_enabled", [](Arguments&) { return IValue(is_autocast()); }},
      {"aten::is_autocast_cpu_enabled", [](Arguments&) { return IValue(is_autocast()); }},
      {"aten::manual_seed",
       [](Arguments& a) {
         manual_seed(static_cast<uint64_t>(a[0].toInt()));
         return IValue();
       }},
  };
}

}  // namespace rushlight::jit
