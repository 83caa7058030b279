// oneDNN, loaded with its first use: that takes as long as loading all else, and many programs never use it.
// Its C++ interface calls C functions; those below are looked up in the library when they are first called.
// What is not in this list fails to link.
#pragma once
#ifdef RUSHLIGHT_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>

namespace rushlight::cpu {
// The address of a function of libdnnl. Fails where the library cannot be loaded.
void* onednn_symbol(const char* name);
}  // namespace rushlight::cpu

#define RL_ONEDNN(name)                                                                              \
  ([] {                                                                                              \
    static const auto f = reinterpret_cast<decltype(&name)>(::rushlight::cpu::onednn_symbol(#name)); \
    return f;                                                                                        \
  }())
#define dnnl_convolution_backward_data_primitive_desc_create \
  RL_ONEDNN(dnnl_convolution_backward_data_primitive_desc_create)
#define dnnl_convolution_backward_weights_primitive_desc_create \
  RL_ONEDNN(dnnl_convolution_backward_weights_primitive_desc_create)
#define dnnl_convolution_forward_primitive_desc_create \
  RL_ONEDNN(dnnl_convolution_forward_primitive_desc_create)
#define dnnl_engine_create RL_ONEDNN(dnnl_engine_create)
#define dnnl_engine_destroy RL_ONEDNN(dnnl_engine_destroy)
#define dnnl_get_effective_cpu_isa RL_ONEDNN(dnnl_get_effective_cpu_isa)
#define dnnl_matmul_primitive_desc_create RL_ONEDNN(dnnl_matmul_primitive_desc_create)
#define dnnl_memory_create_v2 RL_ONEDNN(dnnl_memory_create_v2)
#define dnnl_memory_desc_clone RL_ONEDNN(dnnl_memory_desc_clone)
#define dnnl_memory_desc_create_with_strides RL_ONEDNN(dnnl_memory_desc_create_with_strides)
#define dnnl_memory_desc_create_with_tag RL_ONEDNN(dnnl_memory_desc_create_with_tag)
#define dnnl_memory_desc_destroy RL_ONEDNN(dnnl_memory_desc_destroy)
#define dnnl_memory_desc_equal RL_ONEDNN(dnnl_memory_desc_equal)
#define dnnl_memory_desc_get_size_v2 RL_ONEDNN(dnnl_memory_desc_get_size_v2)
#define dnnl_memory_desc_query RL_ONEDNN(dnnl_memory_desc_query)
#define dnnl_memory_desc_query_v2 RL_ONEDNN(dnnl_memory_desc_query_v2)
#define dnnl_memory_destroy RL_ONEDNN(dnnl_memory_destroy)
#define dnnl_memory_get_engine RL_ONEDNN(dnnl_memory_get_engine)
#define dnnl_memory_get_memory_desc RL_ONEDNN(dnnl_memory_get_memory_desc)
#define dnnl_post_ops_append_eltwise RL_ONEDNN(dnnl_post_ops_append_eltwise)
#define dnnl_post_ops_append_sum RL_ONEDNN(dnnl_post_ops_append_sum)
#define dnnl_post_ops_create RL_ONEDNN(dnnl_post_ops_create)
#define dnnl_post_ops_destroy RL_ONEDNN(dnnl_post_ops_destroy)
#define dnnl_primitive_attr_create RL_ONEDNN(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy RL_ONEDNN(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_post_ops RL_ONEDNN(dnnl_primitive_attr_set_post_ops)
#define dnnl_primitive_attr_set_scratchpad_mode RL_ONEDNN(dnnl_primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_create RL_ONEDNN(dnnl_primitive_create)
#define dnnl_primitive_desc_destroy RL_ONEDNN(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_next_impl RL_ONEDNN(dnnl_primitive_desc_next_impl)
#define dnnl_primitive_desc_query RL_ONEDNN(dnnl_primitive_desc_query)
#define dnnl_primitive_desc_query_md RL_ONEDNN(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy RL_ONEDNN(dnnl_primitive_destroy)
#define dnnl_primitive_execute RL_ONEDNN(dnnl_primitive_execute)
#define dnnl_reorder_primitive_desc_create RL_ONEDNN(dnnl_reorder_primitive_desc_create)
#define dnnl_set_primitive_cache_capacity RL_ONEDNN(dnnl_set_primitive_cache_capacity)
#define dnnl_stream_create RL_ONEDNN(dnnl_stream_create)
#define dnnl_stream_destroy RL_ONEDNN(dnnl_stream_destroy)
#define dnnl_stream_wait RL_ONEDNN(dnnl_stream_wait)

#include <oneapi/dnnl/dnnl.hpp>
#endif
