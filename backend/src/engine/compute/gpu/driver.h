// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace ct2triton::gpu {

using Address = unsigned long long;  // of a device's memory

// CUDA_KERNEL_NODE_PARAMS_v2: the launch of a kernel in a graph. The driver copies the arguments.
struct KernelNode {
  void* function;
  unsigned grid_x, grid_y, grid_z, threads, block_y, block_z, shared_bytes;
  void** args;
  void** extra;
  void* kernel;   // null: `function`
  void* context;  // null: the thread's
};

// The functions of the CUDA driver that a GPU needs, looked up in the library at run time: nothing
// of CUDA is linked or shipped.
struct Driver {
  // library: "libcuda.so.1", or one with the same functions. Throws Error(kNoKernels) if it or
  // one of them is missing.
  explicit Driver(const std::string& library);

  int (*init)(unsigned);
  int (*driver_version)(int*);
  int (*device_count)(int*);
  int (*device_get)(int* device, int ordinal);
  int (*device_name)(char* name, int bytes, int device);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*context_retain)(void** context, int device);
  int (*context_release)(int device);
  int (*context_set)(void* context);
  int (*error_text)(int code, const char** text);
  int (*memory_info)(size_t* left, size_t* all);
  int (*allocate)(Address* to, size_t bytes);
  int (*free)(Address);
  int (*host_allocate)(void** to, size_t bytes, unsigned flags);
  int (*host_free)(void*);
  int (*copy_to)(Address to, const void* from, size_t bytes, void* stream);
  int (*copy_from)(void* to, Address from, size_t bytes, void* stream);
  int (*fill)(Address to, unsigned char value, size_t bytes, void* stream);
  int (*module_load)(void** module, const void* image);
  int (*module_unload)(void* module);
  int (*module_function)(void** function, void* module, const char* name);
  int (*function_set)(void* function, int attribute, int value);
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned threads,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** args, void** extra);
  int (*stream_create)(void** stream, unsigned flags);
  int (*stream_destroy)(void* stream);
  int (*stream_wait)(void* stream);
  int (*event_create)(void** event, unsigned flags);
  int (*event_destroy)(void* event);
  int (*event_record)(void* event, void* stream);
  int (*event_wait)(void* event);
  int (*event_time)(float* ms, void* begin, void* end);
  int (*graph_create)(void** graph, unsigned flags);
  int (*graph_add_kernel)(void** node, void* graph, void* const* after, size_t count,
                          const KernelNode* launch);
  int (*graph_make)(void** exec, void* graph, unsigned long long flags);
  int (*graph_destroy)(void* graph);
  int (*graph_exec_destroy)(void* exec);
  int (*graph_launch)(void* exec, void* stream);
};

}  // namespace ct2triton::gpu
