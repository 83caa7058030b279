#include "frontend/torchscript/interpreter.h"

#include <algorithm>

#include "frontend/torchscript/sequences.h"

namespace rushlight::jit {
namespace {

using Kind = Expression::Kind;
constexpr int kMaxDepth = 900;
thread_local int depth = 0;

class Frame {
 public:
  Frame(Program& program, const Function& function, std::vector<IValue> arguments)
      : program_(program), function_(function), slots_(std::move(arguments)) {
    slots_.resize(static_cast<size_t>(function.slots));
  }

  IValue run() {
    try {
      block(function_.body);
    } catch (const Error& e) {
      throw Error(e.kind(), std::string(e.what()) +
                                str("\n  at ", function_.file, ":", line_, ", in ", function_.name));
    }
    return std::move(returned_);
  }

 private:
  enum class Flow : uint8_t { Next, Break, Continue, Return };

  // --- statements
  Flow block(const std::vector<Statement>& body) {
    for (const Statement& s : body)
      if (const Flow flow = statement(s); flow != Flow::Next) return flow;
    return Flow::Next;
  }
  Flow statement(const Statement& s) {
    line_ = s.line;
    switch (s.kind) {
      case Statement::Kind::Assign:
        bind(s.target, value_of(*s.value));
        return Flow::Next;
      case Statement::Kind::SetAttribute: {
        const IValue object = value_of(*s.object);
        set_attribute(*object.toObject(), s.name, value_of(*s.value));
        return Flow::Next;
      }
      case Statement::Kind::SetItem: {
        const IValue base = value_of(*s.object->items[0]);
        const std::vector<Place> places = places_of(*s.object);
        write_places(base, places, value_of(*s.value));
        return Flow::Next;
      }
      case Statement::Kind::Augment:
        augment(s);
        return Flow::Next;
      case Statement::Kind::Assert:
        if (!truth(value_of(*s.value)))
          RL_FAIL("AssertionError: ", s.index ? value_of(*s.index).toStringRef() : std::string());
        return Flow::Next;
      case Statement::Kind::Evaluate:
        value_of(*s.value);
        return Flow::Next;
      case Statement::Kind::If:
        return block(truth(value_of(*s.value)) ? s.body : s.otherwise);
      case Statement::Kind::While:
        while (truth(value_of(*s.value)))
          if (const Flow flow = block(s.body); flow == Flow::Return)
            return flow;
          else if (flow == Flow::Break)
            break;
        return Flow::Next;
      case Statement::Kind::For:
        return loop(s);
      case Statement::Kind::Return:
        returned_ = s.value ? value_of(*s.value) : IValue();
        return Flow::Return;
      case Statement::Kind::Break:
        return Flow::Break;
      case Statement::Kind::Continue:
        return Flow::Continue;
      case Statement::Kind::With:
        return within(s);
    }
    return Flow::Next;
  }
  Flow loop(const Statement& s) {
    const IValue over = value_of(*s.value);
    const auto once = [&](IValue item) {
      bind(s.target, std::move(item));
      return block(s.body);
    };
    if (over.isInt()) {  // a number of rounds
      for (int64_t i = 0; i < over.toInt(); ++i)
        if (const Flow flow = once(IValue(i)); flow == Flow::Return)
          return flow;
        else if (flow == Flow::Break)
          break;
      return Flow::Next;
    }
    const IValue items = over.isList() ? over : IValue(items_of(over));
    for (size_t i = 0; i < items.toListRef().size(); ++i)  // which the body may change
      if (const Flow flow = once(items.toListRef()[i]); flow == Flow::Return)
        return flow;
      else if (flow == Flow::Break)
        break;
    return Flow::Next;
  }
  void augment(const Statement& s) {
    const Expression& target = *s.object;
    if (target.kind == Kind::Local) {
      const IValue before = value_of(target);
      slots_[static_cast<size_t>(target.slot)] = augmented(s.name, before, value_of(*s.value));
    } else if (target.kind == Kind::Attribute) {
      const IValue object = value_of(*target.items[0]);
      const IValue before = attribute_of(object, target.name);
      set_attribute(*object.toObject(), target.name, augmented(s.name, before, value_of(*s.value)));
    } else {
      const IValue base = value_of(*target.items[0]);
      const std::vector<Place> places = places_of(target);
      const IValue before = read_places(base, places);
      write_places(base, places, augmented(s.name, before, value_of(*s.value)));
    }
  }
  // The places in brackets, behind the value that has them.
  std::vector<Place> places_of(const Expression& e) {
    std::vector<Place> out;
    for (size_t i = 1; i < e.items.size(); ++i) {
      const Expression& part = *e.items[i];
      Place& place = out.emplace_back();
      if (part.kind == Kind::Rest) {
        place.kind = Place::Kind::Rest;
      } else if (part.kind == Kind::Slice) {
        place.kind = Place::Kind::Slice;
        place.value = value_of(*part.items[0]);
        place.stop = value_of(*part.items[1]), place.step = value_of(*part.items[2]);
      } else {
        place.value = value_of(part);
      }
    }
    return out;
  }
  IValue collected(const Expression& e) {
    const bool pairs = e.items.size() > 2;
    auto dict = std::make_shared<ivalue::DictBody>();
    IValue::List list;
    for (IValue& item : items_of(value_of(*e.items[0]))) {
      bind(e.target, std::move(item));
      IValue first = value_of(*e.items[1]);
      if (pairs)
        dict->put(first, value_of(*e.items[2]));
      else
        list.push_back(std::move(first));
    }
    return pairs ? IValue(std::move(dict)) : IValue(std::move(list));
  }
  // __exit__ is called in any case.
  Flow within(const Statement& s) {
    const IValue object = value_of(*s.value);
    IValue entered = method(object, "__enter__", {});
    if (s.target.slot >= 0) bind(s.target, std::move(entered));
    const auto leave = [&] { method(object, "__exit__", {IValue(), IValue(), IValue()}); };
    Flow flow;
    try {
      flow = block(s.body);
    } catch (...) {
      leave();
      throw;
    }
    leave();
    return flow;
  }
  void bind(const Target& target, IValue value) {
    if (target.slot >= 0) {
      slots_[static_cast<size_t>(target.slot)] = std::move(value);
      return;
    }
    const std::vector<IValue>& items = value.isList() ? value.toListRef() : value.toTupleRef().items;
    RL_CHECK_VALUE(items.size() == target.items.size(), "Provided list of ", items.size(),
                   " values cannot be unpacked into ", target.items.size(), " names");
    for (size_t i = 0; i < items.size(); ++i) bind(target.items[i], items[i]);
  }

  // --- expressions
  IValue value_of(const Expression& e) {
    switch (e.kind) {
      case Kind::Constant:
        return e.value;
      case Kind::Local: {
        IValue& slot = slots_[static_cast<size_t>(e.slot)];
        return e.last ? std::exchange(slot, IValue()) : slot;
      }
      case Kind::Attribute:
        return attribute_of(value_of(*e.items[0]), e.name);
      case Kind::Subscript: {
        static const Callee get_item = find_callee("aten", "__getitem__");
        Arguments arguments = arguments_of(e);
        return call(get_item, arguments);
      }
      case Kind::Places: {
        const IValue base = value_of(*e.items[0]);
        return read_places(base, places_of(e));
      }
      case Kind::Collected:
        return collected(e);
      case Kind::Slice:
      case Kind::Rest:
      case Kind::Spread:
        RL_FAIL("a slice or a star stands where there can be none");
      case Kind::List:
        return IValue(values_of(e.items), e.types.empty() ? ivalue::Elements::Any : elements_of(e.types[0]));
      case Kind::Tuple:
        return IValue(IValue::Tuple{values_of(e.items), {}, {}});
      case Kind::Dict:
        return dict(e);
      case Kind::Operator: {
        Arguments arguments = arguments_of(e);
        line_ = e.line;
        return call(e.callee, arguments);
      }
      case Kind::Method: {
        IValue object = value_of(*e.items[0]);
        if (object.isObject() || (object.isTensor() && e.name == "tolist"))
          return method(object, e.name, values_of(e.items, 1), keywords_of(e));
        Arguments arguments{{std::move(object)}, {}};
        for (IValue& value : values_of(e.items, 1)) arguments.values.push_back(std::move(value));
        for (const auto& [name, value] : e.named) arguments.named.emplace_back(name, value_of(*value));
        line_ = e.line;
        return call(e.callee, arguments);
      }
      case Kind::CallPath:
        return call_path(e);
      case Kind::New:
        return IValue(program_.make(*class_of(e)));
      case Kind::EnumMember:
        return member(e);
      case Kind::Conditional:
        return value_of(*e.items[truth(value_of(*e.items[1])) ? 0 : 2]);
      case Kind::And:
        return truth(value_of(*e.items[0])) ? value_of(*e.items[1]) : IValue(false);
      case Kind::Or:
        return truth(value_of(*e.items[0])) ? IValue(true) : value_of(*e.items[1]);
      case Kind::Not:
        return IValue(!truth(value_of(*e.items[0])));
      case Kind::IsInstance: {
        const IValue value = value_of(*e.items[0]);
        return IValue(std::ranges::any_of(e.types, [&](const TypeName& t) { return is_of_type(value, t); }));
      }
      case Kind::Fork:
        block(function_.inner[static_cast<size_t>(e.slot)]);
        return std::exchange(returned_, IValue());
      case Kind::Uninitialized:
        return IValue();
    }
    return IValue();
  }
  std::vector<IValue> values_of(const std::vector<ExpressionPtr>& items, size_t from = 0) {
    std::vector<IValue> out;
    out.reserve(items.size());
    for (size_t i = from; i < items.size(); ++i) {
      if (items[i]->kind != Kind::Spread) {
        out.push_back(value_of(*items[i]));
        continue;
      }
      for (IValue& item : items_of(value_of(*items[i]->items[0]))) out.push_back(std::move(item));
    }
    return out;
  }
  Arguments arguments_of(const Expression& e) {
    Arguments out{values_of(e.items), {}};
    for (const auto& [name, value] : e.named) out.named.emplace_back(name, value_of(*value));
    return out;
  }
  Keywords keywords_of(const Expression& e) {
    Keywords out;
    for (const auto& [name, value] : e.named) out[name] = value_of(*value);
    return out;
  }
  IValue dict(const Expression& e) {
    auto body = std::make_shared<ivalue::DictBody>();
    for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
      const IValue key = value_of(*e.items[i]);
      body->put(key, value_of(*e.items[i + 1]));
    }
    return IValue(std::move(body));
  }
  IValue attribute_of(const IValue& value, const std::string& name) {
    if (value.isObject()) return attribute(*value.toObject(), name);
    if (value.isTuple()) {
      const IValue::Tuple& tuple = value.toTupleRef();
      const auto found = std::ranges::find(tuple.fields, name);
      RL_CHECK(found != tuple.fields.end(), "the tuple has no field '", name, "'");
      return tuple.items[static_cast<size_t>(found - tuple.fields.begin())];
    }
    const Callee property = find_callee("prim", name);
    RL_CHECK(property.builtin, "a ", value.kind(), " has no attribute '", name, "'");
    Arguments arguments{{value}, {}};
    return call(property, arguments);
  }
  IValue method(const IValue& object, const std::string& name, std::vector<IValue> values,
                const Keywords& keywords = {}) {
    if (object.isTensor() && name == "tolist") {
      static const Callee to_list = find_callee("prim", "tolist");
      Arguments arguments{{object}, {}};
      return call(to_list, arguments);
    }
    RL_CHECK(object.isObject(), "a ", object.kind(), " has no method '", name, "'");
    const ClassType& type = *object.toObject()->type;
    const Function* found = type.method(name);
    RL_CHECK(found, "Method '", name, "' is not defined.");
    values.insert(values.begin(), object);
    return jit::run(program_, *found, bind_plainly(*found, std::move(values), keywords));
  }
  // Code of an archive has been checked when it was compiled: types are not looked at again.
  std::vector<IValue> bind_plainly(const Function& f, std::vector<IValue> values, const Keywords& keywords) {
    RL_CHECK(values.size() <= f.parameters.size(), f.name, "() takes ", f.parameters.size(),
             " arguments, but got ", values.size());
    for (size_t i = values.size(); i < f.parameters.size(); ++i) {
      const FunctionParameter& p = f.parameters[i];
      const auto found = keywords.find(p.name);
      RL_CHECK(found != keywords.end() || p.otherwise, f.name, "() is missing value for argument '", p.name,
               "'");
      values.push_back(found != keywords.end() ? found->second : p.otherwise->deepcopy());
    }
    return values;
  }
  const ClassType* class_of(const Expression& e) {
    const void* known = e.resolved.load(std::memory_order_acquire);
    if (!known) e.resolved.store(known = program_.class_at(e.name).get(), std::memory_order_release);
    return static_cast<const ClassType*>(known);
  }
  IValue call_path(const Expression& e) {
    if (const void* known = e.resolved.load(std::memory_order_acquire))
      return call_function(e, *static_cast<const Function*>(known));
    const Program::Named found = program_.find(e.name);
    if (found.function) {
      e.resolved.store(found.function, std::memory_order_release);
      return call_function(e, *found.function);
    }
    if (found.type->kind == ClassType::Kind::Object) {
      const IValue made(program_.make(*found.type));
      if (found.type->method("__init__")) method(made, "__init__", values_of(e.items), keywords_of(e));
      return made;
    }
    RL_CHECK(found.type->kind == ClassType::Kind::NamedTuple, e.name, " cannot be called");
    IValue::Tuple tuple{values_of(e.items), found.type->path, found.type->fields};
    for (size_t i = tuple.items.size(); i < tuple.fields.size(); ++i)
      for (const auto& [name, value] : e.named)
        if (name == tuple.fields[i]) tuple.items.push_back(value_of(*value));
    RL_CHECK(tuple.items.size() == tuple.fields.size(), e.name, " has ", tuple.fields.size(),
             " fields, but got ", tuple.items.size(), " values");
    return IValue(std::move(tuple));
  }
  IValue call_function(const Expression& e, const Function& f) {
    std::vector<IValue> values = values_of(e.items);
    return jit::run(program_, f, bind_plainly(f, std::move(values), keywords_of(e)));
  }
  IValue member(const Expression& e) {
    const size_t dot = e.name.rfind('.');
    const auto type = program_.class_at(e.name.substr(0, dot));
    const std::string name = e.name.substr(dot + 1);
    const IValue* value = type->constants.find(name);
    RL_CHECK(value && type->kind == ClassType::Kind::Enum, "jit.load: ", e.name,
             " is no member of an enumeration");
    const auto made = program_.make(*type);
    made->attributes.insert("name", IValue(name));
    made->attributes.insert("value", *value);
    return IValue(made);
  }

  Program& program_;
  const Function& function_;
  std::vector<IValue> slots_;
  IValue returned_;
  int line_ = 0;
};

[[noreturn]] void refuse(const Function& f, const std::string& what) {
  std::string declaration = f.name + "(";
  for (const FunctionParameter& p : f.parameters)
    declaration += (&p == &f.parameters[0] ? "" : ", ") + to_string(p.type) + " " + p.name;
  RL_FAIL(f.name, "() ", what, "\nDeclaration: ", declaration, ") -> ", to_string(f.returns));
}

}  // namespace

IValue run(Program& program, const Function& function, std::vector<IValue> arguments) {
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } const deeper;
  RL_CHECK(depth <= kMaxDepth, function.name, ": functions call each other more than ", kMaxDepth, " deep");
  return Frame(program, function, std::move(arguments)).run();
}

std::vector<IValue> bind_arguments(const Function& f, std::vector<IValue> values, const Keywords& keywords) {
  if (values.size() > f.parameters.size())
    refuse(f, str("expected at most ", f.parameters.size(), " argument(s) but received ", values.size(),
                  " argument(s)."));
  size_t used = 0;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    const FunctionParameter& p = f.parameters[i];
    const auto found = keywords.find(p.name);
    if (found != keywords.end()) ++used;
    if (i < values.size()) {
      if (found != keywords.end()) refuse(f, str("got argument '", p.name, "' twice."));
    } else if (found != keywords.end()) {
      values.push_back(found->second);
    } else if (p.otherwise) {
      values.push_back(p.otherwise->deepcopy());
    } else {
      refuse(f, str("is missing value for argument '", p.name, "'."));
    }
    if (p.name != "self" && !is_of_type(values[i], p.type))
      refuse(f, str("Expected a value of type '", to_string(p.type), "' for argument '", p.name,
                    "' but instead found type '", values[i].kind(), "'."));
  }
  if (used < keywords.size())
    for (const auto& [name, value] : keywords)
      if (std::ranges::none_of(f.parameters, [&](const FunctionParameter& p) { return p.name == name; }))
        refuse(f, str("Unknown keyword argument '", name, "'."));
  return values;
}

}  // namespace rushlight::jit
