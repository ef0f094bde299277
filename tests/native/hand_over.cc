// SPDX-License-Identifier: Apache-2.0
//
// A request is superseded while the backend hands its rows over to the queue, and is answered
// though the model's only worker is busy. Then the model is unloaded: every request is answered.
// Another instance takes the newer request at a random moment after the older one came.
//
// hand_over <rounds> <seed> <directory of a model that takes endless rows>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stress.h"
#include "triton_stand_in.h"

namespace {

namespace fs = std::filesystem;
using stand_in::Answer;
using stand_in::Call;
using stand_in::Require;
using stress::Draw;
using stress::Pick;
using stress::Random;

constexpr int64_t kEndless = 32'000;  // ids of a row
constexpr int64_t kShort = 4;
constexpr unsigned kMost_s = 600;
constexpr int64_t kMostSpins = 20'000;
const std::vector<std::string> kDecoding = {"loop", "calls"};
const std::vector<std::string> kPlaces = {"4", "64", "1024"};
const std::vector<int64_t> kRows = {1, 8, 40, 300};  // small, large, and more than enter at once

std::string Config(const std::string& decoding, const std::string& places) {
  return R"({"name":"model","backend":"ctranslate2","max_batch_size":0,"input":[],"output":[],)"
         R"("instance_group":[{"kind":"KIND_CPU"}],"parameters":{)"
         R"("decoding_length_limit":{"string_value":"65536"},"beam_size":{"string_value":"1"},)"
         R"("compute_type":{"string_value":"float32"},"inter_threads":{"string_value":"1"},)"
         R"("max_batch_rows":{"string_value":"1"},"max_queued_rows":{"string_value":")" +
         places + R"("},"decoding":{"string_value":")" + decoding + R"("}}})";
}

stand_in::RequestContent Content(const char* key, int64_t rows, int64_t length) {
  std::vector<int32_t> ids, prefixes;
  for (int64_t i = 0; i < rows; ++i) {
    ids.insert(ids.end(), {50, static_cast<int32_t>(100 + i), 2});
    prefixes.push_back(60);
  }
  const auto tensor = [rows](const char* name, int64_t width, const std::vector<int32_t>& values) {
    return stand_in::Tensor{name,
                            TRITONSERVER_TYPE_INT32,
                            {rows, width},
                            {reinterpret_cast<const char*>(values.data()), values.size() * 4}};
  };
  stand_in::RequestContent content;
  content.inputs = {tensor("INPUT_IDS", 3, ids), tensor("TARGET_PREFIX", 1, prefixes)};
  content.parameters = {{"supersede_key", std::string(key)},
                        {"min_decoding_length", length},
                        {"max_decoding_length", length}};
  content.outputs = {"OUTPUT_IDS"};
  return content;
}

struct Sent {
  std::shared_ptr<Call> call = std::make_shared<Call>();

  void To(stand_in::Model* model, size_t instance, const char* key, int64_t rows,
          int64_t length) const {
    model->Execute(instance, {stand_in::NewRequest(Content(key, rows, length), call)});
  }
  bool Superseded() const {
    const Answer& answer = call->Wait();
    if (!answer.error) return false;
    Require(
        answer.error == TRITONSERVER_ERROR_CANCELLED && answer.message.rfind("superseded", 0) == 0,
        "a good request failed: " + answer.message);
    return true;
  }
};

// Takes the only worker of the model until it is superseded.
Sent Occupy(stand_in::Model* model) {
  Sent endless;
  const auto here = std::this_thread::get_id();
  const auto runs = std::make_shared<std::promise<void>>();
  const auto told = std::make_shared<std::atomic<bool>>(false);
  endless.call->when_asked = [=]() noexcept {
    if (std::this_thread::get_id() != here && !told->exchange(true)) runs->set_value();
  };
  endless.To(model, 1, "worker", 1, kEndless);
  runs->get_future().wait();
  return endless;
}

void Meet(const std::string& folder, Random* random) {
  const std::string& decoding = Pick(kDecoding, random);
  std::optional<stand_in::Model> model;
  model.emplace(folder, Config(decoding, Pick(kPlaces, random)), 2);
  const int64_t rows = Pick(kRows, random);
  const int64_t spins = Draw(random, 0, kMostSpins);
  const Sent occupying = Occupy(&*model);
  const Sent older, newer, last, end;
  std::atomic<bool> is_read{false};
  older.call->when_asked = [&is_read]() noexcept { is_read = true; };
  stress::OnThreads(2, [&](size_t instance) {
    if (instance == 0) return older.To(&*model, 0, "k", rows, kEndless);
    while (!is_read) std::this_thread::yield();
    for (std::atomic<int64_t> spun{0}; spun < spins;) ++spun;
    newer.To(&*model, 1, "k", 1, kShort);
  });
  // Where the newer one was taken first, the older one still waits.
  last.To(&*model, 1, "k", 1, kShort);
  Require(older.Superseded(), "an endless request ended");
  end.To(&*model, 1, "worker", 1, kShort);
  model.reset();
  Require(occupying.Superseded(), "an endless request ended");
  Require(newer.Superseded(), "the newer request was not superseded");
  Require(!last.Superseded() && !end.Superseded(), "a newest request was superseded");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: hand_over <rounds> <seed> <model directory>\n");
    return 2;
  }
  alarm(kMost_s);  // ends what hangs
  const fs::path folder = fs::temp_directory_path() / ("hand_over-" + std::to_string(getpid()));
  fs::create_directories(folder / "1");
  fs::copy(arguments[3], folder / "1" / "model", fs::copy_options::recursive);
  const auto rounds = std::stoul(arguments[1]);
  Random random(std::stoull(arguments[2]));
  for (size_t i = 0; i < rounds; ++i) Meet(folder.string(), &random);
  fs::remove_all(folder);
  Require(stand_in::LiveHandles() == 0, "handles were not freed");
  std::printf("%zu unloads, every request answered\n", rounds);
  return 0;
}
