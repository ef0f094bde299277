// SPDX-License-Identifier: Apache-2.0
// The functions of libcuda.so.1 that the host side calls, over the emulation: engine/compute/gpu/
// loads this library as it loads the driver's.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "fibers.h"

namespace {

constexpr int kSuccess = 0, kOutOfMemory = 2, kNotFound = 500, kInvalidValue = 1,
              kIllegalAddress = 700;

using Graph = std::vector<std::function<void()>>;
thread_local std::unique_ptr<Graph> capturing;
std::mutex mutex;  // kernels run one at a time, whichever thread launches them
std::atomic<size_t> allocated{0}, most_bytes{size_t{8} << 30};

// From the nth launch of a graph on, each call fails as on a device whose context is lost.
std::atomic<long> launches_left{[] {
  const char* given = std::getenv("CT2_TRITON_EMULATED_GPU_FAULT");
  return given == nullptr ? std::numeric_limits<long>::max() : std::atol(given);
}()};
int Working() { return launches_left > 0 ? kSuccess : kIllegalAddress; }

size_t& BytesBefore(void* memory) { return *static_cast<size_t*>(memory); }
constexpr size_t kHead = 256;  // of an allocation: its size, and the alignment of a GPU's

}  // namespace

extern "C" {

using Pointer = unsigned long long;

void ct2t_emulation_seed(unsigned seed) { emulation::Seed(seed); }
void ct2t_emulation_memory(size_t bytes) { most_bytes = bytes; }

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) { return *version = 12090, kSuccess; }
int cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : 101;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "emulated");
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75:  // the major number of its compute capability
      return *value = 8, kSuccess;
    case 76:
      return *value = 0, kSuccess;
    default:
      return kInvalidValue;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int only;
  *context = &only;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void*) { return kSuccess; }
int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory      ? "out of memory"
          : code == kIllegalAddress ? "an illegal memory access was encountered"
                                    : "an error of the emulation";
  return kSuccess;
}
int cuMemGetInfo_v2(size_t* left, size_t* all) {
  *left = most_bytes - allocated;
  *all = most_bytes;
  return kSuccess;
}
int cuMemAlloc_v2(Pointer* to, size_t bytes) {
  if (Working() != kSuccess) return Working();
  if (allocated + bytes > most_bytes) return kOutOfMemory;
  void* memory = std::aligned_alloc(kHead, (kHead + bytes + kHead - 1) / kHead * kHead);
  BytesBefore(memory) = bytes;
  allocated += bytes;
  *to = reinterpret_cast<Pointer>(memory) + kHead;
  return kSuccess;
}
int cuMemFree_v2(Pointer pointer) {
  void* memory = reinterpret_cast<void*>(pointer - kHead);
  allocated -= BytesBefore(memory);
  std::free(memory);
  return kSuccess;
}
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return Working();
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, void*) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kSuccess;
}
int cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, void*) {
  std::memset(reinterpret_cast<void*>(to), value, bytes);
  return kSuccess;
}
int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return kSuccess;
}
int cuModuleUnload(void*) { return kSuccess; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = const_cast<emulation::Kernel*>(emulation::Find(name));
  return *function == nullptr ? kNotFound : kSuccess;
}
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
int cuStreamCreate(void** stream, unsigned) { return *stream = nullptr, kSuccess; }
int cuStreamDestroy_v2(void*) { return kSuccess; }
int cuStreamSynchronize(void*) { return Working(); }
int cuStreamBeginCapture_v2(void*, int) {
  capturing = std::make_unique<Graph>();
  return kSuccess;
}
int cuStreamEndCapture(void*, void** graph) {
  *graph = capturing.release();
  return kSuccess;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  *exec = new Graph(*static_cast<Graph*>(graph));
  return kSuccess;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kSuccess;
}
int cuGraphExecDestroy(void* exec) { return cuGraphDestroy(exec); }
int cuGraphLaunch(void* exec, void*) {
  if (launches_left <= 0 || --launches_left == 0) return kIllegalAddress;
  for (const auto& run : *static_cast<Graph*>(exec)) run();
  return kSuccess;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned, unsigned bx, unsigned,
                   unsigned, unsigned shared, void*, void** args, void**) {
  const auto* kernel = static_cast<const emulation::Kernel*>(function);
  // A graph keeps the arguments as they are when it is captured.
  const auto* bytes = static_cast<const char*>(args[0]);
  const auto run = [=, kept = std::vector<char>(bytes, bytes + kernel->args_bytes)] {
    const std::lock_guard<std::mutex> lock(mutex);
    emulation::Launch(*kernel, kept.data(), {gx, gy}, {bx}, shared);
  };
  if (capturing) {
    capturing->push_back(run);
  } else {
    run();
  }
  return kSuccess;
}
}
