#include "frontend/pickle.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <span>
#include <unordered_map>

#include "frontend/torchscript/interpreter.h"
#include "io/pickle_machine.h"

namespace rushlight::frontend {

namespace {

struct StorageName {
  ScalarType dtype;
  const char* name;
};
constexpr StorageName kStorages[] = {{DType::Float32, "FloatStorage"},
                                     {DType::Float64, "DoubleStorage"},
                                     {DType::Float16, "HalfStorage"},
                                     {DType::BFloat16, "BFloat16Storage"},
                                     {DType::Int64, "LongStorage"},
                                     {DType::Int32, "IntStorage"},
                                     {DType::Int16, "ShortStorage"},
                                     {DType::Int8, "CharStorage"},
                                     {DType::UInt8, "ByteStorage"},
                                     {DType::Bool, "BoolStorage"},
                                     {DType::Complex64, "ComplexFloatStorage"},
                                     {DType::Complex128, "ComplexDoubleStorage"}};

}  // namespace

std::optional<ScalarType> storage_dtype(std::string_view name) {
  const auto found = std::ranges::find(kStorages, name, &StorageName::name);
  return found == std::end(kStorages) ? std::nullopt : std::optional(found->dtype);
}

Tensor StorageRecords::operator()(const std::string& key, ScalarType dtype, int64_t numel) {
  if (const auto found = loaded_.find(key); found != loaded_.end()) {
    RL_CHECK(found->second.dtype() == dtype && found->second.numel() == numel, "load: the storage ", key,
             " is described in two ways");
    return found->second;
  }
  const io::Archive::Record& record = archive_.record(folder_ + "/" + key);
  RL_CHECK(numel >= 0 && record.size / element_size(dtype) >= static_cast<size_t>(numel), "load: the record ",
           folder_, "/", key, " is too short for ", numel, " elements");
  archive_.offset(record);  // before memory is allocated
  const Tensor t = empty_tensor(numel, dtype);
  archive_.read(record, t.data_ptr(), t.nbytes());
  return loaded_[key] = t;
}

Tensor tensor_on_storage(const Tensor& storage, int64_t offset, IntArrayRef sizes, IntArrayRef strides,
                         bool requires_grad) {
  const auto check = [](bool good) { RL_CHECK(good, "load: the pickle is damaged: a tensor's geometry"); };
  check(sizes.size() == strides.size() && sizes.size() <= 64 && offset >= 0);
  const int64_t numel = checked_numel(sizes);
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size() && numel > 0; ++i) {
    int64_t reach;
    check(strides[i] >= 0 && !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
          !__builtin_add_overflow(last, reach, &last));
  }
  RL_CHECK(numel == 0 || last < storage.numel(),
           "load: the pickle is damaged: a tensor reaches beyond its storage");
  const Tensor t = make_view(storage, sizes, strides, numel > 0 ? offset : 0, false);
  return requires_grad ? t.detach().set_requires_grad(true) : t;
}

namespace {

// --- writing, protocol 2
class Writer {
 public:
  Writer(std::vector<Tensor>& storages, bool objects) : storages_(storages), objects_(objects) {
    out_ = std::string("\x80\x02", 2);
  }
  std::string finish(const IValue& value) {
    write(value);
    out_ += '.';
    return std::move(out_);
  }

 private:
  void write(const IValue& v) {
    if (v.isNone())
      out_ += 'N';
    else if (v.isBool())
      out_ += v.toBool() ? '\x88' : '\x89';
    else if (v.isInt())
      write_int(v.toInt());
    else if (v.isDouble())
      write_double(v.toDouble());
    else if (v.isString())
      write_string(v.toStringRef());
    else if (v.isTensor())
      write_tensor(v.toTensor());
    else if (v.isTuple())
      write_items('(', 't', v.toTupleRef().items);
    else if (v.isList())
      write_list(v.toListRef());
    else if (v.isGenericDict())
      write_dict(v.toDictRef());
    else if (v.isComplexDouble())
      write_call("builtins", "complex", {v.toComplexDouble().real(), v.toComplexDouble().imag()});
    else if (objects_ && v.isObject())
      write_object(v.toObject());
    else if (objects_ && v.isDevice())
      write_call("torch", "device", {IValue(v.toDevice().str())});
    else
      RL_FAIL("save: a value of type ", v.kind(), " cannot be written");
  }
  void write_call(std::string_view module, std::string_view name, const IValue::List& arguments) {
    write_global(module, name);
    write_items('(', 't', arguments);
    out_ += 'R';
  }
  void write_global(std::string_view module, std::string_view name) {
    ((((out_ += 'c') += module) += '\n') += name) += '\n';
  }
  // Objects of TorchScript programs, each once.
  void write_object(const std::shared_ptr<jit::Instance>& object) {
    const auto [found, fresh] =
        objects_written_.emplace(object.get(), static_cast<uint32_t>(objects_written_.size()));
    if (!fresh) {
      out_ += 'j';
      return raw(found->second);
    }
    const uint32_t number = found->second;
    const jit::ClassType& type = *object->type;
    const size_t dot = type.path.rfind('.');
    write_global(std::string_view(type.path).substr(0, dot), type.name);
    if (const IValue* value =
            type.kind == jit::ClassType::Kind::Enum ? jit::find_attribute(*object, "value") : nullptr) {
      write(*value);
      out_ += "Rr";
      return raw(number);
    }
    out_ += ")\x81";
    if (const jit::Function* getter = type.method("__getstate__")) {
      write(jit::run(*type.program, *getter, {IValue(object)}));
    } else {
      out_ += "}(";
      for (const auto& item : object->attributes) {
        write_string(item.key());
        const std::string& kind = type.declared_type(item.key());
        const bool container = kind.starts_with("List[") || kind.starts_with("Dict[");
        if (container && !item.value().isNone())  // by which an empty one knows its type
          write_call("torch.jit._pickle", "restore_type_tag", {item.value(), IValue(kind)});
        else
          write(item.value());
      }
      out_ += 'u';
    }
    out_ += "br";  // PyTorch makes the object when it has its state
    raw(number);
  }
  void write_int(int64_t v) {
    if (v >= INT32_MIN && v <= INT32_MAX) {
      out_ += 'J';
      raw(static_cast<int32_t>(v));
    } else {
      out_ += "\x8a\x08";
      raw(v);
    }
  }
  void write_double(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, 8);
    out_ += 'G';
    raw(__builtin_bswap64(bits));
  }
  void write_string(std::string_view s) {
    out_ += 'X';
    raw(static_cast<uint32_t>(s.size()));
    out_ += s;
  }
  void write_items(char open, char close, const IValue::List& items) {
    out_ += open;
    for (const IValue& item : items) write(item);
    out_ += close;
  }
  void write_list(const IValue::List& items) {
    out_ += ']';
    write_items('(', 'e', items);
  }
  void write_dict(const IValue::Dict& items) {
    out_ += "}(";
    for (const auto& [k, v] : items) write(k), write(v);
    out_ += 'u';
  }
  void write_ints(IntArrayRef list) {
    out_ += '(';
    for (const int64_t i : list) write_int(i);
    out_ += 't';
  }
  // _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)
  void write_tensor(const Tensor& given) {
    if (!given.defined()) {
      out_ += 'N';
      return;
    }
    Tensor t = given.detach().cpu();
    // A slice keeps only its own bytes.
    const bool whole = t.is_contiguous() && t->storage && t->storage->nbytes() == t.nbytes();
    if (!whole) t = t.clone(MemoryFormat::Contiguous);
    const StorageName* kind = nullptr;
    for (const StorageName& s : kStorages)
      if (s.dtype == t.dtype()) kind = &s;
    RL_CHECK(kind, "save: tensors of dtype ", dtype_name(t.dtype()), " are not written here");
    auto [found, fresh] = keys_.emplace(t->storage.get(), storages_.size());
    if (fresh) storages_.push_back(t);
    out_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    write_string("storage");
    out_ += std::string("ctorch\n") + kind->name + "\n";
    write_string(std::to_string(found->second));
    write_string("cpu");
    write_int(t.numel());
    out_ += "tQ";
    write_int(t.storage_offset());
    write_ints(t.sizes());
    write_ints(t.strides());
    out_ += given.requires_grad() ? '\x88' : '\x89';
    out_ += "ccollections\nOrderedDict\n)RtR";
  }
  template <class T>
  void raw(T v) {
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  std::string out_;
  std::vector<Tensor>& storages_;
  std::unordered_map<const void*, size_t> keys_;
  bool objects_;
  std::unordered_map<const jit::Instance*, uint32_t> objects_written_;
};

// --- reading
struct Item;
using Items = std::vector<Item>;
enum class Kind : uint8_t { Plain, Global, List, Tuple, Dict, Storage };
struct Item {
  Kind kind = Kind::Plain;
  IValue value;            // Plain; of a Storage, the tensor on it
  std::string global;      // "module name"
  Items* items = nullptr;  // of a Dict: keys and values in turn
};

// What the machine builds for C++: values and tensors. Nothing is ever executed.
class Values {
 public:
  using Object = Item;
  using Span = std::span<Item>;
  using StorageOf = std::function<Tensor(const std::string&, ScalarType, int64_t)>;
  explicit Values(const StorageOf& storage) : storage_(storage) {}

  [[noreturn]] void ended() const { RL_FAIL("load: the pickle is truncated"); }
  [[noreturn]] void damaged(const std::string& what) const { RL_FAIL("load: the pickle is damaged: ", what); }
  [[noreturn]] void refused(const std::string& what) const {
    RL_FAIL("load: the pickle holds what files of tensors have no use for: ", what);
  }

  static Item plain(IValue v) { return {Kind::Plain, std::move(v), {}, {}}; }
  static Item none() { return plain(IValue()); }
  static Item boolean(bool b) { return plain(IValue(b)); }
  static Item integer(int64_t i) { return plain(IValue(i)); }
  static Item real(double d) { return plain(IValue(d)); }
  Item long_integer(std::string_view) const { damaged("an integer does not fit 64 bits"); }
  static Item text(std::string_view s) { return plain(IValue(std::string(s))); }
  static Item old_string(std::string_view s) { return text(s); }
  Item bytes(std::string_view) const { refused("bytes"); }

  Item list(Span items) { return container(Kind::List, items); }
  Item tuple(Span items) { return container(Kind::Tuple, items); }
  Item dict(Span pairs) { return container(Kind::Dict, pairs); }
  Item set(Span) const { refused("a set"); }
  Item frozen_set(Span) const { refused("a set"); }
  void add(Item&, Span) const { refused("a set"); }
  void append(Item& list, Span items) const { extend(list, Kind::List, items); }
  void put(Item& dict, Span pairs) const { extend(dict, Kind::Dict, pairs); }

  static Item global(const std::string& module, const std::string& name) {
    return {Kind::Global, {}, module + " " + name, {}};
  }
  static const std::string& text_of(const Item& item) { return item.value.toStringRef(); }
  Item make(const Item&, const Item&) const { refused("an object of a class"); }
  void build(const Item& object, const Item&) const {  // the state of an OrderedDict
    if (object.kind != Kind::Dict) refused("the state of an object");
  }

  // ('storage', torch.FloatStorage, key, location, numel)
  Item persistent(const Item& id) const {
    const std::string& type = argument(id, 1, Kind::Global).global;
    const std::string& key = argument(id, 2, Kind::Plain).value.toStringRef();
    const int64_t numel = argument(id, 4, Kind::Plain).value.toInt();
    const auto dtype = type.starts_with("torch ") ? storage_dtype(type.substr(6)) : std::nullopt;
    if (!dtype) refused("storages of type " + type);
    return {Kind::Storage, IValue(storage_(key, *dtype, numel)), {}, {}};
  }
  Item call(const Item& callee, const Item& arguments) {
    if (callee.kind != Kind::Global || arguments.kind != Kind::Tuple) damaged("a call of no type");
    if (callee.global == "torch._utils _rebuild_tensor_v2") return plain(tensor_on_storage(arguments));
    if (callee.global == "torch._utils _rebuild_parameter") {
      const Tensor t = argument(arguments, 0, Kind::Plain).value.toTensor();
      return plain(t.detach().set_requires_grad(argument(arguments, 1, Kind::Plain).value.toBool()));
    }
    if (callee.global == "collections OrderedDict") return dict({});
    if (callee.global == "builtins complex" || callee.global == "__builtin__ complex")
      return plain(IValue(std::complex<double>(argument(arguments, 0, Kind::Plain).value.toDouble(),
                                               argument(arguments, 1, Kind::Plain).value.toDouble())));
    if (callee.global == "torch Size" && !arguments.items->empty())
      return tuple(*argument(arguments, 0, Kind::Tuple).items);
    RL_FAIL("load: the file names ", callee.global, ", which is not on the list of what may be read");
  }

  // Containers may hold themselves, or each other many times over.
  IValue finished(const Item& item, int depth) {
    if (depth > 200 || ++count_ > 20'000'000) damaged("the value is nested too deeply");
    auto each = [&](size_t i) { return finished((*item.items)[i], depth + 1); };
    switch (item.kind) {
      case Kind::Plain:
        return item.value;
      case Kind::List:
      case Kind::Tuple: {
        IValue::List list;
        for (size_t i = 0; i < item.items->size(); ++i) list.push_back(each(i));
        if (item.kind == Kind::List) return IValue(std::move(list));
        return IValue(IValue::Tuple{std::move(list), {}, {}});
      }
      case Kind::Dict: {
        IValue::Dict dict;
        for (size_t i = 0; i + 1 < item.items->size(); i += 2) dict.push_back({each(i), each(i + 1)});
        return IValue(std::move(dict));
      }
      case Kind::Global:
        return IValue(item.global);  // a type, such as a dtype, by name
      default:
        damaged("a storage alone is no value");
    }
  }

 private:
  Item container(Kind kind, Span items) {
    return {kind, {}, {}, &containers_.emplace_back(items.begin(), items.end())};
  }
  void extend(Item& target, Kind kind, Span items) const {
    if (target.kind != kind) damaged("a container is of another kind");
    target.items->insert(target.items->end(), items.begin(), items.end());
  }
  const Item& argument(const Item& tuple, size_t i, Kind kind) const {
    if (tuple.kind != Kind::Tuple || i >= tuple.items->size() || (*tuple.items)[i].kind != kind)
      damaged("unexpected arguments");
    return (*tuple.items)[i];
  }
  std::vector<int64_t> integers(const Item& tuple) const {
    std::vector<int64_t> list;
    for (const Item& i : *tuple.items) list.push_back(i.value.toInt());
    return list;
  }
  Tensor tensor_on_storage(const Item& a) const {
    return frontend::tensor_on_storage(
        argument(a, 0, Kind::Storage).value.toTensor(), argument(a, 1, Kind::Plain).value.toInt(),
        integers(argument(a, 2, Kind::Tuple)), integers(argument(a, 3, Kind::Tuple)),
        argument(a, 4, Kind::Plain).value.toBool());
  }

  const StorageOf& storage_;
  std::deque<Items> containers_;  // of all depths: none owns another, and they may hold each other
  int64_t count_ = 0;
};

}  // namespace

void write_values(io::ArchiveWriter& writer, std::string& out, const IValue& value, bool objects) {
  std::vector<Tensor> storages;
  writer.append(out, "data.pkl", Writer(storages, objects).finish(value));
  for (size_t i = 0; i < storages.size(); ++i)
    writer.append(out, "data/" + std::to_string(i),
                  {static_cast<const char*>(storages[i].data_ptr()), storages[i].nbytes()});
}
IValue read_pickle(std::string_view bytes,
                   const std::function<Tensor(const std::string&, ScalarType, int64_t)>& s) {
  io::PickleInput input(bytes);
  Values values(s);
  return values.finished(io::PickleMachine<Values>(input, values).run(), 0);
}

}  // namespace rushlight::frontend
