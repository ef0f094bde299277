// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/compute/gpu/device_loss.h"
#include "engine/compute/gpu/driver.h"
#include "error.h"
#include "gpu/args.h"

namespace ct2triton::gpu {

class Graph;
class Staging;

// The device that kernels run on.
struct GpuPlace {
  std::string library;  // of the driver
  int ordinal = 0;      // of the device
  std::string images;   // written by tools/gpu_images.py; empty: the library has kernels
};

// How long the device took for a kernel.
struct KernelTime {
  std::string kernel;
  int outputs = 0, inputs = 0;  // of its matrix; 0: it has none
  float ms = 0;
};

struct Recording;
struct TimedLaunch;

// A GPU with our kernels in it, and one stream of work. Not thread-safe. Every failure of the
// driver is thrown as an Error that says what failed; kUnavailable if memory ran out or the device
// is lost, kNoKernels if it does not run them.
class Gpu {
 public:
  explicit Gpu(const GpuPlace& place);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const std::string& name() const { return name_; }
  int capability() const { return capability_; }               // 80 for 8.0
  std::optional<Error> loss() const { return loss_.error(); }  // none: not lost
  void MakeCurrent() const;                                    // for the calling thread

  Address Allocate(size_t bytes) const;
  void Free(Address address) const noexcept;
  // `from` may be freed when it returns. Waits for the device only for many bytes.
  void CopyTo(Address to, const void* from, size_t bytes) const;
  void CopyFrom(void* to, Address from, size_t bytes) const;  // and waits
  void Zero(Address to, size_t bytes) const;
  size_t FreeBytes() const;

  // args: what the kernel takes.
  template <class Args>
  void Launch(const std::string& kernel, unsigned grid_x, unsigned grid_y, unsigned threads,
              size_t shared_bytes, Args args) {
    LaunchAny(kernel, grid_x, grid_y, threads, shared_bytes, &args);
    if constexpr (std::is_same_v<Args, ProductArgs>) NoteMatrix(args.matrix);
  }
  // Makes a graph of what `launch` launches, one kernel after the other, without running it. It
  // captures no stream: calls of other threads, such as cudaDeviceSynchronize, would break a
  // capture.
  std::unique_ptr<Graph> Record(const std::function<void()>& launch);
  // Times each kernel that `launch` launches, and waits for them. If the device is idle, the times
  // contain what the host takes for the launches.
  std::vector<KernelTime> Time(const std::function<void()>& launch);
  void Wait() const;
  size_t launched() const { return launched_; }  // kernels, without those of graphs

 private:
  friend class Event;
  friend class Graph;
  friend class Staging;
  template <class T>
  friend class Arrivals;
  void Check(int code, const std::string& what) const;
  void LoadKernels(const std::string& image);
  void* Find(const std::string& kernel, size_t shared_bytes);
  void Release() noexcept;
  void LaunchAny(const std::string& kernel, unsigned grid_x, unsigned grid_y, unsigned threads,
                 size_t shared_bytes, void* args);
  void NoteMatrix(const Matrix& matrix);

  DeviceLoss& loss_;
  const Driver driver_;
  int device_ = 0;
  int capability_ = 0;
  std::string name_;
  void* context_ = nullptr;
  void* module_ = nullptr;
  void* stream_ = nullptr;
  std::unique_ptr<Staging> staging_;
  std::map<std::string, void*> functions_;
  Recording* recording_ = nullptr;            // null: kernels are launched
  std::deque<TimedLaunch>* timed_ = nullptr;  // null: launches are not timed
  size_t launched_ = 0;
};

// Waits for the work of a GPU that was launched before Record(). timed: it knows when that ended.
class Event {
 public:
  explicit Event(const Gpu& gpu, bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void Record();
  void Wait() const;
  float MsSince(const Event& begin) const;  // both are timed and over

 private:
  const Gpu& gpu_;
  void* event_ = nullptr;
};

class Graph {
 public:
  Graph(const Gpu& gpu, void* exec, size_t kernels) : gpu_(gpu), exec_(exec), kernels_(kernels) {}
  ~Graph() {
    gpu_.driver_.context_set(gpu_.context_);  // of whatever thread
    gpu_.driver_.graph_exec_destroy(exec_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void Run() const;
  size_t kernels() const { return kernels_; }

 private:
  const Gpu& gpu_;
  void* const exec_;
  const size_t kernels_;
};

// Numbers of one type in the memory of a GPU.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Gpu& gpu, size_t count)
      : gpu_(&gpu), count_(count), address_(gpu.Allocate(count * sizeof(T))) {
    gpu.Zero(address_, count * sizeof(T));
  }
  Buffer(const Gpu& gpu, const std::vector<T>& values) : Buffer(gpu, values.size()) {
    Put(0, values.data(), values.size());
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(count_, other.count_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~Buffer() {
    if (gpu_ != nullptr) gpu_->Free(address_);
  }

  // Only for kernels.
  T* get() const { return reinterpret_cast<T*>(address_); }
  size_t count() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }
  Address address() const { return address_; }
  void Put(size_t place, const T* from, size_t count) {
    if (place + count > count_) throw Error(ErrorCode::kInternal, "a buffer is too small");
    gpu_->CopyTo(address_ + place * sizeof(T), from, count * sizeof(T));
  }
  void Put(size_t place, const T& value) { Put(place, &value, 1); }
  std::vector<T> Get(size_t place, size_t count) const {
    std::vector<T> values(count);
    gpu_->CopyFrom(values.data(), address_ + place * sizeof(T), count * sizeof(T));
    return values;
  }

 private:
  const Gpu* gpu_ = nullptr;
  size_t count_ = 0;
  Address address_ = 0;
};

// Numbers that a GPU copies into the host's memory while the host does other things.
template <class T>
class Arrivals {
 public:
  Arrivals(const Gpu& gpu, size_t count) : gpu_(gpu), count_(count) {
    void* memory = nullptr;
    gpu.Check(gpu.driver_.host_allocate(&memory, count * sizeof(T), 0), "no pinned memory is free");
    values_ = static_cast<T*>(memory);
  }
  ~Arrivals() {
    gpu_.driver_.context_set(gpu_.context_);  // of whatever thread
    gpu_.driver_.host_free(values_);
  }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // They are copied once an event recorded afterwards has occurred.
  void Ask(const Buffer<T>& from) {
    gpu_.Check(gpu_.driver_.copy_from(values_, from.address(), count_ * sizeof(T), gpu_.stream_),
               "copying from the device fails");
  }
  const T& operator[](size_t place) const { return values_[place]; }

 private:
  const Gpu& gpu_;
  const size_t count_;
  T* values_ = nullptr;
};

}  // namespace ct2triton::gpu
