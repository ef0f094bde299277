// SPDX-License-Identifier: Apache-2.0
//
// The translation core under many threads: requests that must get their own right answers, bad
// rows, clients that go away, models that are loaded, refused and destroyed with rows still
// waiting. Half of the models decode greedy rows in loops, half in calls, and both must give the
// same. Every row must be answered exactly once. Meant to run under a sanitizer.
//
// pool_stress <seconds> <seed> <model directory>...
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "error.h"
#include "queue/translator.h"

namespace {

namespace fs = std::filesystem;
using namespace ct2triton;
using Random = std::mt19937_64;
using Clock = std::chrono::steady_clock;

constexpr size_t kSubmitters = 6;
constexpr size_t kCases = 96;
constexpr int64_t kEnd = 2;
const char* const kDecodings[] = {"calls", "loop"};
constexpr int64_t kFirstPiece = 4;
const Device kCpu{};

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "pool_stress: %s\n", what.c_str());
  std::abort();
}

int64_t Draw(Random* random, int64_t from, int64_t to) {
  return std::uniform_int_distribution<int64_t>(from, to)(*random);
}

struct Counter : RunObserver {
  std::atomic<size_t> rows{0};
  void RunDone(const RunReport& report) noexcept override {
    const RunTimes& times = report.times;
    Require(times.start_ns > 0 && times.start_ns <= times.end_ns, "a call ends before it starts");
    rows += report.rows;
  }
};

// A client with one request: keeps what comes, may go away.
class Client : public RowListener {
 public:
  Client(size_t rows, Counter* counter) : answers_(rows), open_(rows), counter_(counter) {}

  RunObserver* observer() const noexcept override { return counter_; }
  bool Cancelled() const noexcept override { return gone_; }
  void RowDone(size_t row, RowResult result, const RunTimes&) noexcept override {
    Take(row, Answer{true, true, std::move(result), ErrorCode::kInternal});
  }
  void RowFailed(size_t row, const Error& error, const RunTimes&) noexcept override {
    Take(row, Answer{true, false, {}, error.code()});
  }
  void GoAway() { gone_ = true; }

  struct Answer {
    bool given = false;
    bool good = false;
    RowResult result;
    ErrorCode code = ErrorCode::kInternal;
  };
  const std::vector<Answer>& Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    all_in_.wait(lock, [&] { return open_ == 0; });
    return answers_;
  }

 private:
  void Take(size_t row, Answer answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Require(row < answers_.size() && !answers_[row].given, "a row was answered twice");
    answers_[row] = std::move(answer);
    if (--open_ == 0) all_in_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable all_in_;
  std::vector<Answer> answers_;
  size_t open_;
  std::atomic<bool> gone_{false};
  Counter* const counter_;
};

struct RowIds {
  Ids source;
  Ids prefix;
};

std::shared_ptr<Client> Send(Translator* translator, const std::vector<RowIds>& rows,
                             const DecodingOptions& options, Counter* counter) {
  std::vector<RowInput> inputs;
  for (const RowIds& row : rows) inputs.push_back({row.source, row.prefix});
  auto checked = translator->model().Check(inputs, &options);
  const auto client = std::make_shared<Client>(checked.size(), counter);
  translator->Submit(std::move(checked), client);
  return client;
}

std::vector<DecodingOptions> SomeOptions() {
  std::vector<DecodingOptions> all(5);
  for (auto& options : all) options.max_decoding_length = 8;
  all[0].beam_size = 1;
  all[1].beam_size = 3;
  all[2].num_hypotheses = 2;
  all[2].return_scores = true;
  all[3].coverage_penalty = 0.2F;
  all[3].max_decoding_length = 5;
  all[4].beam_size = 1;
  all[4].max_decoding_length_multiple = 0.7;
  all[4].min_decoding_length = 0;
  return all;
}

RowIds SomeRow(Random* random, int64_t vocabulary) {
  RowIds row;
  const int64_t pieces = Draw(random, 0, 20);
  for (int64_t i = 0; i < pieces; ++i) {
    row.source.push_back(Draw(random, kFirstPiece, vocabulary - 1));
  }
  row.source.push_back(kEnd);  // alone: nothing to translate
  const int64_t forced = Draw(random, 0, 2);
  for (int64_t i = 0; i < forced; ++i) {
    row.prefix.push_back(Draw(random, kFirstPiece, vocabulary - 1));
  }
  return row;
}

// A row with what it must give, whatever it shares a call with.
struct Case {
  RowIds row;
  size_t options = 0;
  std::vector<Ids> hypotheses;
};

std::vector<Ids> IdsOf(const RowResult& result) {
  std::vector<Ids> ids;
  for (const auto& hypothesis : result.hypotheses) ids.push_back(hypothesis.ids);
  return ids;
}

struct World {
  std::vector<DecodingOptions> options = SomeOptions();
  std::vector<std::string> directories;
  std::vector<std::unique_ptr<Translator>> translators;  // one for each of kDecodings
  std::vector<Case> cases;
  Counter counter;
  std::atomic<size_t> answered{0};
  std::atomic<size_t> cancelled{0};
  std::atomic<size_t> refused{0};
  std::atomic<size_t> loads{0};
  std::atomic<size_t> refused_loads{0};
  Clock::time_point end;
};

EngineOptions Engine(int64_t workers, int64_t queued, const char* decoding = "auto") {
  EngineOptions engine;
  engine.decoding = decoding;
  engine.compute_type = "float32";
  engine.inter_threads = workers;
  engine.max_batch_rows = 8;
  engine.max_queued_rows = queued;
  return engine;
}

Translator* AnyTranslator(World* world, Random* random) {
  return world->translators[static_cast<size_t>(Draw(random, 0, 1))].get();
}

// Each row alone, one after the other, in calls.
void ComputeTruth(World* world, Random* random) {
  Translator* translator = world->translators[0].get();
  const int64_t vocabulary = translator->model().vocabulary_size();
  for (size_t i = 0; i < kCases; ++i) {
    Case one{SomeRow(random, vocabulary), i % world->options.size(), {}};
    const auto& options = world->options[one.options];
    const auto client = Send(translator, {one.row}, options, &world->counter);
    const auto& answer = client->Wait().front();
    Require(answer.good, "a good row failed");
    one.hypotheses = IdsOf(answer.result);
    world->cases.push_back(std::move(one));
  }
}

void SendBadRow(World* world, Random* random) {
  Translator* translator = AnyTranslator(world, random);
  const int64_t vocabulary = translator->model().vocabulary_size();
  std::vector<RowIds> rows(static_cast<size_t>(Draw(random, 1, 3)));
  for (auto& row : rows) row = SomeRow(random, vocabulary);
  const int64_t bad[] = {-1, vocabulary, INT64_MIN, INT64_MAX};
  auto& ids = Draw(random, 0, 1) ? rows.back().source : rows.back().prefix;
  ids.insert(ids.begin(), bad[Draw(random, 0, 3)]);
  try {
    Send(translator, rows, world->options[0], &world->counter);
    Require(false, "a bad id was accepted");
  } catch (const Error& error) {
    Require(error.code() == ErrorCode::kInvalidArgument, "a bad id gave another code");
    ++world->refused;
  }
}

void CheckAnswers(World* world, const std::vector<const Case*>& cases,
                  const std::vector<Client::Answer>& answers, bool went_away) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!answers[i].good) {
      Require(went_away && answers[i].code == ErrorCode::kCancelled, "a row failed");
      ++world->cancelled;
    } else {
      // A row that is given up while it runs ends early.
      const bool same = IdsOf(answers[i].result) == cases[i]->hypotheses;
      Require(same || went_away, "an answer differs from the row's own");
      ++world->answered;
    }
  }
}

void SendGoodRows(World* world, Random* random) {
  std::vector<const Case*> cases;
  std::vector<RowIds> rows;
  const auto options = static_cast<size_t>(Draw(random, 0, 4));
  for (int64_t wanted = Draw(random, 1, 12); wanted > 0; --wanted) {
    const auto group = static_cast<size_t>(Draw(random, 0, kCases / 5 - 1));
    cases.push_back(&world->cases[group * world->options.size() + options]);
    rows.push_back(cases.back()->row);
  }
  const auto client =
      Send(AnyTranslator(world, random), rows, world->options[options], &world->counter);
  const bool goes_away = Draw(random, 0, 3) == 0;
  if (goes_away) {
    std::this_thread::sleep_for(std::chrono::microseconds(Draw(random, 0, 3000)));
    client->GoAway();
  }
  CheckAnswers(world, cases, client->Wait(), goes_away);
}

void Submit(World* world, uint64_t seed) {
  Random random(seed);
  while (Clock::now() < world->end) {
    if (Draw(&random, 0, 9) == 0) {
      SendBadRow(world, &random);
    } else {
      SendGoodRows(world, &random);
    }
  }
}

void RefuseLoad(World* world, const std::string& directory, const EngineOptions& engine,
                ErrorCode code) {
  try {
    Translator(directory, kCpu, {}, engine);
    Require(false, directory + " was loaded");
  } catch (const Error& error) {
    Require(error.code() == code, std::string("refused otherwise: ") + error.what());
    ++world->refused_loads;
  }
}

// A model whose weights end in the middle.
std::string BreakModel(const std::string& directory, const fs::path& scratch) {
  fs::copy(directory, scratch, fs::copy_options::recursive);
  fs::resize_file(scratch / "model.bin", fs::file_size(scratch / "model.bin") / 2);
  return scratch.string();
}

// Loads, refuses and destroys models, with rows still waiting.
void Reload(World* world, uint64_t seed, const std::string& broken) {
  Random random(seed);
  for (size_t round = 0; Clock::now() < world->end; ++round) {
    const std::string& directory = world->directories[round % world->directories.size()];
    std::vector<std::shared_ptr<Client>> clients;
    {
      const EngineOptions engine = Engine(Draw(&random, 1, 3), 64, kDecodings[Draw(&random, 0, 1)]);
      Translator translator(directory, kCpu, world->options[0], engine);
      ++world->loads;
      for (int i = 0; i < 10; ++i) {
        const RowIds row = SomeRow(&random, translator.model().vocabulary_size());
        const auto& options = world->options[static_cast<size_t>(i % 2)];
        clients.push_back(Send(&translator, {row}, options, &world->counter));
      }
    }
    for (const auto& client : clients) Require(client->Wait().front().good, "unload lost a row");
    EngineOptions bad_type = Engine(1, 64);
    bad_type.compute_type = "int9";
    RefuseLoad(world, directory + "/missing", Engine(1, 64), ErrorCode::kNotFound);
    RefuseLoad(world, directory, bad_type, ErrorCode::kInvalidArgument);
    RefuseLoad(world, broken, Engine(1, 64), ErrorCode::kInvalidArgument);
  }
}

void Run(World* world, double seconds, uint64_t seed, const std::string& broken) {
  Random random(seed);
  for (const char* decoding : kDecodings) {
    world->translators.push_back(std::make_unique<Translator>(
        world->directories[0], kCpu, DecodingOptions(), Engine(2, 24, decoding)));
  }
  ComputeTruth(world, &random);
  world->end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kSubmitters; ++i) threads.emplace_back(Submit, world, seed + i + 1);
  threads.emplace_back(Reload, world, seed, broken);
  for (auto& thread : threads) thread.join();
  world->translators.clear();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: pool_stress <seconds> <seed> <model directory>...\n");
    return 2;
  }
  const uint64_t seed = std::stoull(arguments[2]);
  const fs::path scratch = fs::temp_directory_path() / ("pool_stress-" + std::to_string(getpid()));
  World world;
  world.directories.assign(arguments + 3, arguments + count);
  Run(&world, std::stod(arguments[1]), seed, BreakModel(world.directories[0], scratch));
  fs::remove_all(scratch);
  Require(world.counter.rows >= kCases, "calls were not reported to their observer");
  std::printf(
      "seed %llu: %zu rows answered, %zu cancelled, %zu requests refused, %zu loads, "
      "%zu loads refused\n",
      static_cast<unsigned long long>(seed), world.answered.load(), world.cancelled.load(),
      world.refused.load(), world.loads.load(), world.refused_loads.load());
  return 0;
}
