/* Layers and optimizers by name. Functions give 0 on success, as those of rushlight/c.h do. */
#pragma once
#include "rushlight/c.h"

extern "C" {

typedef struct rl_module_s* rl_module;
typedef struct rl_optimizer_s* rl_optimizer;

/* "Linear", "Conv2d", ...: numbers are its options in the order of their names,
 * "in_features,out_features,bias". */
int rl_module_create(const char* kind, const char* names, const double* numbers, size_t count,
                     rl_module* module);
int rl_module_forward(rl_module module, rl_tensor input, rl_tensor* output);
void rl_module_release(rl_module module);
int rl_module_train(rl_module module, int on);
/* Parameters, then buffers; `name` lives as long as the module. */
int rl_module_tensor_count(rl_module module, size_t* parameters, size_t* buffers);
int rl_module_tensor(rl_module module, size_t i, const char** name, rl_tensor* tensor);

/* "SGD", "Adam", "AdamW", ...: options as above. */
int rl_optimizer_create(const char* kind, const rl_tensor* parameters, size_t parameter_count,
                        const char* names, const double* numbers, size_t count, rl_optimizer* optimizer);
void rl_optimizer_release(rl_optimizer optimizer);
int rl_optimizer_step(rl_optimizer optimizer);
int rl_optimizer_zero_grad(rl_optimizer optimizer);
int rl_optimizer_set_lr(rl_optimizer optimizer, double lr);
}
