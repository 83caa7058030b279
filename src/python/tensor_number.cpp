// Arithmetic, comparison and conversion slots. Plain operands go straight to the gate; everything else
// (subclasses, odd types, modes) takes the operator callable's way.
#include <bit>

#include "python/call_note.h"
#include "python/factory.h"
#include "python/op_function.h"
#include "python/seen_through.h"

namespace rushlight::python {

// --- binary

// An operator of two tensors whose further parameters have defaults, resolved on first use.
struct BinarySlot {
  const char* name;
  // Tensor's special methods that PyTorch writes in Python, so that __torch_function__ is told of them and
  // not of the operator behind them.
  struct {
    const char *forward = nullptr, *reflected = nullptr, *inplace = nullptr;
  } special = {};
  OpFunction *method = nullptr, *inplace = nullptr, *function = nullptr;
  const Op* op = nullptr;
  Value defaults[2];
  std::atomic<bool> ready{false};
  // Typed, so unboxed, handles for the two signatures that arithmetic has; with the defaults of the second.
  enum class Form { Plain, Scaled, Other } form = Form::Other;
  FnBase<Tensor, const Tensor&, const Tensor&> plain;
  FnBase<Tensor, const Tensor&, const Tensor&, const Scalar&> scaled;
  Scalar alpha;

  void resolve() {
    static constinit ShortLock lock;
    const std::lock_guard guard(lock);
    if (ready.load(std::memory_order_relaxed)) return;
    look_up();
    ready.store(true, std::memory_order_release);
  }

 private:
  void look_up() {
    method = find_method(name);
    inplace = find_method(str(name, "_"));
    function = find_function("", name);
    if (!method) return;
    for (const Op* candidate : method->set->ops) {
      const auto& p = candidate->schema.parameters;
      if (p.size() < 2 || p.size() > 4 || p[0].type != Tag::Tensor || p[1].type != Tag::Tensor) continue;
      op = candidate;
      for (size_t i = 2; i < p.size(); ++i) {
        if (!p[i].has_default)
          op = nullptr;
        else
          defaults[i - 2] = p[i].default_value;
      }
      if (op) return choose_form();
    }
  }
  void choose_form() {
    const auto& p = op->schema.parameters;
    if (op->schema.returns.size() != 1 || op->schema.returns[0].type != Tag::Tensor) return;
    if (p.size() == 2) {
      form = Form::Plain;
      plain.bind(op);
    } else if (p.size() == 3 && p[2].type == Tag::Scalar) {
      form = Form::Scaled;
      scaled.bind(op);
      alpha = defaults[0].scalar();
    }
  }
};

static bool is_plain_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || (parameter_type && Py_TYPE(o) == parameter_type);
}
static bool is_plain_number(PyObject* o) {
  return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o);
}

static bool is_type_error() { return PyErr_ExceptionMatches(PyExc_TypeError); }

// PyTorch: what does not parse may still be known to the other operand's type.
static PyObject* or_not_implemented(PyObject* result) {
  if (result || !is_type_error()) return result;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

static PyObject* missing(const char* name) {
  PyErr_Format(PyExc_NotImplementedError, "no operator '%s' is registered", name);
  return nullptr;
}

static PyObject* call_slowly(OpFunction* f, const char* name, PyObject* a, PyObject* b) {
  if (!f) return missing(name);
  PyObject* args[] = {a, b};
  return guard([&] { return call_operator(f, args, 2); });
}

// What overrides make of Tensor.`special`; null when it has no name or there are none.
static PyObject* call_special(const char* special, PyObject* self, PyObject* other = nullptr) {
  if (!special) return nullptr;
  return guard([&]() -> PyObject* {
    PyRef callable(check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), special)));
    PyObject* args[] = {self, other};
    return dispatch_torch_function(callable.get(), CallArgs{args, other ? 2 : 1, nullptr});
  });
}

static bool is_small(const Tensor& t) { return t.numel() < (1 << 15); }

static Tensor call_typed(const BinarySlot& slot, const Tensor& a, const Tensor& b) {
  return slot.form == BinarySlot::Form::Plain ? slot.plain.call(a, b) : slot.scaled.call(a, b, slot.alpha);
}

static Tensor call_slot(const BinarySlot& slot, const Tensor& a, const Tensor& b, bool inplace) {
  const Value values[4] = {Value(a), Value(b), slot.defaults[0], slot.defaults[1]};
  Results results;
  call_boxed(*slot.op, values, results, inplace ? &a : nullptr, inplace);
  return std::move(results.tensors[0]);
}

static Tensor call_gate(const BinarySlot& slot, const Tensor& a, const Tensor& b, bool inplace) {
  return inplace || slot.form == BinarySlot::Form::Other ? call_slot(slot, a, b, inplace)
                                                         : call_typed(slot, a, b);
}

static PyObject* run_fast(const BinarySlot& slot, const Tensor& a, const Tensor& b, bool inplace) {
  if (is_small(a) && is_small(b)) return wrap(call_gate(slot, a, b, inplace));
  Tensor result;
  {
    GilRelease released;
    result = call_gate(slot, a, b, inplace);
  }
  return wrap(std::move(result));
}

static PyObject* call_fast(const BinarySlot& slot, const Tensor& a, const Tensor& b, bool inplace) {
  try {
    return run_fast(slot, a, b, inplace);
  } catch (const Error& e) {
    const Value values[4] = {Value(a), Value(b), slot.defaults[0], slot.defaults[1]};
    throw ErrorInCall(e, describe_call(*slot.op, values, inplace));
  }
}

// What is no sum of plain operands: overrides, other types, modes.
[[gnu::noinline]] static PyObject* binary_slowly(BinarySlot& slot, PyObject* a, PyObject* b, bool inplace,
                                                 bool commuted) {
  const bool forward = is_tensor(a);
  PyObject* told = commuted  ? nullptr
                   : forward ? call_special(inplace ? slot.special.inplace : slot.special.forward, a, b)
                             : call_special(slot.special.reflected, b, a);
  if (told || PyErr_Occurred()) return or_not_implemented(told);
  OpFunction* f = inplace ? slot.inplace : forward ? slot.method : slot.function;
  return or_not_implemented(call_slowly(f, slot.name, a, b));
}

// `a` is a tensor unless `swapped`; then `b` is, and `a` a number that the operator takes on its left.
template <bool commuted = false>
static PyObject* binary(BinarySlot& slot, PyObject* a, PyObject* b, bool inplace = false) {
  if (!slot.ready.load(std::memory_order_acquire)) [[unlikely]]
    slot.resolve();
  if (slot.op && !function_state.mode_active()) [[likely]] {
    try {
      if (is_plain_tensor(a)) {
        if (is_plain_tensor(b)) return call_fast(slot, tensor_of(a), tensor_of(b), inplace);
        if (is_plain_number(b)) return call_fast(slot, tensor_of(a), number_tensor(b), inplace);
      } else if (is_plain_number(a) && is_plain_tensor(b)) {
        return call_fast(slot, number_tensor(a), tensor_of(b), false);
      }
    } catch (...) {
      set_error_from_exception();
      return or_not_implemented(nullptr);
    }
  }
  return binary_slowly(slot, a, b, inplace, commuted);
}

// Commutative operators put the tensor first, as PyTorch's reflected methods do, which are the operator's.
static PyObject* commutative(BinarySlot& slot, PyObject* a, PyObject* b) {
  return is_tensor(a) ? binary(slot, a, b) : binary<true>(slot, b, a);
}

static BinarySlot add_slot{"add"}, sub_slot{"sub"}, rsub_slot{"rsub", {"__rsub__"}}, mul_slot{"mul"},
    div_slot{"div"}, floor_slot{"floor_divide", {"__floordiv__", "__rfloordiv__"}},
    remainder_slot{"remainder", {nullptr, "__rmod__"}}, pow_slot{"pow", {"__pow__", "__rpow__", "__ipow__"}},
    matmul_slot{"matmul", {nullptr, "__rmatmul__"}},
    and_slot{"bitwise_and", {"__and__", nullptr, "__iand__"}},
    or_slot{"bitwise_or", {"__or__", nullptr, "__ior__"}},
    xor_slot{"bitwise_xor", {"__xor__", nullptr, "__ixor__"}},
    lshift_slot{"bitwise_left_shift", {"__lshift__", "__rlshift__", "__ilshift__"}},
    rshift_slot{"bitwise_right_shift", {"__rshift__", "__rrshift__", "__irshift__"}};
static BinarySlot comparison_slots[] = {{"lt"}, {"le"}, {"eq", {"__eq__"}}, {"ne"}, {"gt"}, {"ge"}};
static const char *const inversion = "__invert__", *const reflected_division = "__rtruediv__";

PyObject* operator_methods() {
  PyRef names(check(PyList_New(0)));
  const auto add = [&](const char* name) {
    if (!name) return;
    const PyRef text(check(PyUnicode_FromString(name)));
    check(PyList_Append(names.get(), text.get()));
  };
  for (const BinarySlot* slot : {&rsub_slot, &floor_slot, &remainder_slot, &pow_slot, &matmul_slot, &and_slot,
                                 &or_slot, &xor_slot, &lshift_slot, &rshift_slot, &comparison_slots[Py_EQ]}) {
    add(slot->special.forward);
    add(slot->special.reflected);
    add(slot->special.inplace);
  }
  add(inversion);
  add(reflected_division);
  return names.release();
}

// Bytes would append the memory of any buffer, and a tensor is one.
static PyObject* refuse_bytes(PyObject* bytes) {
  PyErr_Format(PyExc_TypeError, "can't concat Tensor to %s", Py_TYPE(bytes)->tp_name);
  return nullptr;
}
static PyObject* nb_add(PyObject* a, PyObject* b) {
  if (PyBytes_Check(a) || PyByteArray_Check(a)) [[unlikely]]
    return refuse_bytes(a);
  return commutative(add_slot, a, b);
}
static PyObject* nb_mul(PyObject* a, PyObject* b) { return commutative(mul_slot, a, b); }
static PyObject* nb_and(PyObject* a, PyObject* b) { return commutative(and_slot, a, b); }
static PyObject* nb_or(PyObject* a, PyObject* b) { return commutative(or_slot, a, b); }
static PyObject* nb_xor(PyObject* a, PyObject* b) { return commutative(xor_slot, a, b); }
static PyObject* nb_sub(PyObject* a, PyObject* b) {
  return is_tensor(a) ? binary(sub_slot, a, b) : binary(rsub_slot, b, a);
}
static PyObject* nb_floor(PyObject* a, PyObject* b) { return binary(floor_slot, a, b); }
static PyObject* nb_remainder(PyObject* a, PyObject* b) { return binary(remainder_slot, a, b); }
static PyObject* nb_matmul(PyObject* a, PyObject* b) { return binary(matmul_slot, a, b); }
static PyObject* nb_lshift(PyObject* a, PyObject* b) { return binary(lshift_slot, a, b); }
static PyObject* nb_rshift(PyObject* a, PyObject* b) { return binary(rshift_slot, a, b); }

static PyObject* call_unary(const char* name, PyObject* a);

// What is no tensor, over a tensor, is the reciprocal times it, as PyTorch rounds it; arrays multiply
// themselves.
static PyObject* nb_div(PyObject* a, PyObject* b) {
  if (is_tensor(a)) return binary(div_slot, a, b);
  PyObject* told = call_special(reflected_division, b, a);
  if (told || PyErr_Occurred()) return or_not_implemented(told);
  PyRef inverse(call_unary("reciprocal", b));
  if (!inverse) return or_not_implemented(nullptr);
  if (is_number(a)) return binary(mul_slot, inverse.get(), a);
  return or_not_implemented(PyNumber_Multiply(inverse.get(), a));
}
static PyObject* nb_pow(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(pow_slot, a, b);
}

// Classes in Python fill the slot of `sequence += other` with this function, too, and there NotImplemented
// would be the result. So the other operand is asked here.
static PyObject* nb_iadd(PyObject* a, PyObject* b) {
  const PyRef result(binary(add_slot, a, b, true));
  if (result.get() != Py_NotImplemented) return Py_XNewRef(result.get());
  PyObject* const sum = PyNumber_Add(a, b);
  if (sum || !is_type_error()) return sum;
  return guard([&]() -> PyObject* {
    PythonError error;
    const std::string text = error.what();
    if (constexpr std::string_view before = "unsupported operand type(s) for +: "; text.starts_with(before))
      PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for +=: %s", text.c_str() + before.size());
    else
      error.restore();
    return nullptr;
  });
}
static PyObject* nb_isub(PyObject* a, PyObject* b) { return binary(sub_slot, a, b, true); }
static PyObject* nb_imul(PyObject* a, PyObject* b) { return binary(mul_slot, a, b, true); }
static PyObject* nb_idiv(PyObject* a, PyObject* b) { return binary(div_slot, a, b, true); }
static PyObject* nb_ifloor(PyObject* a, PyObject* b) { return binary(floor_slot, a, b, true); }
static PyObject* nb_iremainder(PyObject* a, PyObject* b) { return binary(remainder_slot, a, b, true); }
static PyObject* nb_iand(PyObject* a, PyObject* b) { return binary(and_slot, a, b, true); }
static PyObject* nb_ior(PyObject* a, PyObject* b) { return binary(or_slot, a, b, true); }
static PyObject* nb_ixor(PyObject* a, PyObject* b) { return binary(xor_slot, a, b, true); }
static PyObject* nb_ilshift(PyObject* a, PyObject* b) { return binary(lshift_slot, a, b, true); }
static PyObject* nb_irshift(PyObject* a, PyObject* b) { return binary(rshift_slot, a, b, true); }
static PyObject* nb_ipow(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary(pow_slot, a, b, true);
}

PyObject* tensor_richcompare(PyObject* a, PyObject* b, int op) {
  // NumPy leaves comparisons with tensors to us; an array with a mask makes them itself.
  if (is_ndarray(b) && !PyObject_HasAttrString(b, "mask")) {
    PyRef other(guard([&] { return wrap(tensor_from_buffer(b)); }));
    return other ? binary(comparison_slots[op], a, other.get()) : or_not_implemented(nullptr);
  }
  return binary(comparison_slots[op], a, b);  // in the order of Py_LT ... Py_GE
}

// --- unary

static PyObject* call_unary(const char* name, PyObject* a) {
  OpFunction* f = find_method(name);
  if (!f) return missing(name);
  return guard([&] { return call_operator(f, &a, 1); });
}
static PyObject* nb_negative(PyObject* a) { return call_unary("neg", a); }
static PyObject* nb_positive(PyObject* a) { return call_unary("positive", a); }
static PyObject* nb_absolute(PyObject* a) { return call_unary("abs", a); }
static PyObject* nb_invert(PyObject* a) {
  PyObject* told = is_plain_tensor(a) && !function_state.mode_active() ? nullptr : call_special(inversion, a);
  if (told || PyErr_Occurred()) return or_not_implemented(told);
  if (!is_plain_tensor(a) || is_integral_or_bool(tensor_of(a).dtype())) return call_unary("bitwise_not", a);
  return guard([&]() -> PyObject* {
    throw_python(PyExc_TypeError,
                 "~ (operator.invert) is only implemented on integer and Boolean-type tensors, got " +
                     std::string(dtype_name(tensor_of(a).dtype())));
  });
}

// --- one element as a Python number

static Scalar only_element(PyObject* self) {
  const Tensor& t = tensor_of(self);
  RL_CHECK_VALUE(t.numel() == 1, "only one element tensors can be converted to Python scalars");
  RL_CHECK(!t->wrapping || t->storage,
           "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
           "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .");
  return read_item(t);
}

static int nb_bool(PyObject* self) {
  const Tensor& t = tensor_of(self);
  int truth = -1;
  const int status = guard_status([&] {
    if (PyRef result{override_slot("__bool__", self)}; result) {
      check(truth = PyObject_IsTrue(result.get()));
      return;
    }
    if (const PyRef inner = seen_through(self)) {
      check(truth = PyObject_IsTrue(inner.get()));
      return;
    }
    RL_CHECK(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
    RL_CHECK(t.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
    truth = only_element(self).to<bool>();
  });
  return status < 0 ? -1 : truth;
}

static PyObject* nb_int(PyObject* self) {
  return guard([&]() -> PyObject* {
    if (PyObject* result = override_slot("__int__", self)) return result;
    if (const PyRef inner = seen_through(self)) return check(PyNumber_Long(inner.get()));
    const Scalar s = only_element(self);
    if (s.is_floating()) return check(PyLong_FromDouble(s.to_double()));
    if (s.is_complex()) {
      const complex128 z = s.to<complex128>();
      RL_CHECK(z.imag() == 0, "value cannot be converted to type int64_t without overflow");
      return check(PyLong_FromDouble(z.real()));
    }
    if (s.kind() == Scalar::Kind::UInt) return PyLong_FromUnsignedLongLong(s.to<uint64_t>());
    return PyLong_FromLongLong(s.to_int());
  });
}
static PyObject* nb_float(PyObject* self) {
  return guard([&]() -> PyObject* {
    if (PyObject* result = override_slot("__float__", self)) return result;
    if (const PyRef inner = seen_through(self)) return check(PyNumber_Float(inner.get()));
    const Scalar s = only_element(self);
    RL_CHECK(!s.is_complex() || s.to<complex128>().imag() == 0,
             "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(s.to_double());
  });
}
static PyObject* nb_index(PyObject* self) {
  return guard([&]() -> PyObject* {
    if (PyObject* result = override_slot("__index__", self)) return result;
    const Tensor& t = tensor_of(self);
    RL_CHECK_TYPE(is_integral_or_bool(t.dtype()) && t.numel() == 1,
                  "only integer tensors of a single element can be converted to an index");
    return nb_int(self);
  });
}

PyNumberMethods tensor_number = {
    .nb_add = nb_add,
    .nb_subtract = nb_sub,
    .nb_multiply = nb_mul,
    .nb_remainder = nb_remainder,
    .nb_power = nb_pow,
    .nb_negative = nb_negative,
    .nb_positive = nb_positive,
    .nb_absolute = nb_absolute,
    .nb_bool = nb_bool,
    .nb_invert = nb_invert,
    .nb_lshift = nb_lshift,
    .nb_rshift = nb_rshift,
    .nb_and = nb_and,
    .nb_xor = nb_xor,
    .nb_or = nb_or,
    .nb_int = nb_int,
    .nb_float = nb_float,
    .nb_inplace_add = nb_iadd,
    .nb_inplace_subtract = nb_isub,
    .nb_inplace_multiply = nb_imul,
    .nb_inplace_remainder = nb_iremainder,
    .nb_inplace_power = nb_ipow,
    .nb_inplace_lshift = nb_ilshift,
    .nb_inplace_rshift = nb_irshift,
    .nb_inplace_and = nb_iand,
    .nb_inplace_xor = nb_ixor,
    .nb_inplace_or = nb_ior,
    .nb_floor_divide = nb_floor,
    .nb_true_divide = nb_div,
    .nb_inplace_floor_divide = nb_ifloor,
    .nb_inplace_true_divide = nb_idiv,
    .nb_index = nb_index,
    .nb_matrix_multiply = nb_matmul,
};

}  // namespace rushlight::python
