# Headers with PyTorch's names: each says `#include "torch/names.h"` and nothing else, so they are written here, from one
# list, when the build is configured. They lie in the package; what has content of its own is in include/.
set(forwarding_headers)
macro(forward folder)
  foreach(name ${ARGN})
    list(APPEND forwarding_headers "${folder}/${name}.h")
  endforeach()
endmacro()

forward(ATen ATen Dispatch Dispatch_v2 Functions Tensor TensorIndexing)
forward(ATen/core Tensor ivalue)
forward(c10/core Device DeviceType GradMode InferenceMode Layout MemoryFormat Scalar ScalarType TensorOptions)
forward(c10/macros Export Macros)
forward(c10/util ArrayRef BFloat16 Exception Half Logging Optional StringUtil complex irange)
forward(torch all autograd cuda data enum expanding_array fft linalg nn optim ordered_dict serialize special torch
  types utils version)
forward(torch/csrc/autograd autograd custom_function engine function grad_mode variable)
forward(torch/data dataloader datasets samplers transforms)
forward(torch/nn cloneable functional init module modules options pimpl utils)
forward(torch/nn/functional activation batchnorm conv distance dropout embedding fold instancenorm linear loss
  normalization padding pixelshuffle pooling upsampling vision)
forward(torch/nn/modules activation adaptive batchnorm conv distance dropout embedding fold instancenorm linear loss
  normalization padding pixelshuffle pooling rnn transformer transformercoder transformerlayer upsampling)
forward(torch/nn/modules/container any functional moduledict modulelist named_any parameterdict parameterlist
  sequential)
forward(torch/nn/options activation adaptive batchnorm conv distance dropout embedding fold instancenorm linear loss
  normalization padding pixelshuffle pooling rnn transformer transformercoder transformerlayer upsampling vision)
forward(torch/nn/utils clip_grad convert_parameters rnn)
forward(torch/optim adagrad adam adamw lbfgs optimizer rmsprop sgd)
forward(torch/optim/schedulers lr_scheduler reduce_on_plateau_scheduler step_lr)

set(RUSHLIGHT_FORWARDING_DIR "${RUSHLIGHT_PACKAGE_DIR}/include")
set(forwarding_text "// Written by cmake/ForwardingHeaders.cmake for programs that include PyTorch's header of this name.
#pragma once
#include \"torch/names.h\"
")
foreach(header ${forwarding_headers})
  # Unlike file(WRITE) this leaves a file alone that is as it should be: nothing is compiled again.
  file(CONFIGURE OUTPUT "${RUSHLIGHT_FORWARDING_DIR}/${header}" CONTENT "${forwarding_text}" @ONLY)
endforeach()
file(GLOB_RECURSE written RELATIVE "${RUSHLIGHT_FORWARDING_DIR}" "${RUSHLIGHT_FORWARDING_DIR}/*.h")
foreach(header ${written})
  file(READ "${RUSHLIGHT_FORWARDING_DIR}/${header}" text)
  if(text STREQUAL forwarding_text AND NOT header IN_LIST forwarding_headers)  # an older list had it
    file(REMOVE "${RUSHLIGHT_FORWARDING_DIR}/${header}")
  endif()
endforeach()
install(DIRECTORY "${RUSHLIGHT_FORWARDING_DIR}/" DESTINATION rushlight/include)
