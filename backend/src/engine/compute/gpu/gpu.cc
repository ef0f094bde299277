// SPDX-License-Identifier: Apache-2.0
#include "engine/compute/gpu/gpu.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/compute/gpu/images.h"
#include "error.h"

namespace ct2triton::gpu {
namespace {

constexpr int kOutOfMemory = 2, kNotFound = 500;
constexpr int kMostDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr size_t kSharedWithoutAsking = 48 << 10;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned kNoTimes = 2;  // of an event
// The host waits for the device once per this many bytes.
constexpr size_t kStagingBytes = 1 << 20;
constexpr size_t kStagedAtOnce = 128 << 10;  // copies of more bytes wait for the device

// Whether this CUresult says that the driver cannot load our kernels.
bool RefusesImage(int code) {
  switch (code) {
    case 200:  // an invalid image
    case 209:  // no binary for this GPU
    case 218:  // invalid PTX
    case 221:  // no compiler of PTX
    case 222:  // PTX of a later version
    case 223:  // compiling of PTX is disabled
      return true;
    default:
      return false;
  }
}

// Gives a variable another value while it exists.
template <class T>
class Meanwhile {
 public:
  Meanwhile(T* variable, T value) : variable_(variable), before_(std::exchange(*variable, value)) {}
  ~Meanwhile() { *variable_ = before_; }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  T* const variable_;
  const T before_;
};

}  // namespace

// A graph in the making.
struct Recording {
  void* graph = nullptr;
  void* last = nullptr;  // its last node
  size_t kernels = 0;
};

struct TimedLaunch {
  explicit TimedLaunch(const Gpu& gpu) : begin(gpu, true), end(gpu, true) {}
  KernelTime time = {};
  Event begin, end;
};

// Pinned memory for copies to a device, because with other memory the driver may wait for the
// stream first.
class Staging {
 public:
  explicit Staging(const Gpu& gpu) : gpu_(gpu) {
    void* memory = nullptr;
    gpu.Check(gpu.driver_.host_allocate(&memory, kStagingBytes, 0), "no pinned memory is free");
    memory_ = static_cast<unsigned char*>(memory);
  }
  ~Staging() { gpu_.driver_.host_free(memory_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const void* Put(const void* from, size_t bytes) {
    if (used_ + bytes > kStagingBytes) {
      gpu_.Wait();
      used_ = 0;
    }
    void* to = memory_ + used_;
    std::memcpy(to, from, bytes);
    used_ += (bytes + 15) / 16 * 16;
    return to;
  }

 private:
  const Gpu& gpu_;
  unsigned char* memory_ = nullptr;
  size_t used_ = 0;
};

void Gpu::Check(int code, const std::string& what) const {
  if (code == 0) return;
  const char* text = nullptr;
  driver_.error_text(code, &text);
  const std::string failure = "GPU " + name_ + ": " + what + ": " +
                              (text != nullptr ? text : "unknown error") + " (" +
                              std::to_string(code) + ")";
  if (LosesDevice(code)) throw loss_.Note(failure);
  throw Error(code == kOutOfMemory ? ErrorCode::kUnavailable : ErrorCode::kInternal, failure);
}

Gpu::Gpu(const GpuPlace& place)
    : loss_(DeviceLoss::Of(place.library, place.ordinal)), driver_(place.library) {
  if (const auto lost = loss()) throw *lost;
  const int ordinal = place.ordinal;
  constexpr int kMajor = 75, kMinor = 76;  // of the compute capability
  Check(driver_.init(0), "the driver does not start");
  int count = 0;
  Check(driver_.device_count(&count), "no devices are listed");
  if (ordinal < 0 || ordinal >= count) {
    ThrowInvalid("there is no GPU " + std::to_string(ordinal) + "; this machine has " +
                 std::to_string(count));
  }
  Check(driver_.device_get(&device_, ordinal), "the device cannot be opened");
  std::vector<char> name(256);
  Check(driver_.device_name(name.data(), static_cast<int>(name.size()), device_), "no name");
  name_ = std::to_string(ordinal) + " (" + name.data() + ")";
  int major = 0, minor = 0;
  Check(driver_.device_attribute(&major, kMajor, device_), "no compute capability");
  Check(driver_.device_attribute(&minor, kMinor, device_), "no compute capability");
  capability_ = 10 * major + minor;
  Check(driver_.context_retain(&context_, device_), "no context can be made");
  try {
    MakeCurrent();
    LoadKernels(place.images);
    Check(driver_.stream_create(&stream_, kNonBlocking), "no stream can be made");
    staging_ = std::make_unique<Staging>(*this);
  } catch (...) {
    Release();
    throw;
  }
}

Gpu::~Gpu() {
  driver_.context_set(context_);
  Release();
}

void Gpu::Release() noexcept {
  staging_.reset();
  if (stream_ != nullptr) driver_.stream_destroy(stream_);
  if (module_ != nullptr) driver_.module_unload(module_);
  driver_.context_set(nullptr);  // which may end now
  driver_.context_release(device_);
}

void Gpu::LoadKernels(const std::string& image) {
  const std::string fitting = image.empty() ? image : ImageFor(image, capability_);
  int version = 0;
  Check(driver_.driver_version(&version), "no version of the driver");
  const int code = driver_.module_load(&module_, fitting.c_str());
  if (RefusesImage(code)) {
    throw Error(ErrorCode::kNoKernels,
                "GPU " + name_ + ": its driver, for CUDA " + std::to_string(version / 1000) + "." +
                    std::to_string(version % 1000 / 10) + ", does not load our kernels (" +
                    std::to_string(code) + "); docs/gpu.md says which drivers do");
  }
  Check(code, "the kernels do not load");
}

void Gpu::MakeCurrent() const {
  Check(driver_.context_set(context_), "its context cannot be used");
}

Address Gpu::Allocate(size_t bytes) const {
  Address address = 0;
  Check(driver_.allocate(&address, std::max<size_t>(bytes, 1)),
        "no " + std::to_string(bytes) + " bytes of memory are free");
  return address;
}

void Gpu::Free(Address address) const noexcept {
  if (address == 0) return;
  driver_.context_set(context_);  // of whatever thread
  driver_.free(address);
}

void Gpu::CopyTo(Address to, const void* from, size_t bytes) const {
  if (bytes == 0) return;  // `from` may be null
  const void* there = bytes <= kStagedAtOnce ? staging_->Put(from, bytes) : from;
  Check(driver_.copy_to(to, there, bytes, stream_), "copying to the device fails");
  // The driver may read other memory than `there` until Wait().
}

void Gpu::CopyFrom(void* to, Address from, size_t bytes) const {
  Check(driver_.copy_from(to, from, bytes, stream_), "copying from the device fails");
  Wait();
}

void Gpu::Zero(Address to, size_t bytes) const {
  if (bytes > 0) Check(driver_.fill(to, 0, bytes, stream_), "filling memory fails");
}

size_t Gpu::FreeBytes() const {
  size_t left = 0, all = 0;
  Check(driver_.memory_info(&left, &all), "its free memory is not known");
  return left;
}

void* Gpu::Find(const std::string& kernel, size_t shared_bytes) {
  void*& function = functions_[kernel];
  if (function == nullptr) {
    const int code = driver_.module_function(&function, module_, kernel.c_str());
    if (code == kNotFound) {  // the PTX lacks bfloat16, which the GPU may have
      throw Error(ErrorCode::kNoKernels, "GPU " + name_ + ": its kernels lack " + kernel);
    }
    Check(code, kernel + " cannot be found");
  }
  if (shared_bytes > kSharedWithoutAsking) {
    Check(driver_.function_set(function, kMostDynamicShared, static_cast<int>(shared_bytes)),
          kernel + " gets no shared memory of " + std::to_string(shared_bytes) + " bytes");
  }
  return function;
}

void Gpu::LaunchAny(const std::string& kernel, unsigned grid_x, unsigned grid_y, unsigned threads,
                    size_t shared_bytes, void* args) {
  void* function = Find(kernel, shared_bytes);
  const auto shared = static_cast<unsigned>(shared_bytes);
  void* all[] = {args};
  if (recording_ != nullptr) {
    const KernelNode node = {function, grid_x, grid_y, 1,       threads, 1,
                             1,        shared, all,    nullptr, nullptr, nullptr};
    void* const before = recording_->last;
    Check(driver_.graph_add_kernel(&recording_->last, recording_->graph, &before,
                                   before == nullptr ? 0 : 1, &node),
          kernel + " cannot be added to a graph");
    ++recording_->kernels;
    return;
  }
  if (timed_ != nullptr) {
    timed_->emplace_back(*this).time.kernel = kernel;
    timed_->back().begin.Record();
  }
  Check(driver_.launch(function, grid_x, grid_y, 1, threads, 1, 1, shared, stream_, all, nullptr),
        kernel + " does not start");
  ++launched_;
  if (timed_ != nullptr) timed_->back().end.Record();
}

void Gpu::NoteMatrix(const Matrix& matrix) {
  if (timed_ == nullptr) return;
  timed_->back().time.outputs = matrix.n;
  timed_->back().time.inputs = matrix.k;
}

std::vector<KernelTime> Gpu::Time(const std::function<void()>& launch) {
  std::deque<TimedLaunch> timed;
  {
    const Meanwhile timing(&timed_, &timed);
    launch();
  }
  Wait();
  std::vector<KernelTime> times;
  for (TimedLaunch& each : timed) {
    each.time.ms = each.end.MsSince(each.begin);
    times.push_back(each.time);
  }
  return times;
}

std::unique_ptr<Graph> Gpu::Record(const std::function<void()>& launch) {
  Recording recording;
  Check(driver_.graph_create(&recording.graph, 0), "a graph cannot be begun");
  void* exec = nullptr;
  int code = 0;
  try {
    const Meanwhile records(&recording_, &recording);
    launch();
    code = driver_.graph_make(&exec, recording.graph, 0);
  } catch (...) {
    driver_.graph_destroy(recording.graph);
    throw;
  }
  driver_.graph_destroy(recording.graph);
  Check(code, "a graph cannot be made");
  return std::make_unique<Graph>(*this, exec, recording.kernels);
}

void Gpu::Wait() const { Check(driver_.stream_wait(stream_), "its work fails"); }

Event::Event(const Gpu& gpu, bool timed) : gpu_(gpu) {
  gpu.Check(gpu.driver_.event_create(&event_, timed ? 0 : kNoTimes), "no event can be made");
}

Event::~Event() {
  gpu_.driver_.context_set(gpu_.context_);  // of whatever thread
  gpu_.driver_.event_destroy(event_);
}

void Event::Record() {
  gpu_.Check(gpu_.driver_.event_record(event_, gpu_.stream_), "an event is not recorded");
}

void Event::Wait() const { gpu_.Check(gpu_.driver_.event_wait(event_), "its work fails"); }

float Event::MsSince(const Event& begin) const {
  float ms = 0;
  gpu_.Check(gpu_.driver_.event_time(&ms, begin.event_, event_), "an event has no time");
  return ms;
}

void Graph::Run() const {
  gpu_.Check(gpu_.driver_.graph_launch(exec_, gpu_.stream_), "a graph does not start");
}

}  // namespace ct2triton::gpu
