// What code that no compiler has lowered asks of values: items of anything that can be gone through, places
// of tensors in brackets, and assignments with an operator.
#include "frontend/torchscript/sequences.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace rushlight::jit {
namespace {

const Callee& callee(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, Callee, std::less<>> known;
  const std::lock_guard lock(mutex);
  auto found = known.find(name);
  if (found == known.end()) found = known.emplace(std::string(name), find_callee("aten", name)).first;
  return found->second;
}
template <class... T>
IValue called(std::string_view name, const T&... values) {
  Arguments arguments{{IValue(values)...}, {}};
  return call(callee(name), arguments);
}

// The view that numbers and slices take of a tensor; tensors that index it are left in `indices`.
IValue taken(IValue base, const std::vector<Place>& places, IValue::List& indices) {
  int64_t dim = 0;
  for (size_t n = 0; n < places.size(); ++n) {
    const Place& place = places[n];
    if (place.kind == Place::Kind::Rest) {
      dim = 0;
      for (size_t i = n + 1; i < places.size(); ++i)
        dim -= places[i].kind == Place::Kind::Slice || !places[i].value.isNone();
      dim += base.toTensor().dim();
      indices.resize(static_cast<size_t>(std::max<int64_t>(dim, 0)));
    } else if (place.kind == Place::Kind::Slice) {
      base = called("slice", base, IValue(dim++), place.value, place.stop,
                    place.step.isNone() ? IValue(int64_t{1}) : place.step);
      indices.emplace_back();
    } else if (place.value.isNone()) {
      base = called("unsqueeze", base, IValue(dim++));
      indices.emplace_back();
    } else if (place.value.isInt()) {
      base = called("select", base, IValue(dim), place.value);
    } else {
      indices.push_back(place.value.isTensor() ? place.value : called("tensor", place.value));
      ++dim;
    }
  }
  while (!indices.empty() && indices.back().isNone()) indices.pop_back();
  return base;
}

IValue enumerated(Arguments& a) {
  IValue::List out;
  int64_t number = a.size() > 1 ? to_integer(a[1]) : 0;
  for (IValue& item : items_of(a[0]))
    out.emplace_back(IValue::Tuple{{IValue(number++), std::move(item)}, {}, {}});
  return IValue(std::move(out));
}
IValue zipped(Arguments& a) {
  std::vector<IValue::List> columns;
  size_t count = 0;
  for (const IValue& value : a.values) {
    columns.push_back(items_of(value));
    count = columns.size() == 1 ? columns[0].size() : std::min(count, columns.back().size());
  }
  IValue::List out;
  for (size_t i = 0; i < count; ++i) {
    IValue::List row;
    for (const IValue::List& column : columns) row.push_back(column[i]);
    out.emplace_back(IValue::Tuple{std::move(row), {}, {}});
  }
  return IValue(std::move(out));
}
IValue reversed(Arguments& a) {
  IValue::List out = items_of(a[0]);
  std::ranges::reverse(out);
  return IValue(std::move(out));
}
IValue as_tuple(Arguments& a) { return IValue(IValue::Tuple{items_of(a[0]), {}, {}}); }
IValue as_list(Arguments& a) {
  if (!a.size()) return IValue(IValue::List());
  if (!a[0].isList()) return IValue(items_of(a[0]));
  return called("list", a[0]);
}

}  // namespace

IValue::List items_of(const IValue& value) {
  IValue::List out;
  if (value.isInt()) {  // range(n)
    for (int64_t i = 0; i < value.toInt(); ++i) out.emplace_back(i);
  } else if (value.isTensor()) {
    for (int64_t i = 0; i < value.toTensor().size(0); ++i)
      out.push_back(called("select", value, IValue(int64_t{0}), IValue(i)));
  } else if (value.isList()) {
    out = value.toListRef();
  } else if (value.isTuple()) {
    out = value.toTupleRef().items;
  } else if (value.isGenericDict()) {
    out = called("keys", value).toListRef();
  } else {
    out = called("list", value).toListRef();
  }
  return out;
}

IValue read_places(const IValue& base, const std::vector<Place>& places) {
  if (!base.isTensor()) {
    const Place& place = places[0];
    RL_CHECK_TYPE(places.size() == 1 && place.kind != Place::Kind::Rest, "a ", base.kind(),
                  " is not indexed like this");
    if (place.kind == Place::Kind::Value) return called("__getitem__", base, place.value);
    return called("slice", base, place.value, place.stop,
                  place.step.isNone() ? IValue(int64_t{1}) : place.step);
  }
  IValue::List indices;
  IValue view = taken(base, places, indices);
  return indices.empty() ? view : call_table("aten::index", view, IValue(std::move(indices)));
}

void write_places(const IValue& base, const std::vector<Place>& places, const IValue& value) {
  if (!base.isTensor()) {
    RL_CHECK_TYPE(places.size() == 1 && places[0].kind == Place::Kind::Value, "a part of a ", base.kind(),
                  " is not assigned to");
    called("_set_item", base, places[0].value, value);
    return;
  }
  IValue::List indices;
  const IValue view = taken(base, places, indices);
  const Tensor& like = base.toTensor();
  const IValue written = value.isTensor()
                             ? value
                             : called("tensor", value, IValue(number_of_dtype(like.dtype())), like.device());
  if (indices.empty())
    call_table("aten::copy_", view, written);
  else
    call_table("aten::index_put_", view, IValue(std::move(indices)), written);
}

IValue augmented(const std::string& name, const IValue& target, const IValue& value) {
  if (target.isTensor()) return called(name + "_", target, value);
  if (target.isList() && name == "add") {
    called("extend", target, value);
    return target;
  }
  return called(name, target, value);
}

std::vector<NamedBuiltin> sequence_builtins() {
  return {{"python::enumerate", enumerated},
          {"python::zip", zipped},
          {"python::reversed", reversed},
          {"python::tuple", as_tuple},
          {"python::list", as_list}};
}

}  // namespace rushlight::jit
