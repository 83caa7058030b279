// What TorchScript does with lists, tuples and dicts, and what text has in common with them.
#include <algorithm>

#include "frontend/torchscript/arguments.h"
#include "frontend/torchscript/instance.h"

namespace rushlight::jit {
namespace {

std::vector<IValue>& items(Arguments& a) { return a[0].list_body()->items; }
IValue list_like(const IValue& list, IValue::List items) {
  return IValue(std::move(items), list.list_body()->elements);
}
size_t position(int64_t i, size_t size) {
  const int64_t at = i < 0 ? i + static_cast<int64_t>(size) : i;
  RL_CHECK_INDEX(at >= 0 && at < static_cast<int64_t>(size), "list index out of range");
  return static_cast<size_t>(at);
}
const IValue& at_key(const IValue& dict, const IValue& key) {
  const ivalue::DictItem* found = dict.dict_body()->find(key);
  RL_CHECK_INDEX(found, "KeyError: ", to_text(key));
  return found->second;
}
const std::vector<IValue>& sequence(const IValue& v) {
  return v.isTuple() ? v.toTupleRef().items : v.toListRef();
}

IValue get_item(Arguments& a) {
  const IValue& x = a[0];
  if (x.isGenericDict()) return at_key(x, a[1]);
  if (x.isString())
    return IValue(std::string(1, x.toStringRef()[position(to_integer(a[1]), x.toStringRef().size())]));
  if (x.isTensor()) return call_table("aten::select", x, IValue(int64_t{0}), a[1]);
  if (x.isObject()) {  // of a list or dict of modules
    const IValue* found = find_attribute(*x.toObject(), a[1].isString() ? a[1].toStringRef() : to_text(a[1]));
    RL_CHECK_INDEX(found, "there is no module ", to_text(a[1]));
    return *found;
  }
  const auto& list = sequence(x);
  return list[position(to_integer(a[1]), list.size())];
}
IValue set_item(Arguments& a) {
  if (a[0].isGenericDict())
    a[0].dict_body()->put(a[1], a[2]);
  else
    items(a)[position(to_integer(a[1]), items(a).size())] = a[2];
  return a[0];
}
IValue length(Arguments& a) {
  const IValue& x = a[0];
  if (x.isTensor()) {
    RL_CHECK_TYPE(x.toTensor().dim() > 0, "len() of a 0-d tensor");
    return IValue(x.toTensor().size(0));
  }
  const size_t n = x.isString()        ? x.toStringRef().size()
                   : x.isGenericDict() ? x.toDictRef().size()
                                       : sequence(x).size();
  return IValue(static_cast<int64_t>(n));
}
IValue contains(Arguments& a) {
  if (a[0].isGenericDict()) return IValue(a[0].dict_body()->find(a[1]) != nullptr);
  if (a[0].isString()) return IValue(a[0].toStringRef().find(a[1].toStringRef()) != std::string::npos);
  return IValue(std::ranges::find(sequence(a[0]), a[1]) != sequence(a[0]).end());
}
IValue slice(Arguments& a) {
  const IValue& x = a[0];
  const auto n = static_cast<int64_t>(x.isString() ? x.toStringRef().size() : sequence(x).size());
  const int64_t step = a.size() > 3 ? a[3].toInt() : 1;
  RL_CHECK_VALUE(step != 0, "slice step cannot be zero");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto bound = [&](size_t i, int64_t otherwise) {
    if (a.size() <= i || a[i].isNone()) return otherwise;
    const int64_t v = to_integer(a[i]);
    return std::clamp(v < 0 ? v + n : v, low, high);
  };
  const int64_t begin = bound(1, step > 0 ? 0 : n - 1), end = bound(2, step > 0 ? n : -1);
  std::vector<size_t> chosen;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) chosen.push_back(static_cast<size_t>(i));
  if (x.isString()) {
    std::string out;
    for (const size_t i : chosen) out += x.toStringRef()[i];
    return IValue(std::move(out));
  }
  IValue::List out;
  for (const size_t i : chosen) out.push_back(sequence(x)[i]);
  return x.isTuple() ? IValue(IValue::Tuple{std::move(out), {}, {}}) : list_like(x, std::move(out));
}
IValue as_list(Arguments& a) {
  if (a[0].isString()) {
    IValue::List out;
    for (const char c : a[0].toStringRef()) out.emplace_back(std::string(1, c));
    return IValue(std::move(out), ivalue::Elements::String);
  }
  if (a[0].isGenericDict()) {
    IValue::List out;
    for (const auto& [key, value] : a[0].toDictRef()) out.push_back(key);
    return IValue(std::move(out));
  }
  if (a[0].isTensor()) return call_table("aten::unbind", a[0]);
  return a[0].isTuple() ? IValue(a[0].toTupleRef().items) : list_like(a[0], a[0].toListRef());
}
IValue as_dict(Arguments& a) {
  auto body = std::make_shared<ivalue::DictBody>();
  if (a.size() && a[0].isGenericDict()) return IValue(IValue::Dict(a[0].toDictRef()));
  if (a.size())
    for (const IValue& item : a[0].toListRef()) body->put(sequence(item).at(0), sequence(item).at(1));
  return IValue(body);
}
IValue pop(Arguments& a) {
  if (a[0].isGenericDict()) {
    const ivalue::DictItem* found = a[0].dict_body()->find(a[1]);
    if (!found && a.size() > 2) return a[2];
    IValue value = at_key(a[0], a[1]);
    a[0].dict_body()->erase(a[1]);
    return value;
  }
  RL_CHECK_INDEX(!items(a).empty(), "pop from empty list");
  const size_t i = position(a.size() > 1 ? a[1].toInt() : -1, items(a).size());
  IValue value = items(a)[i];
  items(a).erase(items(a).begin() + static_cast<std::ptrdiff_t>(i));
  return value;
}
IValue remove_at(Arguments& a) {
  pop(a);
  return IValue();
}
IValue insert(Arguments& a) {
  const auto n = static_cast<int64_t>(items(a).size());
  const int64_t i = a[1].toInt();
  items(a).insert(items(a).begin() + std::clamp<int64_t>(i < 0 ? i + n : i, 0, n), a[2]);
  return IValue();
}
IValue remove(Arguments& a) {
  const auto found = std::ranges::find(items(a), a[1]);
  RL_CHECK_VALUE(found != items(a).end(), "list.remove(x): x not in list");
  items(a).erase(found);
  return IValue();
}
IValue extend(Arguments& a) {
  const IValue::List more = sequence(a[1]);
  items(a).insert(items(a).end(), more.begin(), more.end());
  return IValue();
}
IValue ask_text(const char* name, Arguments& a) { return call(find_callee("text", name), a); }
IValue index(Arguments& a) {
  if (a[0].isString()) return ask_text("index", a);
  const auto found = std::ranges::find(items(a), a[1]);
  RL_CHECK_VALUE(found != items(a).end(), "'", to_text(a[1]), "' is not in list");
  return IValue(static_cast<int64_t>(found - items(a).begin()));
}
IValue count(Arguments& a) {
  if (a[0].isString()) return ask_text("count", a);
  return IValue(static_cast<int64_t>(std::ranges::count(items(a), a[1])));
}
// Objects may say by __lt__ how they are ordered, which only the program could run: those are refused.
IValue sorted(Arguments& a, IValue::List list) {
  const IValue* reverse = a.find(1, "reverse");
  std::ranges::stable_sort(list, [](const IValue& x, const IValue& y) {
    const bool tensors = x.isTensor() && y.isTensor();
    return tensors ? to_real(x) < to_real(y) : compare(x, y) < 0;
  });
  if (reverse && truth(*reverse)) std::ranges::reverse(list);
  return list_like(a[0], std::move(list));
}
IValue sort_in_place(Arguments& a) {
  items(a) = sorted(a, items(a)).toListRef();
  return IValue();
}
IValue copied(Arguments& a) {
  if (a[0].isGenericDict()) return IValue(IValue::Dict(a[0].toDictRef()));
  return list_like(a[0], a[0].toListRef());
}
IValue clear(Arguments& a) {
  if (a[0].isGenericDict())
    a[0].dict_body()->clear();
  else
    items(a).clear();
  return IValue();
}

template <class Part>
IValue from_dict(Arguments& a, Part part) {
  IValue::List out;
  for (const ivalue::DictItem& item : a[0].toDictRef()) out.push_back(part(item));
  return IValue(std::move(out));
}
IValue pair(const ivalue::DictItem& item) { return IValue(IValue::Tuple{{item.first, item.second}, {}, {}}); }
IValue get(Arguments& a) {
  const ivalue::DictItem* found = a[0].dict_body()->find(a[1]);
  return found ? found->second : a.size() > 2 ? a[2] : IValue();
}
IValue set_default(Arguments& a) {
  if (!a[0].dict_body()->find(a[1])) a[0].dict_body()->put(a[1], a[2]);
  return at_key(a[0], a[1]);
}
IValue pop_item(Arguments& a) {
  RL_CHECK_INDEX(!a[0].toDictRef().empty(), "popitem(): dictionary is empty");
  const ivalue::DictItem last = a[0].toDictRef().back();
  a[0].dict_body()->erase(last.first);
  return pair(last);
}
IValue update(Arguments& a) {
  const IValue::Dict more = a[1].toDictRef();
  for (const auto& [key, value] : more) a[0].dict_body()->put(key, value);
  return IValue();
}

IValue range(Arguments& a) {  // range() of a loop with bounds
  const int64_t begin = a.size() > 1 ? to_integer(a[0]) : 0, end = to_integer(a[a.size() > 1 ? 1 : 0]);
  const int64_t step = a.size() > 2 ? to_integer(a[2]) : 1;
  if (begin == 0 && step == 1) return IValue(end);
  RL_CHECK_VALUE(step != 0, "range() arg 3 must not be zero");
  IValue::List out;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) out.emplace_back(i);
  return IValue(std::move(out), ivalue::Elements::Int);
}
IValue range_list(Arguments& a) {
  IValue::List out;
  for (int64_t i = 0; i < a[0].toInt(); ++i) out.emplace_back(i);
  return IValue(std::move(out), ivalue::Elements::Int);
}

}  // namespace

std::vector<NamedBuiltin> container_builtins() {
  return {
      {"aten::__getitem__", get_item},
      {"aten::_set_item", set_item},
      {"aten::len", length},
      {"python::len", length},
      {"aten::__contains__", contains},
      {"aten::slice", slice, true},
      {"aten::list", as_list},
      {"aten::dict", as_dict},
      {"python::list", as_list},
      {"python::dict", as_dict},
      {"aten::append",
       [](Arguments& a) {
         items(a).push_back(a[1]);
         return a[0];
       }},
      {"aten::extend", extend},
      {"aten::insert", insert},
      {"aten::pop", pop},
      {"aten::remove", remove},
      {"aten::Delete", remove_at},
      {"aten::delete", remove_at},
      {"aten::reverse",
       [](Arguments& a) {
         std::ranges::reverse(items(a));
         return IValue();
       }},
      {"aten::clear", clear},
      {"aten::copy", copied},
      {"aten::index", index, true},
      {"aten::count", count},
      {"aten::sort", sort_in_place, true},
      {"aten::sorted", [](Arguments& a) { return sorted(a, a[0].toListRef()); }},
      {"python::sorted", [](Arguments& a) { return sorted(a, a[0].toListRef()); }},
      {"aten::keys", [](Arguments& a) { return from_dict(a, [](const auto& item) { return item.first; }); }},
      {"aten::values",
       [](Arguments& a) { return from_dict(a, [](const auto& item) { return item.second; }); }, true},
      {"aten::items", [](Arguments& a) { return from_dict(a, pair); }},
      {"aten::get", get},
      {"aten::setdefault", set_default},
      {"aten::popitem", pop_item},
      {"aten::update", update},
      {"prim::unchecked_unwrap_optional", [](Arguments& a) { return a[0]; }},
      {"prim::rangelist", range_list},
      {"python::range", range},
      {"aten::wait", [](Arguments& a) { return a[0]; }},  // what fork gives is there at once
  };
}

}  // namespace rushlight::jit
