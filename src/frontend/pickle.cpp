#include <cstring>
#include <unordered_map>

#include "frontend/archive.h"

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

// --- writing, protocol 2
class Writer {
 public:
  explicit Writer(std::vector<Tensor>& storages) : storages_(storages) { out_ = std::string("\x80\x02", 2); }
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
      write_items('(', 't', v.toTupleRef());
    else if (v.isList())
      write_list(v.toListRef());
    else
      write_dict(v.toGenericDict());
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
};

// --- reading
struct Item;
using Items = std::vector<Item>;
enum class Kind : uint8_t { Plain, Mark, Global, List, Tuple, Dict, Storage };
struct Item {
  Kind kind = Kind::Plain;
  IValue value;                  // Plain; of a Storage, the tensor on it
  std::string global;            // "module name"
  std::shared_ptr<Items> items;  // of a Dict: keys and values in turn
};

class Reader {
 public:
  using StorageOf = std::function<Tensor(const std::string&, ScalarType, int64_t)>;
  Reader(std::string_view bytes, const StorageOf& storage) : bytes_(bytes), storage_(storage) {}
  IValue run() {
    for (;;) {
      const auto code = take<uint8_t>();
      if (code == '.') break;
      step(static_cast<char>(code));
    }
    return finished(pop(), 0);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { RL_FAIL("load: ", what); }
  template <class T>
  T take() {
    T v;
    std::memcpy(&v, text(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view text(size_t n) {
    if (bytes_.size() - at_ < n) fail("the pickle is truncated");
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("the pickle is truncated");
    const std::string s(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }
  void push(IValue v) { stack_.push_back({Kind::Plain, std::move(v), {}, {}}); }
  void push(Kind kind, Items items) {
    stack_.push_back({kind, {}, {}, std::make_shared<Items>(std::move(items))});
  }
  Item pop() {
    if (stack_.empty()) fail("the pickle is damaged: its stack is empty");
    Item item = std::move(stack_.back());
    stack_.pop_back();
    return item;
  }
  Item& top() {
    if (stack_.empty()) fail("the pickle is damaged: its stack is empty");
    return stack_.back();
  }
  Items pop_to_mark() {
    size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1].kind != Kind::Mark) --mark;
    if (mark == 0) fail("the pickle is damaged: a mark is missing");
    Items items(std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(mark)),
                std::make_move_iterator(stack_.end()));
    stack_.resize(mark - 1);
    return items;
  }
  Items pop_n(size_t n) {
    Items items(n);
    for (size_t i = n; i-- > 0;) items[i] = pop();
    return items;
  }
  void append(Kind kind, Items items) {
    Item& target = top();
    if (target.kind != kind || (kind == Kind::Dict && items.size() % 2)) fail("the pickle is damaged");
    target.items->insert(target.items->end(), items.begin(), items.end());
  }

  void step(char code) {
    switch (code) {
      case '\x80':
        return void(take<uint8_t>());
      case '\x95':
        return void(take<uint64_t>());
      case '(':
        return stack_.push_back({Kind::Mark, {}, {}, {}});
      case 'N':
        return push(IValue());
      case '\x88':
        return push(IValue(true));
      case '\x89':
        return push(IValue(false));
      case 'J':
        return push(IValue(int64_t{take<int32_t>()}));
      case 'K':
        return push(IValue(int64_t{take<uint8_t>()}));
      case 'M':
        return push(IValue(int64_t{take<uint16_t>()}));
      case '\x8a':
        return push(IValue(long_integer(take<uint8_t>())));
      case 'G':
        return push(IValue(double_value()));
      case 'X':
        return push(IValue(std::string(text(take<uint32_t>()))));
      case '\x8c':
        return push(IValue(std::string(text(take<uint8_t>()))));
      case '}':
        return push(Kind::Dict, {});
      case ']':
        return push(Kind::List, {});
      case ')':
        return push(Kind::Tuple, {});
      case 't':
        return push(Kind::Tuple, pop_to_mark());
      case 'd':
        return push(Kind::Dict, pop_to_mark());
      case 'l':
        return push(Kind::List, pop_to_mark());
      case '\x85':
        return push(Kind::Tuple, pop_n(1));
      case '\x86':
        return push(Kind::Tuple, pop_n(2));
      case '\x87':
        return push(Kind::Tuple, pop_n(3));
      case 's':
        return append(Kind::Dict, pop_n(2));
      case 'u':
        return append(Kind::Dict, pop_to_mark());
      case 'a':
        return append(Kind::List, pop_n(1));
      case 'e':
        return append(Kind::List, pop_to_mark());
      case '0':
        return void(pop());
      case 'q':
        return remember(take<uint8_t>());
      case 'r':
        return remember(take<uint32_t>());
      case '\x94':
        return remember(static_cast<uint32_t>(memo_.size()));
      case 'h':
        return recall(take<uint8_t>());
      case 'j':
        return recall(take<uint32_t>());
      case 'b':
        return void(pop());  // the state of an OrderedDict
      case 'Q':
        return persistent(pop());
      case 'R': {
        const Item arguments = pop(), callee = pop();
        return call(callee, arguments);
      }
      case 'c': {
        const std::string module = line(), name = line();
        return stack_.push_back({Kind::Global, {}, module + " " + name, {}});
      }
      case '\x93': {
        const Item name = pop(), module = pop();
        return stack_.push_back(
            {Kind::Global, {}, module.value.toStringRef() + " " + name.value.toStringRef(), {}});
      }
      default:
        fail(str("the pickle holds an instruction (", static_cast<int>(static_cast<uint8_t>(code)),
                 ") that files of tensors have no use for"));
    }
  }
  int64_t long_integer(size_t n) {
    if (n > 8) fail("an integer does not fit 64 bits");
    const std::string_view bytes = text(n);
    int64_t v = n && (bytes[n - 1] & 0x80) ? -1 : 0;
    std::memcpy(&v, bytes.data(), n);
    return v;
  }
  double double_value() {
    const uint64_t bits = __builtin_bswap64(take<uint64_t>());
    double v;
    std::memcpy(&v, &bits, 8);
    return v;
  }
  void remember(uint32_t i) { memo_[i] = top(); }
  void recall(uint32_t i) {
    const auto found = memo_.find(i);
    if (found == memo_.end()) fail("the pickle is damaged: it recalls what it never stored");
    stack_.push_back(found->second);
  }
  const Item& argument(const Item& tuple, size_t i, Kind kind) const {
    if (tuple.kind != Kind::Tuple || i >= tuple.items->size() || (*tuple.items)[i].kind != kind)
      fail("the pickle is damaged: unexpected arguments");
    return (*tuple.items)[i];
  }
  // ('storage', torch.FloatStorage, key, location, numel)
  void persistent(const Item& id) {
    const std::string& type = argument(id, 1, Kind::Global).global;
    const std::string& key = argument(id, 2, Kind::Plain).value.toStringRef();
    const int64_t numel = argument(id, 4, Kind::Plain).value.toInt();
    for (const StorageName& s : kStorages)
      if (type == std::string("torch ") + s.name) {
        stack_.push_back({Kind::Storage, IValue(storage_(key, s.dtype, numel)), {}, {}});
        return;
      }
    fail("storages of type " + type + " are not read here");
  }
  std::vector<int64_t> integers(const Item& tuple) const {
    std::vector<int64_t> list;
    for (const Item& i : *tuple.items) list.push_back(i.value.toInt());
    return list;
  }
  void call(const Item& callee, const Item& arguments) {
    if (callee.kind != Kind::Global || arguments.kind != Kind::Tuple)
      fail("the pickle is damaged: a call of no type");
    if (callee.global == "torch._utils _rebuild_tensor_v2") return push(IValue(tensor_on_storage(arguments)));
    if (callee.global == "torch._utils _rebuild_parameter") {
      const Tensor t = argument(arguments, 0, Kind::Plain).value.toTensor();
      return push(IValue(t.detach().set_requires_grad(argument(arguments, 1, Kind::Plain).value.toBool())));
    }
    if (callee.global == "collections OrderedDict") return push(Kind::Dict, {});
    if (callee.global == "torch Size" && !arguments.items->empty())
      return push(Kind::Tuple, *argument(arguments, 0, Kind::Tuple).items);
    fail("the file names " + callee.global + ", which is not on the list of what may be read");
  }
  Tensor tensor_on_storage(const Item& a) const {
    const Tensor& storage = argument(a, 0, Kind::Storage).value.toTensor();
    const int64_t offset = argument(a, 1, Kind::Plain).value.toInt();
    const auto sizes = integers(argument(a, 2, Kind::Tuple)), strides = integers(argument(a, 3, Kind::Tuple));
    if (sizes.size() != strides.size() || sizes.size() > 64 || offset < 0)
      fail("a tensor's geometry is damaged");
    const int64_t numel = checked_numel(sizes);
    int64_t last = offset;
    for (size_t i = 0; i < sizes.size() && numel > 0; ++i) {
      int64_t reach;
      if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
          __builtin_add_overflow(last, reach, &last))
        fail("a tensor's geometry is damaged");
    }
    if (numel > 0 && last >= storage.numel()) fail("a tensor reaches beyond its storage");
    const Tensor t = make_view(storage, sizes, strides, numel > 0 ? offset : 0, false);
    const bool requires_grad = argument(a, 4, Kind::Plain).value.toBool();
    return requires_grad ? t.detach().set_requires_grad(true) : t;
  }

  // Containers may hold themselves, or each other many times over.
  IValue finished(const Item& item, int depth) {
    if (depth > 200 || ++count_ > 20'000'000) fail("the value is nested too deeply");
    auto each = [&](size_t i) { return finished((*item.items)[i], depth + 1); };
    switch (item.kind) {
      case Kind::Plain:
        return item.value;
      case Kind::List:
      case Kind::Tuple: {
        IValue::List list;
        for (size_t i = 0; i < item.items->size(); ++i) list.push_back(each(i));
        if (item.kind == Kind::List) return IValue(std::move(list));
        return IValue(IValue::Tuple{std::move(list)});
      }
      case Kind::Dict: {
        IValue::Dict dict;
        for (size_t i = 0; i + 1 < item.items->size(); i += 2) dict.emplace_back(each(i), each(i + 1));
        return IValue(std::move(dict));
      }
      case Kind::Global:
        return IValue(item.global);  // a type, such as a dtype, by name
      default:
        fail("the pickle is damaged");
    }
  }
  std::string_view bytes_;
  const StorageOf& storage_;
  size_t at_ = 0;
  std::vector<Item> stack_;
  std::unordered_map<uint32_t, Item> memo_;
  int64_t count_ = 0;
};

}  // namespace

std::string write_pickle(const IValue& value, std::vector<Tensor>& storages) {
  return Writer(storages).finish(value);
}
IValue read_pickle(std::string_view bytes,
                   const std::function<Tensor(const std::string&, ScalarType, int64_t)>& s) {
  return Reader(bytes, s).run();
}

}  // namespace rushlight::frontend
