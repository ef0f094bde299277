// SPDX-License-Identifier: Apache-2.0
#include "queue/loop_work.h"

#include <algorithm>
#include <utility>

#include "engine/usable_cores.h"
#include "error.h"

namespace ct2triton {
namespace {

// Steps that fail in a row before loops are given up. One failed step may be the fault of its rows;
// several with different rows are not.
constexpr size_t kMostFailedSteps = 3;

const Error only_in_loop(ErrorCode::kInternal,
                         "a decode loop failed, and a call of CTranslate2 would give another "
                         "answer, since it takes no sampling_seed, no draft_bias and no heads of "
                         "attention for replace_unknowns; send the request again");

const Error calls_refused(ErrorCode::kInternal,
                          "a decode loop failed, and the model's parameter calls is \"refuse\"; "
                          "send the request again");

const Error memory_short(ErrorCode::kUnavailable,
                         "a decode loop lacks memory for a while, and calls of CTranslate2 cannot "
                         "take its rows; send the request again");

// Weights that pay for one more thread of a step: with fewer, products have too few parts.
constexpr size_t kBytesPerThread = size_t{8} << 20;

size_t MostHelpers(const LoopModel& model, const LoopSettings& settings) {
  return std::min(settings.threads - 1, model.packed_bytes() / kBytesPerThread);
}

}  // namespace

void LoopWork::Promise::Add(const Job& job) noexcept {
  bytes += job.row.cache_bytes + job.row.source_cache_bytes;
  if (job.row.copies > 1) wide_bytes += job.row.cache_bytes;
}

void LoopWork::Promise::Add(const Promise& other) noexcept {
  bytes += other.bytes;
  wide_bytes += other.wide_bytes;
}

void LoopWork::Promise::Remove(const Promise& other) noexcept {
  bytes -= other.bytes;
  wide_bytes -= other.wide_bytes;
}

LoopWork::LoopWork(std::shared_ptr<const LoopModel> model, const LoopSettings& settings,
                   size_t loops, std::shared_ptr<Scheduler> scheduler, CallWork* calls,
                   const void* owner)
    : model_(std::move(model)),
      settings_(settings),
      most_helpers_(MostHelpers(*model_, settings)),
      cores_with_help_(most_helpers_ > 0 ? CoresOfProcess().physical : 1),
      loops_without_help_(model_->step_times(), loops, settings.max_sequences, {}),
      loops_with_help_(model_->step_times(), loops, settings.max_sequences,
                       {cores_with_help_, most_helpers_ + 1}),
      scheduler_(std::move(scheduler)),
      calls_(calls),
      queue_([this] {
        ++changes_;
        scheduler_->Wake(this);
      }),
      lanes_(loops),
      counters_(loops) {
  with_rows_.reserve(loops);
  for (Lane& lane : lanes_)
    lane.sources.reserve(2 * settings_.max_sequences);  // of most admissions
  for (size_t lane = loops; lane-- > 0;) free_.push_back(static_cast<int>(lane));
  if (!scheduler_->OnGpu()) {  // what fails, fails the load
    MakeLoop(&lanes_.front());
  }
  scheduler_->Add(this, owner);
  if (!model_->EncodesBeside()) return;
  const auto ready = [this] {
    ++changes_;
    scheduler_->Wake(this);
  };
  try {
    encode_work_ = std::make_unique<EncodeWork>(model_, scheduler_, ready, owner, most_helpers_);
  } catch (...) {
    scheduler_->Drain(this);
    throw;
  }
}

LoopWork::~LoopWork() {
  queue_.Close();
  scheduler_->Drain(this);
}

std::vector<LoopCounters> LoopWork::counters() const {
  const std::lock_guard<std::mutex> lock(counters_mutex_);
  std::vector<LoopCounters> used;
  for (const LoopCounters& counters : counters_) {
    if (used.empty() || counters.steps > 0) used.push_back(counters);
  }
  if (encode_work_) used.front() += encode_work_->counters();
  return used;
}

std::string LoopWork::failure() const {
  const std::lock_guard<std::mutex> lock(counters_mutex_);
  return given_up_ ? failure_->what() : "";
}

// A failed step removes its rows from the loop, so the next step has other rows.
void LoopWork::CountStepLocked(const std::optional<Error>& failure, bool stepped) noexcept {
  if (!failure) {
    if (stepped) failed_steps_ = 0;
    return;
  }
  if (!given_up_) failure_ = failure;
  given_up_ = given_up_ || ++failed_steps_ == kMostFailedSteps;
}

bool LoopWork::Active() const noexcept {
  if (encode_work_ && (encode_work_->Active() || encode_work_->sequences() > 0)) return true;
  return queue_.size() > 0 || used_lanes() > 0 || encode_tasks_ > 0;
}

size_t LoopWork::waiting_sequences() const {
  return queue_.sequences() + (encode_work_ ? encode_work_->encoded_sequences() : 0);
}

size_t LoopWork::sequences() const {
  const size_t beside = encode_work_ ? encode_work_->sequences() : 0;
  return running_ + taken_ + queue_.sequences() + beside;
}

// Of all loops that are worthwhile.
size_t LoopWork::FreePlaces() const noexcept {
  const size_t all = sequences();
  const size_t places = LoopsWorth(all) * settings_.max_sequences;
  return places - std::min(places, all - std::min(all, queue_.sequences()));
}

// In this loop, beside those that are kept for its share of the rows of encode_work_.
size_t LoopWork::PlacesLeft(const LoopState& state) const noexcept {
  const size_t beside = encode_work_ ? encode_work_->sequences() : 0;
  const size_t used = state.sequences + (beside + state.lanes - 1) / state.lanes;
  return settings_.max_sequences - std::min(settings_.max_sequences, used);
}

size_t LoopWork::MaxCacheBytes() const noexcept {
  const size_t most = settings_.max_cache_bytes;
  return std::min(most, model_->most_cache_bytes_now().value_or(most));
}

// The loop that has waited longest for a step. If none waits, another loop for the waiting rows. If
// that is not wanted, and the thread has nothing else to do, it encodes one of their sources.
int LoopWork::Next(size_t lanes, bool spare) const noexcept {
  if (!with_rows_.empty()) return with_rows_.front();
  const size_t used = used_lanes();
  if (waiting_sequences() > 0 && !free_.empty() && (used < lanes || spare)) {
    if (used == 0 ? !WaitsForEncoding() : MayOpen(used)) return free_.back();
  }
  return spare && MayEncode() ? EncodeTask() : -1;
}

bool LoopWork::MayOpen(size_t used) const noexcept {
  if (no_room_at_ == changes_ || used >= LoopsWorth(sequences())) return false;
  return waiting_sequences() > queue_.sequences() || FirstHasMemory(0);
}

// No waiting row could join a loop without rows: all of their places or memory, or their sources,
// are with rows that are being encoded.
bool LoopWork::WaitsForEncoding() const noexcept {
  return no_room_at_ == changes_ && encode_work_ &&
         encode_work_->sequences() > encode_work_->encoded_sequences();
}

// While no row runs, a loop encodes, because other threads help it and none of its rows waits.
bool LoopWork::MayEncode() const noexcept {
  if (!encode_work_ || running_ + taken_ == 0 || none_to_encode_at_ == changes_) return false;
  if (queue_.size() <= encode_tasks_without_rows_) return false;
  if (used_lanes() + encode_tasks_ >= MostThreads()) return false;
  return FreePlaces() > 0 && FirstHasMemory(promised_bytes_);
}

bool LoopWork::FirstHasMemory(size_t promised_bytes) const noexcept {
  const size_t used = model_->cache_bytes_in_use() + promised_bytes;
  return queue_.first_cache_bytes() + used <= MaxCacheBytes();
}

void LoopWork::Claim(int task, size_t lanes) noexcept {
  if (task == EncodeTask()) {
    ++encode_tasks_;
    ++encode_tasks_without_rows_;
    return;
  }
  if (with_rows_.empty()) {
    free_.pop_back();
    lanes = std::max(lanes, used_lanes());
  } else {
    with_rows_.erase(with_rows_.begin());
  }
  Lane& lane = lanes_[static_cast<size_t>(task)];
  lane.open = used_lanes();
  lane.lanes = LoopsFor(lanes);
  lane.admits = used_lanes() <= lane.lanes || IsAmongFullest(lane, lane.lanes);
}

size_t LoopWork::LoopsWorth(size_t rows) const noexcept {
  return (help_watch_.Helps(SteadyNow_ns()) ? loops_with_help_ : loops_without_help_).For(rows);
}

// Number of loops among which the rows are divided. One loop more than needed stays open until
// there are clearly fewer rows, because the number of rows fluctuates.
size_t LoopWork::LoopsFor(size_t lanes) const noexcept {
  const size_t now = sequences();
  const size_t kept = std::min(used_lanes(), LoopsWorth(now + now / 4));
  return std::min({lanes_.size(), lanes, std::max(kept, LoopsWorth(now))});
}

bool LoopWork::IsAmongFullest(const Lane& lane, size_t lanes) const noexcept {
  size_t fuller = 0;
  for (const Lane& other : lanes_) {
    if (other.sequences > lane.sequences || (other.sequences == lane.sequences && &other < &lane)) {
      ++fuller;
    }
  }
  return fuller < lanes;
}

void LoopWork::Run(int task) noexcept {
  if (task == EncodeTask()) return EncodeWaiting();
  Lane& lane = lanes_[static_cast<size_t>(task)];
  lane.found_none = false;
  lane.seen = changes_;
  try {
    if (!lane.loop) MakeLoop(&lane);
    const LoopLoad before = lane.loop->load();
    auto taken = TakeRows(&lane);
    lane.found_none = taken.empty() && lane.loop->running() == 0;
    SetLongAside(lane, &taken);
    auto failed = lane.loop->Admit(std::move(taken));
    EndSources(&lane);
    lane.loop->Step(&failed);
    running_ += lane.loop->load().sequences - before.sequences;
    wide_cache_bytes_ += lane.loop->load().wide_cache_bytes - before.wide_cache_bytes;
    EndPromise(&lane);
    {
      const std::lock_guard<std::mutex> lock(counters_mutex_);
      LoopCounters& counters = counters_[static_cast<size_t>(task)];
      const bool stepped = lane.loop->counters().steps > counters.steps;
      if (stepped) {
        lane.step_ns = lane.loop->counters().step_ns - counters.step_ns;
        const bool helped = lane.loop->counters().helped_parts > counters.helped_parts;
        if (lane.open < cores_with_help_) help_watch_.Count(helped, SteadyNow_ns());
      }
      counters = lane.loop->counters();
      CountStepLocked(lane.loop->step_failure(), stepped);
    }
    if (!failed.empty()) RunAlone(std::move(failed), lane.loop->lacked_memory());
  } catch (...) {
    EndSources(&lane);
    EndPromise(&lane);
    lane.found_none = !lane.loop && has_loop_;
    if (lane.found_none) return;       // the rows wait for the loops that there are
    queue_.FailFirst(CurrentError());  // no memory to choose rows: the queue gets shorter
  }
}

void LoopWork::MakeLoop(Lane* lane) {
  lane->loop = std::make_unique<RunningLoop>(model_->NewLoop());
  has_loop_ = true;
}

LoopState LoopWork::StateOf(const Lane& lane) const {
  LoopState state;
  state.rows = lane.loop->running();
  state.sequences = lane.loop->load().sequences;
  state.narrow_sequences = state.sequences - lane.loop->load().wide_sequences;
  state.all_sequences = running_;
  state.waiting_sequences = waiting_sequences();
  state.lanes = lane.lanes;
  state.steps_waited = StepsWaited(lane);
  state.steps_held = lane.steps_held;
  return state;
}

// By the row that joins next, or very many if its source is encoded: it gains nothing by waiting.
double LoopWork::StepsWaited(const Lane& lane) const {
  const bool encoded = encode_work_ && encode_work_->encoded_sequences() > 0;
  const uint64_t since_ns = encoded ? 0 : queue_.first_queued_ns();
  const auto waited_ns = static_cast<double>(SteadyNow_ns() - since_ns);
  return waited_ns / static_cast<double>(std::max<uint64_t>(1, lane.step_ns));
}

// Takes rows whose sources are encoded first; others follow before the next step.
std::vector<Job> LoopWork::TakeRows(Lane* lane) {
  lane->seen = changes_;
  if (!lane->admits) return {};
  const std::lock_guard<std::mutex> lock(admission_mutex_);
  const LoopState state = StateOf(*lane);
  lane->steps_held = HoldsRows(state, settings_) ? lane->steps_held + 1 : 0;
  EncodeWork::Encoded encoded = TakeEncoded(state);
  lane->encoded = !encoded.jobs.empty();
  auto rows = lane->encoded ? std::move(encoded.jobs) : TakeWaiting(state);
  lane->encodings = std::move(encoded.encodings);
  for (const Job& job : rows) {
    if (!lane->encoded) promised_.Add(job);  // else they are promised already
    if (!lane->encoded && IsLong(job.row)) continue;
    lane->promised.Add(job);
    lane->taken_sequences += static_cast<size_t>(job.row.copies);
    if (lane->sources.size() < lane->sources.capacity() && !model_->HasEncoding(job.row)) {
      lane->sources.push_back(sources_in_making_.Add(job.row.source));
    }
  }
  promised_bytes_ = promised_.bytes;
  taken_ += lane->taken_sequences;
  return rows;
}

// Narrow ones may join where wide rows leave no room, as those that wait may.
EncodeWork::Encoded LoopWork::TakeEncoded(const LoopState& state) noexcept {
  if (!encode_work_) return {};
  const bool full = state.sequences >= settings_.max_sequences;
  try {
    return encode_work_->Take(SequencesToAdmit(state, settings_),
                              full ? RowsPastWide(state, settings_) : 0);
  } catch (...) {  // no memory: they wait for another step
    return {};
  }
}

std::vector<Job> LoopWork::TakeWaiting(const LoopState& state) {
  AdmissionBounds bounds;
  bounds.sequences = std::min(SequencesToAdmit(state, settings_), PlacesLeft(state));
  if (bounds.sequences == 0 && state.sequences < settings_.max_sequences) return {};
  bounds.narrow_rows = RowsPastWide(state, settings_);
  bounds.tokens = settings_.encode_tokens;
  bounds.cache = CacheNow();
  bounds.anyway = state.all_sequences == 0 && promised_.bytes == 0 ? 1 : 0;
  bounds.long_rows = LongRoom();
  return queue_.TakeRows(bounds, [this](const CheckedRow& row) { return StateOfSource(row); });
}

CacheUse LoopWork::CacheNow() const {
  if (queue_.size() > 0) model_->MeasureCache();
  return {MaxCacheBytes(), model_->cache_bytes_in_use() + promised_.bytes,
          wide_cache_bytes_ + promised_.wide_bytes};
}

// Long rows that may join those that wait to be encoded. They have places and memory, so no more
// than will be encoded soon, and other rows go past the rest.
std::optional<size_t> LoopWork::LongRoom() const noexcept {
  if (!encode_work_) return std::nullopt;
  return MostThreads() - std::min(MostThreads(), encode_work_->waiting());
}

SourceState LoopWork::StateOfSource(const CheckedRow& row) {
  if (IsLong(row) && encode_work_->Has(row.source)) return SourceState::kEncoded;
  if (sources_in_making_.Has(row.source) && !IsLong(row)) {
    rows_wait_for_source_ = true;
    return SourceState::kTaken;
  }
  return model_->HasEncoding(row) ? SourceState::kEncoded : SourceState::kNew;
}

// The first waiting row and those that share its source, which is in the making from now on. The
// rows of long sources join it in encode_work_ instead.
LoopWork::ToEncode LoopWork::TakeToEncode() {
  const std::lock_guard<std::mutex> lock(admission_mutex_);
  AdmissionBounds bounds;
  bounds.sequences = FreePlaces();
  if (bounds.sequences == 0) return {};
  bounds.tokens = settings_.encode_tokens;
  bounds.cache = CacheNow();
  bounds.long_rows = 1;
  auto rows = queue_.TakeRows(
      bounds, [this](const CheckedRow& row) { return StateOfSource(row); }, /*sources=*/1);
  if (rows.empty()) return {};
  ToEncode taken{/*found=*/true};
  if (!IsLong(rows.front().row)) taken.place = sources_in_making_.Add(rows.front().row.source);
  Promise promise;
  for (const Job& job : rows) promise.Add(job);
  try {
    taken.source = encode_work_->Begin(&rows);
    promised_.Add(promise);
    promised_bytes_ = promised_.bytes;
  } catch (...) {
    taken.failed = std::move(rows);
  }
  return taken;
}

void LoopWork::EncodeWaiting() noexcept {
  const uint64_t seen = changes_;
  ToEncode taken;
  try {
    taken = TakeToEncode();
  } catch (...) {  // no memory: a loop will take them
  }
  if (!taken.found) none_to_encode_at_ = seen;
  --encode_tasks_without_rows_;
  if (!taken.found) return;
  if (taken.source) encode_work_->Encode(*taken.source);
  if (taken.place) EndSources(&*taken.place, 1);
  for (Job& job : taken.failed) FailJob(&job, OutOfMemory());
  ++changes_;
  scheduler_->Wake(this);
}

// The lane has encoded the sources that it took. Its rows hold the encodings, which others share.
void LoopWork::EndSources(Lane* lane) noexcept {
  EndSources(lane->sources.data(), lane->sources.size());
  lane->sources.clear();
}

void LoopWork::EndSources(const SourcesInMaking::Place* sources, size_t count) noexcept {
  if (count == 0) return;
  {
    const std::lock_guard<std::mutex> lock(admission_mutex_);
    for (size_t i = 0; i < count; ++i) sources_in_making_.Remove(sources[i]);
    if (!std::exchange(rows_wait_for_source_, false)) return;
  }
  ++changes_;
  scheduler_->Wake(this);
}

bool LoopWork::IsLong(const CheckedRow& row) const {
  return encode_work_ && row.prefix.size() + row.source.size() > settings_.encode_tokens;
}

// Moves rows of long sources that are not encoded to encode_work_. Their memory stays promised.
void LoopWork::SetLongAside(const Lane& lane, std::vector<Job>* jobs) noexcept {
  if (lane.encoded) return;
  const auto aside = std::stable_partition(jobs->begin(), jobs->end(),
                                           [this](const Job& job) { return !IsLong(job.row); });
  std::for_each(aside, jobs->end(), [this](Job& job) {
    Promise promise;
    promise.Add(job);
    if (encode_work_->Add(&job)) return;
    FailJob(&job, OutOfMemory());
    EndPromise(promise);
  });
  jobs->erase(aside, jobs->end());
}

void LoopWork::EndPromise(const Promise& promise) noexcept {
  const std::lock_guard<std::mutex> lock(admission_mutex_);
  promised_.Remove(promise);
  promised_bytes_ = promised_.bytes;
}

void LoopWork::EndPromise(Lane* lane) noexcept {
  lane->encodings.clear();
  EndPromise(std::exchange(lane->promised, {}));
  taken_ -= std::exchange(lane->taken_sequences, 0);
}

void LoopWork::RunAlone(std::vector<Job> jobs, bool lacked_memory) noexcept {
  if (const auto loss = model_->loss()) {
    for (Job& job : jobs) FailJob(&job, *loss);
    return;
  }
  // Without a seed a call may draw anew: streams refuse draws, so no client has seen a token.
  const auto failing = std::stable_partition(jobs.begin(), jobs.end(),
                                             [](const Job& job) { return !job.row.only_in_loop; });
  std::for_each(failing, jobs.end(),
                [=](Job& job) { FailJob(&job, lacked_memory ? memory_short : only_in_loop); });
  jobs.erase(failing, jobs.end());
  if (calls_ != nullptr) return calls_->RunAlone(std::move(jobs));
  for (Job& job : jobs) FailJob(&job, lacked_memory ? memory_short : calls_refused);
}

void LoopWork::Release(int task) noexcept {
  if (task == EncodeTask()) {
    --encode_tasks_;
    return;
  }
  Lane& lane = lanes_[static_cast<size_t>(task)];
  lane.sequences = lane.loop ? lane.loop->load().sequences : 0;
  if (lane.sequences > 0) {
    with_rows_.push_back(task);
  } else {  // those with a loop are taken first
    free_.insert(lane.loop ? free_.end() : free_.begin(), task);
  }
  if (lane.found_none) {
    no_room_at_ = lane.seen;
  } else {
    ++changes_;
  }
}

}  // namespace ct2triton
