/* Tensors, operators, gradients and errors from C. */
#include <math.h>
#include <rushlight/c.h>
#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      snprintf(message, size, "line %d: %s (%s)", __LINE__, #condition, rl_last_error()); \
      return 1;                                                                           \
    }                                                                                     \
  } while (0)

static void count_release(void* context) { ++*(int*)context; }

static rl_value of_tensor(rl_tensor t) {
  rl_value v;
  memset(&v, 0, sizeof v);
  v.kind = RL_TENSOR;
  v.as.tensor = t;
  return v;
}
static rl_value of_int(int64_t i) {
  rl_value v;
  memset(&v, 0, sizeof v);
  v.kind = RL_INT;
  v.as.integer = i;
  return v;
}

int run_c_interface(char* message, size_t size) {
  const int64_t shape[] = {2, 3};
  float memory[] = {1, 2, 3, 4, 5, 6};
  int released = 0, dtype = -1;
  size_t dim = 0, count = 1;
  double number = 0;
  int64_t numel = 0;
  const int64_t* sizes = NULL;
  rl_tensor x = NULL, grad = NULL, bad = NULL;
  rl_value results[3], arguments[2];

  EXPECT(rl_c_version() == RL_C_VERSION);
  EXPECT(rl_tensor_from_memory(memory, shape, NULL, 2, RL_FLOAT32, count_release, &released, &x) == RL_OK);
  EXPECT(rl_tensor_dim(x, &dim) == RL_OK && dim == 2);
  EXPECT(rl_tensor_sizes(x, &sizes) == RL_OK && sizes[1] == 3);
  EXPECT(rl_tensor_dtype(x, &dtype) == RL_OK && dtype == RL_FLOAT32);
  EXPECT(rl_tensor_numel(x, &numel) == RL_OK && numel == 6);

  /* y = sum(x * x); dy/dx = 2 x */
  EXPECT(rl_tensor_set_requires_grad(x, 1) == RL_OK);
  arguments[0] = arguments[1] = of_tensor(x);
  EXPECT(rl_call("mul.Tensor", arguments, 2, results, &count) == RL_OK && count == 1);
  arguments[0] = results[0];
  count = 1;
  EXPECT(rl_call("sum", arguments, 1, results, &count) == RL_OK);
  rl_tensor_release(arguments[0].as.tensor);
  EXPECT(rl_tensor_item(results[0].as.tensor, &number) == RL_OK && number == 91);
  EXPECT(rl_tensor_backward(results[0].as.tensor) == RL_OK);
  rl_tensor_release(results[0].as.tensor);
  EXPECT(rl_tensor_grad(x, &grad) == RL_OK && grad != NULL);
  void* data = NULL;
  EXPECT(rl_tensor_data(grad, &data) == RL_OK && ((float*)data)[5] == 12);
  rl_tensor_release(grad);

  /* Several results, overloads found by their arguments, numbers in the place of tensors. */
  EXPECT(rl_tensor_set_requires_grad(x, 0) == RL_OK);
  arguments[0] = of_tensor(x);
  arguments[1] = of_int(1);
  count = 3;
  EXPECT(rl_call("max", arguments, 2, results, &count) == RL_OK && count == 2);
  rl_tensor_release(results[0].as.tensor);
  rl_tensor_release(results[1].as.tensor);
  count = 3;
  EXPECT(rl_call("add", arguments, 2, results, &count) == RL_OK && count == 1);
  EXPECT(rl_tensor_data(results[0].as.tensor, &data) == RL_OK && ((float*)data)[0] == 2);
  rl_tensor_release(results[0].as.tensor);
  count = 3;
  EXPECT(rl_call("split.Tensor", arguments, 2, results, &count) == RL_OK && count == 2);
  rl_tensor_release(results[0].as.tensor);
  rl_tensor_release(results[1].as.tensor);
  EXPECT(strstr(rl_schema("linalg::inv"), "inv(Tensor") != NULL && rl_schema("nothing") == NULL);

  /* Mistakes are error numbers with a text. */
  count = 3;
  EXPECT(rl_call("nothing", arguments, 2, results, &count) == RL_ERROR_NOT_IMPLEMENTED);
  EXPECT(strstr(rl_last_error(), "nothing") != NULL);
  arguments[0] = of_int(3);
  EXPECT(rl_call("mm", arguments, 1, results, &count) == RL_ERROR_TYPE);
  arguments[0] = arguments[1] = of_tensor(x);
  EXPECT(rl_call("mm", arguments, 2, results, &count) == RL_ERROR_RUNTIME);
  EXPECT(rl_tensor_numel(NULL, &numel) == RL_ERROR_VALUE);
  EXPECT(rl_tensor_empty(shape, 2, 99, &bad) == RL_ERROR_VALUE && bad == NULL);
  count = 0;
  EXPECT(rl_call("add", arguments, 2, results, &count) == RL_ERROR_VALUE);
  EXPECT(rl_load("/nowhere/x.pt", &bad) == RL_ERROR_RUNTIME);

  rl_tensor_release(x);
  rl_tensor_release(NULL);
  EXPECT(released == 1);
  return 0;
}
