// SPDX-License-Identifier: Apache-2.0
// A library to preload, with which tritonserver believes that the machine has two GPUs: the
// functions of the CUDA runtime that it calls, with all memory in the host. The backend calls the
// CUDA driver instead.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kMemoryBytes = size_t{8} << 30;
// Of cudaDeviceProp, as CUDA 12 lays it out.
constexpr size_t kPropertiesSize = 1032, kTotalMemory = 288, kMajor = 360;
thread_local int current = 0;

int Allocate(void** memory, size_t size) {
  *memory = std::malloc(size);
  return 0;
}

int Copy(void* to, const void* from, size_t size) {
  std::memcpy(to, from, size);
  return 0;
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(int) { return "an error of two_cuda_devices.cc"; }

int cudaGetDeviceCount(int* count) {
  *count = 2;
  return 0;
}
int cudaGetDevice(int* device) {
  *device = current;
  return 0;
}
int cudaSetDevice(int device) {
  current = device;
  return 0;
}
int cudaGetDeviceProperties_v2(void* properties, int) {
  const int major = 8;
  std::memset(properties, 0, kPropertiesSize);
  std::memcpy(static_cast<char*>(properties) + kTotalMemory, &kMemoryBytes, sizeof(kMemoryBytes));
  std::memcpy(static_cast<char*>(properties) + kMajor, &major, sizeof(major));
  return 0;
}
int cudaDeviceGetPCIBusId(char* id, int size, int device) {
  std::snprintf(id, static_cast<size_t>(size), "0000:0%d:00.0", device);
  return 0;
}
int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return 0;
}
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return 0;
}

int cudaMalloc(void** memory, size_t size) { return Allocate(memory, size); }
int cudaMallocManaged(void** memory, size_t size, unsigned) { return Allocate(memory, size); }
int cudaHostAlloc(void** memory, size_t size, unsigned) { return Allocate(memory, size); }
int cudaFree(void* memory) {
  std::free(memory);
  return 0;
}
int cudaFreeHost(void* memory) { return cudaFree(memory); }
int cudaMemGetInfo(size_t* available, size_t* total) {
  *available = *total = kMemoryBytes;
  return 0;
}
int cudaMemcpy(void* to, const void* from, size_t size, int) { return Copy(to, from, size); }
int cudaMemcpyAsync(void* to, const void* from, size_t size, int, void*) {
  return Copy(to, from, size);
}

int cudaStreamCreate(void** stream) { return Allocate(stream, 1); }
int cudaStreamDestroy(void* stream) { return cudaFree(stream); }
int cudaStreamSynchronize(void*) { return 0; }
}
