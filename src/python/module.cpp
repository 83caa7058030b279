// The extension module rushlight._C.
#include "python/tensor_type.h"

namespace rushlight::python {

void init_conversions(PyObject* module);
void init_legacy_constructor(PyObject* module);
void init_transforms(PyObject* module);
void init_torch_dispatch(PyObject* module);
void init_call_observer(PyObject* module);
void init_op_overload(PyObject* module);
void init_traits(PyObject* module);
void init_answered_facts(PyObject* module);
void init_wrapper_subclass(PyObject* module);
void init_custom_ops(PyObject* module);
void init_replaced_kernels(PyObject* module);
void init_package_name(PyObject* module);
void init_pickling(PyObject* module);
void init_archive(PyObject* module);
void init_unpickler(PyObject* module);
void init_module_attributes(PyObject* module);
void init_shared_memory(PyObject* module);
void init_process(PyObject* module);
void init_profiler(PyObject* module);
void init_module_tree(PyObject* module);
void init_overridable(PyObject* module);
void init_grad_scopes(PyObject* module);
void init_cuda(PyObject* module);
void init_jit(PyObject* module);
void init_generation(PyObject* module);
void init_guards(PyObject* module);
void init_compiled_graph(PyObject* module);
void init_compiled_call(PyObject* module);

static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                 "rushlight._C",
                                 "The core of Rushlight: tensors, operators, automatic differentiation.",
                                 -1,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

static void init_all(PyObject* module) {
  Name::make_all();
  init_errors(module);
  init_dtypes(module);
  init_devices(module);
  init_size(module);
  init_tensor_type(module);
  init_overrides(module);
  init_overridable(module);
  init_grad_scopes(module);
  init_operators(module);
  init_tensor_members();  // after the operators: hand-written members win
  init_conversions(module);
  init_generator(module);
  init_factory(module);
  init_legacy_constructor(module);
  init_records(module);
  init_traits(module);
  init_process_settings(module);
  init_autocast(module);
  init_indexing(module);
  init_storage(module);
  init_shared_memory(module);
  init_process(module);
  init_numpy(module);
  init_dlpack(module);
  init_module_base(module);
  init_module_tree(module);
  if (init_autograd) init_autograd(module);
  init_transforms(module);
  init_torch_dispatch(module);
  init_call_observer(module);
  init_op_overload(module);
  init_answered_facts(module);
  init_wrapper_subclass(module);
  init_custom_ops(module);
  init_replaced_kernels(module);
  init_package_name(module);
  init_pickling(module);
  init_archive(module);
  init_unpickler(module);
  init_module_attributes(module);
  init_profiler(module);
  init_cuda(module);
  init_jit(module);
  init_generation(module);
  init_guards(module);
  init_compiled_graph(module);
  init_compiled_call(module);
}

}  // namespace rushlight::python

PyMODINIT_FUNC PyInit__C() {
  using namespace rushlight::python;
  PyRef module(PyModule_Create(&definition));
#ifdef Py_GIL_DISABLED
  if (module) PyUnstable_Module_SetGIL(module.get(), Py_MOD_GIL_NOT_USED);
#endif
  if (!module || guard_status([&] { init_all(module.get()); }) < 0) return nullptr;
  return module.release();
}
