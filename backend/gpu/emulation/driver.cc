// SPDX-License-Identifier: Apache-2.0
// The functions of libcuda.so.1 that the host code calls, implemented with the emulation:
// engine/compute/gpu/ loads this library in place of the driver's. A stream runs only when it is
// waited for, so that a result that is read too early is wrong.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fibers.h"

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 101, kEccError = 214,
              kNoContext = 201, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
              kIllegalAddress = 700;
constexpr unsigned kNoTimes = 2;  // a flag of an event

using Work = std::function<void()>;
using Graph = std::deque<Work>;
std::recursive_mutex mutex;           // guards all of the following; kernels run one at a time
size_t most_bytes = size_t{8} << 30;  // of each device

struct Device {
  size_t allocated = 0;
};
std::vector<Device> devices(std::getenv("CT2_TRITON_EMULATED_GPUS") == nullptr
                                ? 1
                                : std::stoul(std::getenv("CT2_TRITON_EMULATED_GPUS")));
thread_local Device* current = nullptr;  // whose context the thread uses

struct Stream {
  Device* device = nullptr;
  std::deque<Work> waiting;
  size_t done = 0, graphs = 0;  // graphs: number of waiting graphs
};
std::set<Stream*> streams;
size_t most_graphs = 0;  // largest number of graphs waiting in a stream

using Moment = std::chrono::steady_clock::time_point;

struct Event {
  Stream* stream = nullptr;
  size_t after = 0;                      // number of work items of the stream before the event
  std::shared_ptr<Moment> reached = {};  // null: it is not timed
};

std::set<const char*> pinned;  // begins of host memory that the device may read

// "n,code": the nth graph and all later calls fail with this code of the driver, as on a device
// whose context an illegal access has poisoned; from 0, also the load of the kernels.
struct Fault {
  long graphs_left = std::numeric_limits<long>::max();
  int code = kSuccess;
};
Fault fault = [] {
  Fault read;
  const char* given = std::getenv("CT2_TRITON_EMULATED_GPU_FAULT");
  if (given != nullptr && std::sscanf(given, "%ld,%d", &read.graphs_left, &read.code) != 2) {
    std::fprintf(stderr, "emulation: CT2_TRITON_EMULATED_GPU_FAULT is \"%s\", not \"n,code\"\n",
                 given);
    std::abort();
  }
  return read;
}();
int Working() { return fault.graphs_left > 0 ? kSuccess : fault.code; }

// What a driver says of a call in this state of the thread. Like a strict driver, it wants the
// context of a stream to be the thread's.
int Allows(const void* stream = nullptr) {
  if (current == nullptr) return kNoContext;
  const bool of_another =
      stream != nullptr && static_cast<const Stream*>(stream)->device != current;
  return of_another ? kInvalidHandle : kSuccess;
}

int RunUntil(Stream* stream, size_t done) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  while (stream->done < done) {
    const Work work = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    ++stream->done;
    if (Working() == kSuccess) work();
  }
  return Working();
}

int RunAll(Stream* stream) { return RunUntil(stream, stream->done + stream->waiting.size()); }

void RunAllStreams() {
  for (Stream* stream : streams) RunAll(stream);
}

int Add(void* stream, Work work) {
  if (const int code = Allows(stream)) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  static_cast<Stream*>(stream)->waiting.push_back(std::move(work));
  return Working();
}

bool IsPinned(const void* memory) {
  const auto after = pinned.upper_bound(static_cast<const char*>(memory));
  if (after == pinned.begin()) return false;
  const char* begin = *std::prev(after);
  return static_cast<const char*>(memory) < begin + reinterpret_cast<const size_t*>(begin)[-1];
}

// For memory that is not pinned, a driver may wait for the stream first.
int Copy(void* to, const void* from, const void* on_host, size_t bytes, void* stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const int added = Add(stream, [=] { std::memcpy(to, from, bytes); });
  return added != kSuccess || IsPinned(on_host) ? added : RunAll(static_cast<Stream*>(stream));
}

// Like a driver, it keeps the arguments as they are now.
Work RunOf(const void* function, unsigned grid_x, unsigned grid_y, unsigned threads,
           unsigned shared_bytes, void** args) {
  const auto* kernel = static_cast<const emulation::Kernel*>(function);
  const auto* bytes = static_cast<const char*>(args[0]);
  return [=, kept = std::vector<char>(bytes, bytes + kernel->args_bytes)] {
    emulation::Launch(*kernel, kept.data(), {grid_x, grid_y}, {threads}, shared_bytes);
  };
}

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  void* function;
  unsigned grid_x, grid_y, grid_z, threads, block_y, block_z, shared_bytes;
  void **args, **extra;
  void *kernel, *context;
};

// Stands before an allocation.
struct Block {
  size_t bytes;
  Device* device;
};
constexpr size_t kHead = 256;  // bytes before an allocation, for this; a GPU's alignment

}  // namespace

extern "C" {

using Pointer = unsigned long long;

void ct2t_emulation_seed(unsigned seed) { emulation::Seed(seed); }
void ct2t_emulation_memory(size_t bytes) { most_bytes = bytes; }
// Returns the largest number of graphs that waited in a stream since the last call.
size_t ct2t_emulation_graphs_at_once() { return std::exchange(most_graphs, 0); }

int cuInit(unsigned) { return kSuccess; }
int cuDriverGetVersion(int* version) { return *version = 12090, kSuccess; }
int cuDeviceGetCount(int* count) { return *count = static_cast<int>(devices.size()), kSuccess; }
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return static_cast<size_t>(ordinal) < devices.size() ? kSuccess : kNoDevice;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::snprintf(name, static_cast<size_t>(bytes), "emulated");
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75:  // the major compute capability
      return *value = 8, kSuccess;
    case 76:
      return *value = 0, kSuccess;
    default:
      return kInvalidValue;
  }
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &devices[static_cast<size_t>(device)];
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void* context) {
  current = static_cast<Device*>(context);
  return kSuccess;
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory      ? "out of memory"
          : code == kEccError       ? "uncorrectable ECC error encountered"
          : code == kIllegalAddress ? "an illegal memory access was encountered"
                                    : "an error of the emulation";
  return kSuccess;
}
int cuMemGetInfo_v2(size_t* left, size_t* all) {
  if (const int code = Allows()) return code;
  *left = most_bytes - std::min<size_t>(most_bytes, current->allocated);
  *all = most_bytes;
  return kSuccess;
}
int cuMemAlloc_v2(Pointer* to, size_t bytes) {
  if (const int code = Allows()) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (Working() != kSuccess) return Working();
  if (current->allocated + bytes > most_bytes) return kOutOfMemory;
  void* memory = std::aligned_alloc(kHead, (kHead + bytes + kHead - 1) / kHead * kHead);
  *static_cast<Block*>(memory) = {bytes, current};
  current->allocated += bytes;
  *to = reinterpret_cast<Pointer>(memory) + kHead;
  return kSuccess;
}
int cuMemFree_v2(Pointer pointer) {
  if (const int code = Allows()) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  RunAllStreams();  // as the driver does
  void* memory = reinterpret_cast<void*>(pointer - kHead);
  const Block& block = *static_cast<Block*>(memory);
  block.device->allocated -= block.bytes;
  std::free(memory);
  return kSuccess;
}
int cuMemHostAlloc(void** to, size_t bytes, unsigned) {
  if (const int code = Allows()) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* memory = static_cast<char*>(std::malloc(kHead + bytes)) + kHead;
  reinterpret_cast<size_t*>(memory)[-1] = bytes;
  std::memset(memory, 0xff, bytes);
  pinned.insert(memory);
  *to = memory;
  return kSuccess;
}
int cuMemFreeHost(void* memory) {
  if (const int code = Allows()) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  RunAllStreams();
  pinned.erase(static_cast<char*>(memory));
  std::free(static_cast<char*>(memory) - kHead);
  return kSuccess;
}
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t bytes, void* stream) {
  return Copy(reinterpret_cast<void*>(to), from, from, bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t bytes, void* stream) {
  return Copy(to, reinterpret_cast<const void*>(from), to, bytes, stream);
}
int cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, void* stream) {
  return Add(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
}
int cuEventCreate(void** event, unsigned flags) {
  if (const int code = Allows()) return code;
  auto* made = new Event;
  if ((flags & kNoTimes) == 0) made->reached = std::make_shared<Moment>();
  return *event = made, kSuccess;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
int cuEventRecord(void* event, void* stream) {
  if (const int code = Allows(stream)) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* on = static_cast<Stream*>(stream);
  auto* recorded = static_cast<Event*>(event);
  if (auto reached = recorded->reached) {
    on->waiting.push_back([reached] { *reached = std::chrono::steady_clock::now(); });
  }
  recorded->stream = on;
  recorded->after = on->done + on->waiting.size();
  return Working();
}
int cuEventSynchronize(void* event) {
  const auto* waited = static_cast<const Event*>(event);
  return waited->stream == nullptr ? kSuccess : RunUntil(waited->stream, waited->after);
}
int cuEventElapsedTime(float* ms, void* begin, void* end) {
  const Moment* moments[] = {static_cast<Event*>(begin)->reached.get(),
                             static_cast<Event*>(end)->reached.get()};
  for (const Moment* moment : moments) {
    if (moment == nullptr) return kInvalidHandle;
    if (*moment == Moment()) return kNotReady;
  }
  *ms = std::chrono::duration<float, std::milli>(*moments[1] - *moments[0]).count();
  return kSuccess;
}
int cuModuleLoadData(void** module, const void* image) {
  if (const int code = Allows()) return code;
  *module = const_cast<void*>(image);
  return Working();
}
int cuModuleUnload(void*) { return kSuccess; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  if (const int code = Allows()) return code;
  *function = const_cast<emulation::Kernel*>(emulation::Find(name));
  return *function == nullptr ? kNotFound : kSuccess;
}
int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
int cuStreamCreate(void** stream, unsigned) {
  if (const int code = Allows()) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* made = new Stream;
  made->device = current;
  streams.insert(made);
  *stream = made;
  return kSuccess;
}
int cuStreamDestroy_v2(void* stream) {
  if (const int code = Allows(stream)) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  RunAll(static_cast<Stream*>(stream));
  streams.erase(static_cast<Stream*>(stream));
  delete static_cast<Stream*>(stream);
  return kSuccess;
}
int cuStreamSynchronize(void* stream) {
  if (const int code = Allows(stream)) return code;
  return RunAll(static_cast<Stream*>(stream));
}
int cuGraphCreate(void** graph, unsigned) {
  if (const int code = Allows()) return code;
  return *graph = new Graph, kSuccess;
}
// Only as the last link of a chain: others could run at the same time.
int cuGraphAddKernelNode_v2(void** node, void* graph, void* const* after, size_t count,
                            const KernelNode* launch) {
  if (const int code = Allows()) return code;
  auto* chain = static_cast<Graph*>(graph);
  const bool is_first = chain->empty();
  if (count != (is_first ? 0 : 1)) return kInvalidValue;
  if (!is_first && *after != &chain->back()) return kInvalidValue;
  chain->push_back(RunOf(launch->function, launch->grid_x, launch->grid_y, launch->threads,
                         launch->shared_bytes, launch->args));
  *node = &chain->back();
  return kSuccess;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  if (const int code = Allows()) return code;
  *exec = new Graph(*static_cast<Graph*>(graph));
  return kSuccess;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kSuccess;
}
int cuGraphExecDestroy(void* exec) { return cuGraphDestroy(exec); }
int cuGraphLaunch(void* exec, void* stream) {
  if (const int code = Allows(stream)) return code;
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* on = static_cast<Stream*>(stream);
  most_graphs = std::max(most_graphs, ++on->graphs);
  // It runs to its end, even if it is destroyed meanwhile.
  return Add(stream, [on, graph = *static_cast<Graph*>(exec)] {
    --on->graphs;
    if (--fault.graphs_left == 0) return;
    for (const Work& run : graph) run();
  });
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned, unsigned bx, unsigned,
                   unsigned, unsigned shared, void* stream, void** args, void**) {
  return Add(stream, RunOf(function, gx, gy, bx, shared, args));
}
}
