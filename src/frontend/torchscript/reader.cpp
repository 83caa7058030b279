#include "frontend/torchscript/reader.h"

#include <span>

#include "core/crc32.h"
#include "frontend/pickle.h"
#include "frontend/torchscript/interpreter.h"
#include "io/inflate.h"
#include "io/pickle_machine.h"

namespace rushlight::jit {
namespace {

constexpr uint64_t kCodeLimit = 256 << 20;
constexpr uint16_t kDeflated = 8;

struct Item {
  enum class Kind : uint8_t { Plain, Global, Storage };
  Kind kind = Kind::Plain;
  IValue value;        // of a Storage, the tensor on it
  std::string global;  // "module name"; of a Storage, where it was
};

// What the machine builds: values, tensors, and objects of the archive's own classes.
class Objects {
 public:
  using Object = Item;
  using Span = std::span<Item>;
  Objects(Program& program, const io::Archive& archive, const std::string& folder,
          std::optional<Device> device)
      : program_(program), storages_(archive, folder), device_(device) {}

  [[noreturn]] void ended() const { damaged("it is truncated"); }
  [[noreturn]] void damaged(const std::string& what) const {
    RL_FAIL("jit.load: ", program_.name(), " is damaged: ", what);
  }
  [[noreturn]] void refused(const std::string& what) const {
    RL_FAIL("jit.load: ", program_.name(), " holds ", what, ", which archives may not hold here");
  }

  static Item plain(IValue v) { return {Item::Kind::Plain, std::move(v), {}}; }
  static Item none() { return plain(IValue()); }
  static Item boolean(bool b) { return plain(IValue(b)); }
  static Item integer(int64_t i) { return plain(IValue(i)); }
  static Item real(double d) { return plain(IValue(d)); }
  Item long_integer(std::string_view) const { damaged("an integer does not fit 64 bits"); }
  static Item text(std::string_view s) { return plain(IValue(std::string(s))); }
  static Item old_string(std::string_view s) { return text(s); }
  Item bytes(std::string_view) const { refused("bytes"); }
  Item list(Span items) const { return plain(IValue(values(items))); }
  Item tuple(Span items) const {
    // Of a storage's description, one item is a type: tuples keep what they were made of.
    auto made = std::make_shared<IValue::Tuple>();
    for (const Item& item : items)
      if (item.kind == Item::Kind::Plain)
        made->items.push_back(item.value);
      else
        made->items.push_back(IValue()), described_[made.get()] = item;
    kept_.push_back(made);
    return plain(IValue(std::move(made)));
  }
  Item dict(Span pairs) const {
    Item made = plain(IValue(IValue::Dict()));
    put(made, pairs);
    return made;
  }
  Item set(Span) const { refused("a set"); }
  Item frozen_set(Span) const { refused("a set"); }
  void add(Item&, Span) const { refused("a set"); }
  void append(Item& list, Span items) const {
    if (!list.value.isList()) damaged("a container is of another kind");
    for (IValue& v : values(items)) {
      if (v.is(list.value)) damaged("a list holds itself");
      list.value.list_body()->items.push_back(std::move(v));
    }
  }
  void put(Item& dict, Span pairs) const {
    if (!dict.value.isGenericDict()) damaged("a container is of another kind");
    for (size_t i = 0; i + 1 < pairs.size(); i += 2)
      dict.value.dict_body()->put(value(pairs[i]), value(pairs[i + 1]));
  }
  static Item global(const std::string& module, const std::string& name) {
    return {Item::Kind::Global, {}, module + " " + name};
  }
  static const std::string& text_of(const Item& item) { return item.value.toStringRef(); }

  Item make(const Item& type, const Item&) const { return plain(IValue(program_.make(*class_of(type)))); }
  void build(Item& object, const Item& state) const {
    if (!object.value.isObject()) {
      if (!object.value.isGenericDict()) refused("the state of an object");
      return;  // of an OrderedDict
    }
    const auto& made = object.value.toObject();
    if (const Function* setter = made->type->method("__setstate__")) {
      run(program_, *setter, {object.value, value(state)});
      return;
    }
    for (const auto& [key, v] : value(state).toDictRef()) set_attribute(*made, key.toStringRef(), v);
  }
  // ('storage', torch.FloatStorage, key, location, numel)
  Item persistent(const Item& id) const {
    if (!id.value.isTuple() || id.value.toTupleRef().size() != 5) damaged("a storage is not described");
    const auto& parts = id.value.toTupleRef().items;
    const auto type = described_.find(id.value.toTuple().get());
    const std::string named = type == described_.end() ? "" : type->second.global;
    const auto dtype = named.starts_with("torch ") ? frontend::storage_dtype(named.substr(6)) : std::nullopt;
    if (!dtype) refused("storages of type " + named);
    return {Item::Kind::Storage, IValue(storages_(parts[2].toStringRef(), *dtype, parts[4].toInt())),
            parts[3].toStringRef()};
  }
  Item call(const Item& callee, const Item& arguments) const {
    if (callee.kind != Item::Kind::Global) damaged("a call of no function");
    // Of an enumeration: the member with this value.
    if (callee.global.starts_with("__torch__")) return plain(member(*class_of(callee), value(arguments)));
    if (!arguments.value.isTuple()) damaged("a call without arguments");
    const auto& a = arguments.value.toTupleRef().items;
    const auto argument = [&](size_t i) -> const IValue& {
      if (i >= a.size()) damaged("a call without arguments");
      return a[i];
    };
    const std::string& name = callee.global;
    if (name == "torch._utils _rebuild_tensor_v2") return plain(tensor(arguments));
    if (name == "torch.jit._pickle restore_type_tag") return plain(argument(0));
    if (name.starts_with("torch.jit._pickle build_") && name.ends_with("list"))
      return plain(typed(name, argument(0)));
    if (name == "collections OrderedDict") return dict({});
    if (name == "builtins complex")
      return plain(IValue(std::complex<double>(argument(0).toDouble(), argument(1).toDouble())));
    if (name == "torch device") return plain(IValue(Device::parse(argument(0).toStringRef())));
    refused(name);
  }

 private:
  IValue value(const Item& item) const {
    if (item.kind != Item::Kind::Plain) damaged("a type or a storage stands where a value should be");
    return item.value;
  }
  std::vector<IValue> values(Span items) const {
    std::vector<IValue> out;
    for (const Item& item : items) out.push_back(value(item));
    return out;
  }
  std::shared_ptr<const ClassType> class_of(const Item& type) const {
    if (type.kind != Item::Kind::Global || !type.global.starts_with("__torch__"))
      refused("an object of " + type.global);
    std::string path = type.global;
    path[path.find(' ')] = '.';
    return program_.class_at(path);
  }
  static IValue typed(const std::string& name, const IValue& list) {
    using ivalue::Elements;
    list.list_body()->elements = name.ends_with("intlist")      ? Elements::Int
                                 : name.ends_with("doublelist") ? Elements::Double
                                 : name.ends_with("boollist")   ? Elements::Bool
                                                                : Elements::Tensor;
    return list;
  }
  IValue member(const ClassType& type, const IValue& value) const {
    for (const auto& item : type.constants)
      if (type.kind == ClassType::Kind::Enum && item.value() == value) {
        const auto made = program_.make(type);
        made->attributes.insert("name", IValue(item.key()));
        made->attributes.insert("value", value);
        return IValue(made);
      }
    damaged(type.path + " has no such member");
  }
  // One tensor for each place in memory: the lists of weights that LSTM keeps name its parameters again.
  IValue tensor(const Item& arguments) const {
    const auto storage = described_.find(arguments.value.toTuple().get());
    const auto& a = arguments.value.toTupleRef().items;
    if (storage == described_.end() || storage->second.kind != Item::Kind::Storage || a.size() < 5)
      damaged("a tensor has no storage");
    const auto numbers = [](const IValue& v) { return IValue(v.toTupleRef().items).toIntVector(); };
    const Tensor& flat = storage->second.value.toTensor();
    const auto sizes = numbers(a[2]), strides = numbers(a[3]);
    const std::string key =
        str(reinterpret_cast<uintptr_t>(flat.impl()), ":", a[1].toInt(), IntList(sizes), IntList(strides));
    Tensor& made = tensors_[key];
    if (!made.defined()) {
      made = frontend::tensor_on_storage(flat, a[1].toInt(), sizes, strides, false);
      const Device device = device_.value_or(Device::parse(storage->second.global));
      if (!device.is_cpu()) made = made.to(device);
      if (a[4].toBool()) made = made.detach().set_requires_grad(true);
    }
    return IValue(made);
  }

  Program& program_;
  mutable frontend::StorageRecords storages_;
  std::optional<Device> device_;
  mutable std::unordered_map<std::string, Tensor> tensors_;
  mutable std::unordered_map<const void*, Item> described_;   // what of a tuple is no value
  mutable std::vector<std::shared_ptr<IValue::Tuple>> kept_;  // so that no two tuples have the same place
};

IValue read_values(Program& program, const io::Archive& archive, const std::string& folder,
                   const std::optional<Device>& device) {
  const std::string content = archive.read(folder + ".pkl");
  io::PickleInput input(content);
  Objects objects(program, archive, folder, device);
  return io::PickleMachine<Objects>(input, objects).run().value;
}

}  // namespace

std::string read_record(const io::Archive& archive, const std::string& name) {
  const io::Archive::Record& record = archive.record(name);
  if (!record.method) return archive.read(name);
  RL_CHECK(record.method == kDeflated && record.size < kCodeLimit, "the record ", name, " cannot be read");
  std::string content = io::inflate(archive.read_packed(record), record.size);
  RL_CHECK(crc32(content.data(), content.size()) == record.crc, "the record ", name, " fails its checksum");
  return content;
}

std::shared_ptr<Instance> read_module(const io::Archive& archive, const std::string& name,
                                      const std::optional<Device>& device) {
  const auto program = std::make_shared<Program>(name);
  for (const io::Archive::Record& record : archive.records())
    if (record.name.starts_with("code/") && record.name.ends_with(".py"))
      program->texts[record.name] = read_record(archive, record.name);
    else if (record.name.starts_with("constants") || record.name == "byteorder" || record.name == "version" ||
             record.name == ".data/version")
      program->kept[record.name] = read_record(archive, record.name);
  if (archive.has("constants.pkl"))
    program->constants = read_values(*program, archive, "constants", device).toTupleRef().items;
  const IValue root = read_values(*program, archive, "data", device);
  RL_CHECK(root.isModule(), "jit.load: ", name, " holds a ", root.kind(), ", not a module");
  return root.toObject();
}

}  // namespace rushlight::jit
