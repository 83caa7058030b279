// Layers and optimizers of the C++ front end by name, with numbers as their options.
#include "web/training.h"

#include <cmath>
#include <span>

#include "frontend/c_common.h"
#include "rushlight/nn.h"
#include "rushlight/optim.h"

using namespace rushlight;
using namespace rushlight::c;

namespace {

// Options by name. Each that is given must be asked for.
class Options {
 public:
  Options(const char* kind, const char* names, const double* numbers, size_t count) : kind_(kind) {
    std::string_view rest = checked(names, "names");
    for (size_t i = 0; i < count; ++i) {
      const size_t end = std::min(rest.find(','), rest.size());
      given_.push_back({std::string(rest.substr(0, end)), checked(numbers, "numbers")[i]});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  double number(std::string_view name, double otherwise) {
    asked_.emplace_back(name);
    for (const auto& [known, value] : given_)
      if (known == name) return value;
    return otherwise;
  }
  int64_t integer(std::string_view name, int64_t otherwise) {
    const double value = number(name, static_cast<double>(otherwise));
    RL_CHECK_VALUE(std::abs(value) <= 0x1p53 && value == std::trunc(value), kind_, ": ", name,
                   " must be an integer, but is ", value);
    return static_cast<int64_t>(value);
  }
  int64_t needed(std::string_view name) {
    for (const auto& [known, value] : given_)
      if (known == name) return integer(name, 0);
    RL_FAIL_AS(Value, kind_, " needs ", name);
  }
  bool flag(std::string_view name, bool otherwise) { return number(name, otherwise) != 0; }
  void finish() const {
    for (const auto& [name, value] : given_) {
      std::string known;
      for (const std::string& n : asked_) known += str(known.empty() ? "" : ", ", n);
      RL_CHECK_VALUE(std::ranges::find(asked_, name) != asked_.end(), kind_, " has no option '", name,
                     "'; it takes ", known.empty() ? "none" : known);
    }
  }

 private:
  std::string kind_;
  std::vector<std::pair<std::string, double>> given_;
  std::vector<std::string> asked_;
};

// --- layers

struct Layer {
  std::shared_ptr<nn::Module> module;
  Tensor (*forward)(nn::Module&, const Tensor&) = nullptr;
  std::vector<std::pair<std::string, Tensor>> tensors;  // parameters, then buffers
  size_t parameters = 0;
};

template <class M, class... Args>
Layer made(Args&&... args) {
  Layer layer{std::make_shared<M>(std::forward<Args>(args)...), nullptr, {}, 0};
  layer.forward = [](nn::Module& m, const Tensor& x) -> Tensor { return static_cast<M&>(m).forward(x); };
  for (const auto& item : layer.module->named_parameters())
    layer.tensors.emplace_back(item.key(), item.value());
  layer.parameters = layer.tensors.size();
  for (const auto& item : layer.module->named_buffers()) layer.tensors.emplace_back(item.key(), item.value());
  return layer;
}

template <class M, class MakeOptions>
Layer pooling(Options& o, MakeOptions make) {
  const int64_t kernel = o.needed("kernel_size");
  auto options = make(kernel);
  options.stride(o.integer("stride", kernel)).padding(o.integer("padding", 0));
  return made<M>(options);
}

Layer batch_norm(Options& o, bool images) {
  nn::BatchNormOptions options(o.needed("num_features"));
  options.eps(o.number("eps", 1e-5)).momentum(o.number("momentum", 0.1));
  return images ? made<nn::BatchNorm2dImpl>(options) : made<nn::BatchNorm1dImpl>(options);
}

Layer make_layer(std::string_view kind, Options& o) {
  if (kind == "Linear") {
    nn::LinearOptions options(o.needed("in_features"), o.needed("out_features"));
    return made<nn::LinearImpl>(options.bias(o.flag("bias", true)));
  }
  if (kind == "Conv2d") {
    nn::Conv2dOptions options(o.needed("in_channels"), o.needed("out_channels"), o.needed("kernel_size"));
    options.stride(o.integer("stride", 1)).padding(o.integer("padding", 0));
    options.dilation(o.integer("dilation", 1)).groups(o.integer("groups", 1)).bias(o.flag("bias", true));
    return made<nn::Conv2dImpl>(options);
  }
  if (kind == "BatchNorm1d" || kind == "BatchNorm2d") return batch_norm(o, kind == "BatchNorm2d");
  if (kind == "LayerNorm") {
    nn::LayerNormOptions options({o.needed("normalized_shape")});
    return made<nn::LayerNormImpl>(options.eps(o.number("eps", 1e-5)));
  }
  if (kind == "Embedding") {
    const int64_t rows = o.needed("num_embeddings");
    return made<nn::EmbeddingImpl>(rows, o.needed("embedding_dim"));
  }
  if (kind == "MaxPool2d")
    return pooling<nn::MaxPool2dImpl>(o, [](int64_t k) { return nn::MaxPool2dOptions(k); });
  if (kind == "AvgPool2d")
    return pooling<nn::AvgPool2dImpl>(o, [](int64_t k) { return nn::AvgPool2dOptions(k); });
  if (kind == "Dropout") return made<nn::DropoutImpl>(nn::DropoutOptions(o.number("p", 0.5)));
  if (kind == "Flatten") return made<nn::FlattenImpl>();
  if (kind == "ReLU") return made<nn::ReLUImpl>();
  if (kind == "GELU") return made<nn::GELUImpl>();
  if (kind == "SiLU") return made<nn::SiLUImpl>();
  if (kind == "Tanh") return made<nn::TanhImpl>();
  if (kind == "Sigmoid") return made<nn::SigmoidImpl>();
  RL_FAIL_AS(NotImplemented, "there is no layer '", kind,
             "' here; there are Linear, Conv2d, BatchNorm1d, BatchNorm2d, LayerNorm, Embedding, MaxPool2d, "
             "AvgPool2d, Dropout, Flatten, ReLU, GELU, SiLU, Tanh and Sigmoid");
}

Layer& layer_at(rl_module module) {
  RL_CHECK_VALUE(module, "the module is NULL");
  return *reinterpret_cast<Layer*>(module);
}

// --- optimizers

template <class O>
O adam_options(Options& o, double weight_decay) {
  O options(o.number("lr", 1e-3));
  const double first = o.number("beta1", 0.9), second = o.number("beta2", 0.999);
  options.betas(std::make_tuple(first, second)).eps(o.number("eps", 1e-8));
  return options.weight_decay(o.number("weight_decay", weight_decay)).amsgrad(o.flag("amsgrad", false));
}

std::unique_ptr<optim::Optimizer> make_optimizer(std::string_view kind, std::vector<Tensor> parameters,
                                                 Options& o) {
  if (kind == "SGD") {
    optim::SGDOptions options(o.number("lr", 1e-3));
    options.momentum(o.number("momentum", 0)).dampening(o.number("dampening", 0));
    options.weight_decay(o.number("weight_decay", 0)).nesterov(o.flag("nesterov", false));
    return std::make_unique<optim::SGD>(std::move(parameters), options);
  }
  if (kind == "Adam")
    return std::make_unique<optim::Adam>(std::move(parameters), adam_options<optim::AdamOptions>(o, 0));
  if (kind == "AdamW")
    return std::make_unique<optim::AdamW>(std::move(parameters), adam_options<optim::AdamWOptions>(o, 1e-2));
  if (kind == "RMSprop") {
    optim::RMSpropOptions options(o.number("lr", 1e-2));
    options.alpha(o.number("alpha", 0.99)).eps(o.number("eps", 1e-8)).momentum(o.number("momentum", 0));
    return std::make_unique<optim::RMSprop>(std::move(parameters),
                                            options.weight_decay(o.number("weight_decay", 0)));
  }
  RL_FAIL_AS(NotImplemented, "there is no optimizer '", kind,
             "' here; there are SGD, Adam, AdamW and RMSprop");
}

optim::Optimizer& optimizer_at(rl_optimizer optimizer) {
  RL_CHECK_VALUE(optimizer, "the optimizer is NULL");
  return *reinterpret_cast<optim::Optimizer*>(optimizer);
}

}  // namespace

extern "C" {

int rl_module_create(const char* kind, const char* names, const double* numbers, size_t count,
                     rl_module* module) {
  return guarded([&] {
    Options options(checked(kind, "kind"), names, numbers, count);
    auto layer = std::make_unique<Layer>(make_layer(kind, options));
    options.finish();
    *checked(module, "module") = reinterpret_cast<rl_module>(layer.release());
  });
}
void rl_module_release(rl_module module) { delete reinterpret_cast<Layer*>(module); }
int rl_module_forward(rl_module module, rl_tensor input, rl_tensor* output) {
  return guarded([&] {
    Layer& layer = layer_at(module);
    *checked(output, "output") = given(layer.forward(*layer.module, tensor_at(input)));
  });
}
int rl_module_train(rl_module module, int on) {
  return guarded([&] { layer_at(module).module->train(on != 0); });
}
int rl_module_tensor_count(rl_module module, size_t* parameters, size_t* buffers) {
  return guarded([&] {
    const Layer& layer = layer_at(module);
    *checked(parameters, "parameters") = layer.parameters;
    *checked(buffers, "buffers") = layer.tensors.size() - layer.parameters;
  });
}
int rl_module_tensor(rl_module module, size_t i, const char** name, rl_tensor* tensor) {
  return guarded([&] {
    const Layer& layer = layer_at(module);
    RL_CHECK_INDEX(i < layer.tensors.size(), "index ", i, " is out of range: there are ",
                   layer.tensors.size());
    *checked(name, "name") = layer.tensors[i].first.c_str();
    *checked(tensor, "tensor") = given(layer.tensors[i].second);
  });
}

int rl_optimizer_create(const char* kind, const rl_tensor* parameters, size_t parameter_count,
                        const char* names, const double* numbers, size_t count, rl_optimizer* optimizer) {
  return guarded([&] {
    Options options(checked(kind, "kind"), names, numbers, count);
    std::vector<Tensor> list;
    for (size_t i = 0; i < parameter_count; ++i)
      list.push_back(tensor_at(checked(parameters, "parameters")[i]));
    auto made = make_optimizer(kind, std::move(list), options);
    options.finish();
    *checked(optimizer, "optimizer") = reinterpret_cast<rl_optimizer>(made.release());
  });
}
void rl_optimizer_release(rl_optimizer optimizer) { delete reinterpret_cast<optim::Optimizer*>(optimizer); }
int rl_optimizer_step(rl_optimizer optimizer) {
  return guarded([&] { optimizer_at(optimizer).step(); });
}
int rl_optimizer_zero_grad(rl_optimizer optimizer) {
  return guarded([&] { optimizer_at(optimizer).zero_grad(); });
}
int rl_optimizer_set_lr(rl_optimizer optimizer, double lr) {
  return guarded([&] {
    for (auto& group : optimizer_at(optimizer).param_groups()) group.options().set_lr(lr);
  });
}
}
