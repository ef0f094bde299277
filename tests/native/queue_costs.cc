// SPDX-License-Identifier: Apache-2.0
//
// What the queue and the scheduler cost by themselves, without a model: processor time of an
// append, of a row taken for a loop or for a call, and of a claim, with so many rows waiting.
// tests/core/test_queue_costs.py counts its instructions, benchmarks/measure_queue.py its times.
//
// queue_costs <waiting rows> <tenants> <operations> <threads> <models>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "queue/row_queue.h"
#include "queue/scheduler.h"

namespace {

using namespace ct2triton;

constexpr size_t kRequestRows = 256;  // of every other request that waits; the others have one
constexpr size_t kBatch = 16;         // operations between two looks at the clock
constexpr size_t kTokens = 30;

class Nobody : public RowListener {
 public:
  explicit Nobody(std::string tenant) : tenant_(std::move(tenant)) {}
  RunObserver* observer() const noexcept override { return nullptr; }
  bool Cancelled() const noexcept override { return false; }
  void RowDone(size_t, RowResult, const RunTimes&) noexcept override {}
  void RowFailed(size_t, const Error&, const RunTimes&) noexcept override {}
  std::string_view tenant() const noexcept override { return tenant_; }

 private:
  const std::string tenant_;
};

size_t tenants = 1;

// Of so many tenants, one after the other.
std::shared_ptr<RowListener> NextListener() {
  static std::atomic<size_t> number{0};
  return std::make_shared<Nobody>("tenant " + std::to_string(number++ % tenants));
}

CheckedRow NewRow() {
  static std::atomic<int64_t> number{0};
  static const auto options = std::make_shared<const DecodingOptions>();
  CheckedRow row;
  row.source.assign(kTokens, 7);
  row.source[0] = ++number;
  row.limit_tokens = 256;
  row.options = row.key.options = options;
  return row;
}

// Rows of `requests` clients, made before they are measured.
struct Request {
  explicit Request(size_t count) : rows(count), positions(count) {
    for (size_t i = 0; i < count; ++i) {
      rows[i] = NewRow();
      positions[i] = i;
    }
  }
  void AddTo(RowQueue* queue) { queue->Add(std::move(rows), positions, listener, share); }

  static const QueueShare share;
  std::vector<CheckedRow> rows;
  std::vector<size_t> positions;
  std::shared_ptr<RowListener> listener = NextListener();
};
const QueueShare Request::share(size_t{1} << 30);

void Fill(RowQueue* queue, size_t waiting) {
  while (queue->size() < waiting) {
    const size_t rows = tenants > 1 || queue->size() % 2 == 0 ? 1 : kRequestRows;
    Request(std::min(rows, waiting - queue->size())).AddTo(queue);
  }
}

uint64_t Now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::vector<Request> Requests(size_t count) {
  std::vector<Request> requests;
  for (size_t i = 0; i < count; ++i) requests.emplace_back(1);
  return requests;
}

// Named in the C way, for the tool that counts their instructions.
extern "C" {
__attribute__((noinline)) void MeasuredAppends(RowQueue* queue, std::vector<Request>* requests) {
  for (Request& request : *requests) request.AddTo(queue);
}
__attribute__((noinline)) void MeasuredTakes(RowQueue* queue, size_t count,
                                             std::vector<Job>* jobs) {
  const AdmissionBounds bounds{1, 150, {size_t{1} << 30, 0, 0}, 0, 0};
  for (size_t i = 0; i < count; ++i) {
    for (Job& job : queue->TakeRows(bounds, [](const CheckedRow&) { return SourceState::kNew; })) {
      jobs->push_back(std::move(job));
    }
  }
}
__attribute__((noinline)) void MeasuredCalls(RowQueue* queue, size_t count,
                                             std::vector<Job>* jobs) {
  const CallBounds bounds{1, 2048};
  for (size_t i = 0; i < count; ++i) {
    for (Job& job : queue->TakeCall(bounds, 1)) jobs->push_back(std::move(job));
  }
}
}

template <class Action>
uint64_t Time_ns(const Action& action) {
  const uint64_t start_ns = Now_ns(CLOCK_THREAD_CPUTIME_ID);
  action();
  return Now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

// One thread; the queue keeps its length.
void MeasureQueue(size_t waiting, size_t operations) {
  RowQueue queue([] {});
  Fill(&queue, waiting);
  uint64_t append_ns = 0, take_ns = 0, call_ns = 0;
  const size_t rounds = (operations + kBatch - 1) / kBatch;
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<Job> jobs;
    jobs.reserve(2 * kBatch);
    std::vector<Request> first = Requests(kBatch), second = Requests(kBatch);
    append_ns += Time_ns([&] { MeasuredAppends(&queue, &first); });
    take_ns += Time_ns([&] { MeasuredTakes(&queue, kBatch, &jobs); });
    append_ns += Time_ns([&] { MeasuredAppends(&queue, &second); });
    call_ns += Time_ns([&] { MeasuredCalls(&queue, kBatch, &jobs); });
  }
  const size_t count = rounds * kBatch;
  std::printf("\"append_ns\": %zu, \"take_ns\": %zu, \"call_ns\": %zu, ",
              static_cast<size_t>(append_ns / 2 / count), static_cast<size_t>(take_ns / count),
              static_cast<size_t>(call_ns / count));
}

uint64_t ProcessTime_ns() { return Now_ns(CLOCK_PROCESS_CPUTIME_ID); }

// The claims that are to be, of all models.
struct Claims {
  std::atomic<int64_t> left;
  std::atomic<uint64_t> end_ns{0};  // when none was left
};

// Takes a row at each claim, and hands another one over.
class Model : public Workload {
 public:
  Model(Scheduler* scheduler, size_t waiting, size_t lanes, Claims* claims)
      : scheduler_(*scheduler),
        queue_([this] {
          if (started_) scheduler_.Wake(this);
        }),
        claims_(*claims) {
    for (size_t lane = 0; lane < lanes; ++lane) free_.push_back(static_cast<int>(lane));
    lanes_ = lanes;
    scheduler_.Add(this, this);
    waiting_ = waiting;
  }
  ~Model() override {
    Empty();
    scheduler_.Drain(this);
  }

  void Fill() { ::Fill(&queue_, waiting_); }
  void Start() {
    started_ = true;
    scheduler_.Wake(this);
  }
  int Next(size_t lanes, bool spare) const noexcept override {
    if (!started_ || claims_.left <= 0 || queue_.size() == 0 || free_.empty()) return -1;
    return lanes_ - free_.size() >= lanes && !spare ? -1 : free_.back();
  }
  void Claim(int, size_t) noexcept override { free_.pop_back(); }
  void Run(int) noexcept override {
    std::vector<Job> jobs;
    const int64_t left = claims_.left--;
    MeasuredTakes(&queue_, 1, &jobs);
    if (left > 0) Request(1).AddTo(&queue_);
    if (left == 1) claims_.end_ns = ProcessTime_ns();
    if (claims_.left <= 0) Empty();
    for (Job& job : jobs) FailJob(&job, CancelledWhileWaiting());
  }
  void Release(int piece) noexcept override { free_.push_back(piece); }
  bool Active() const noexcept override { return queue_.size() > 0 || free_.size() < lanes_; }
  size_t cores_per_task() const noexcept override { return 1; }

 private:
  void Empty() noexcept {
    while (queue_.size() > 0) queue_.FailFirst(CancelledWhileWaiting());
  }

  Scheduler& scheduler_;
  RowQueue queue_;
  Claims& claims_;
  std::vector<int> free_;
  size_t lanes_ = 0;
  size_t waiting_ = 0;
  std::atomic<bool> started_{false};
};

// All threads claim; each model keeps `waiting` rows until so many claims have been.
void MeasureScheduler(size_t waiting, size_t operations, size_t threads, size_t count) {
  Scheduler scheduler(threads);
  Claims claims{static_cast<int64_t>(operations)};
  std::vector<std::unique_ptr<Model>> models;
  for (size_t i = 0; i < count; ++i) {
    models.push_back(
        std::make_unique<Model>(&scheduler, (waiting + count - 1) / count, threads, &claims));
  }
  for (auto& model : models) model->Fill();
  const uint64_t start_ns = ProcessTime_ns();
  for (auto& model : models) model->Start();
  while (claims.end_ns == 0) {
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
  std::printf("\"claim_ns\": %zu", static_cast<size_t>((claims.end_ns - start_ns) / operations));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr,
                 "usage: queue_costs <waiting rows> <tenants> <operations> <threads> <models>\n");
    return 2;
  }
  const auto number = [&](int i) {
    return static_cast<size_t>(std::strtoull(arguments[i], nullptr, 10));
  };
  tenants = std::max<size_t>(1, number(2));
  const size_t operations = std::max<size_t>(1, number(3));
  std::printf("{");
  MeasureQueue(number(1), operations);
  if (number(4) > 0) {
    MeasureScheduler(number(1), operations, number(4), number(5));
  } else {
    std::printf("\"claim_ns\": 0");
  }
  std::printf("}\n");
  return 0;
}
