// Calls the operator of clipped.cpp by name, and its derivative.
#include <rushlight/c.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::Tensor x = torch::tensor({0.0, 1.0, 5.0}, torch::requires_grad());
  rl_value arguments[2] = {};
  arguments[0].kind = RL_TENSOR;
  arguments[0].as.tensor = reinterpret_cast<rl_tensor>(x.impl());
  arguments[1].kind = RL_FLOAT;
  arguments[1].as.number = 10;
  rl_value result;
  size_t count = 1;
  if (rl_call("clipped_ops::clipped_exp", arguments, 2, &result, &count) != RL_OK) {
    std::cerr << rl_last_error() << "\n";
    return 1;
  }
  arguments[0].as.tensor = result.as.tensor;
  rl_value sum;
  count = 1;
  if (rl_call("sum", arguments, 1, &sum, &count) != RL_OK || rl_tensor_backward(sum.as.tensor) != RL_OK) {
    std::cerr << rl_last_error() << "\n";
    return 1;
  }
  rl_tensor_release(result.as.tensor);
  rl_tensor_release(sum.as.tensor);
  std::cout << x.grad() << "\n";
}
