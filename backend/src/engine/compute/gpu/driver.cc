// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/driver.h"

#include <dlfcn.h>

#include <type_traits>

#include "error.h"

namespace ct2triton::gpu {
namespace {

template <class Function>
void Find(void* library, const char* name, Function* to) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw Error(ErrorCode::kNoKernels, std::string("the GPU's driver is too old: it has no ") +
                                           name + "; a driver for CUDA 12 or later is needed");
  }
  *to = reinterpret_cast<Function>(symbol);
}

}  // namespace

Driver::Driver(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(ErrorCode::kNoKernels,
                "no driver of a GPU can be loaded: " + std::string(dlerror()));
  }
  Find(library, "cuInit", &init);
  Find(library, "cuDriverGetVersion", &driver_version);
  Find(library, "cuDeviceGetCount", &device_count);
  Find(library, "cuDeviceGet", &device_get);
  Find(library, "cuDeviceGetName", &device_name);
  Find(library, "cuDeviceGetAttribute", &device_attribute);
  Find(library, "cuDevicePrimaryCtxRetain", &context_retain);
  Find(library, "cuDevicePrimaryCtxRelease_v2", &context_release);
  Find(library, "cuCtxSetCurrent", &context_set);
  Find(library, "cuGetErrorString", &error_text);
  Find(library, "cuMemGetInfo_v2", &memory_info);
  Find(library, "cuMemAlloc_v2", &allocate);
  Find(library, "cuMemFree_v2", &free);
  Find(library, "cuMemHostAlloc", &host_allocate);
  Find(library, "cuMemFreeHost", &host_free);
  Find(library, "cuMemcpyHtoDAsync_v2", &copy_to);
  Find(library, "cuMemcpyDtoHAsync_v2", &copy_from);
  Find(library, "cuMemsetD8Async", &fill);
  Find(library, "cuModuleLoadData", &module_load);
  Find(library, "cuModuleUnload", &module_unload);
  Find(library, "cuModuleGetFunction", &module_function);
  Find(library, "cuFuncSetAttribute", &function_set);
  Find(library, "cuLaunchKernel", &launch);
  Find(library, "cuStreamCreate", &stream_create);
  Find(library, "cuStreamDestroy_v2", &stream_destroy);
  Find(library, "cuStreamSynchronize", &stream_wait);
  Find(library, "cuEventCreate", &event_create);
  Find(library, "cuEventDestroy_v2", &event_destroy);
  Find(library, "cuEventRecord", &event_record);
  Find(library, "cuEventSynchronize", &event_wait);
  Find(library, "cuEventElapsedTime", &event_time);
  Find(library, "cuGraphCreate", &graph_create);
  Find(library, "cuGraphAddKernelNode_v2", &graph_add_kernel);
  Find(library, "cuGraphInstantiateWithFlags", &graph_make);
  Find(library, "cuGraphDestroy", &graph_destroy);
  Find(library, "cuGraphExecDestroy", &graph_exec_destroy);
  Find(library, "cuGraphLaunch", &graph_launch);
}

}  // namespace ct2triton::gpu
