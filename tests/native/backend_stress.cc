// SPDX-License-Identifier: Apache-2.0
//
// The whole backend under many threads, with a stand-in for Triton that counts: batches of good,
// bad and cancelled requests on two instances of two models, one that decodes greedy rows in loops
// and one in calls, while other models on the same files are loaded, refused, and unloaded with
// requests in flight. Meant to run under a sanitizer.
//
// backend_stress <seconds> <seed> <model directory>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "stress.h"
#include "triton_stand_in.h"

namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int64_t>;
using Parameters = std::vector<std::pair<std::string, stand_in::ParameterValue>>;
using stand_in::Answer;
using stand_in::Call;
using stand_in::Require;
using stress::Clock;
using stress::Draw;
using stress::Random;

constexpr size_t kInstances = 2;
constexpr size_t kCases = 48;
constexpr stress::Pace kPace = {6, 2000, 4, 24};
constexpr int64_t kLargestPiece = 999;
constexpr int64_t kEnd = 2;
constexpr int64_t kPadding = 1;

const std::vector<Parameters> kOptions = {
    {{"beam_size", int64_t{1}}, {"max_decoding_length", int64_t{8}}},
    {{"beam_size", int64_t{3}}, {"max_decoding_length", std::string("6")}},
    {{"num_hypotheses", int64_t{2}}, {"return_scores", true}, {"max_decoding_length", int64_t{5}}},
    {{"replace_unknowns", true}, {"return_alignments", true}, {"max_decoding_length", int64_t{7}}},
};

const std::vector<std::pair<std::string, std::string>> kRefusedSettings = {
    {"beam_size", "many"},        {"beam_sise", "2"},           {"pad_id", "-1"},
    {"compute_type", "int9"},     {"model_path", "../nowhere"}, {"model_path", "../../elsewhere"},
    {"end_token", "[123456789]"}, {"special_ids", "[1,"},
};

// A configuration that leaves its tensors to the backend.
std::string Config(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string parameters;
  for (const auto& [name, value] : settings) {
    std::string escaped;
    for (const char c : value) escaped += (c == '"' ? "\\\"" : std::string(1, c));
    parameters += (parameters.empty() ? "" : ",") + ("\"" + name) + "\":{\"string_value\":\"" +
                  escaped + "\"}";
  }
  return R"({"name":"model","backend":"ctranslate2","max_batch_size":0,"input":[],"output":[],)"
         R"("instance_group":[{"kind":"KIND_CPU"}],"parameters":{)" +
         parameters + "}}";
}

const std::vector<std::pair<std::string, std::string>> kSettings = {{"compute_type", "float32"},
                                                                    {"inter_threads", "2"},
                                                                    {"max_batch_rows", "8"},
                                                                    {"max_queued_rows", "16"}};

std::vector<std::pair<std::string, std::string>> Settings(const char* decoding) {
  auto settings = kSettings;
  settings.emplace_back("decoding", decoding);
  return settings;
}

template <typename T>
stand_in::Tensor IdTensor(const char* name, TRITONSERVER_DataType type, std::vector<int64_t> shape,
                          const std::vector<int64_t>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
  }
  return {name, type, std::move(shape), std::move(bytes)};
}

// A row with what it must give for each of kOptions.
struct Case {
  Ids source;
  int64_t prefix = 0;
  std::vector<std::string> outputs;  // bytes of HYPOTHESES when the row is alone
};

struct Sent {
  std::shared_ptr<Call> call;
  const Case* only = nullptr;  // the one row of a good request
  size_t options = 0;
  bool bad = false;
  bool cancelled = false;
  bool keyed = false;  // a newer request may supersede it
};

struct World {
  std::string folder;
  std::vector<Case> cases;
  std::atomic<size_t> good{0}, refused{0}, cancelled{0}, superseded{0}, loads{0}, refused_loads{0};
  Clock::time_point end;
};

stand_in::RequestContent Content(const std::vector<const Case*>& rows, size_t options,
                                 Random* random) {
  size_t width = 0;
  for (const Case* row : rows) width = std::max(width, row->source.size());
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<int64_t> ids, lengths, prefixes;
  for (const Case* row : rows) {
    ids.insert(ids.end(), row->source.begin(), row->source.end());
    ids.insert(ids.end(), width - row->source.size(), kPadding);
    lengths.push_back(static_cast<int64_t>(row->source.size()));
    prefixes.push_back(row->prefix);
  }
  stand_in::RequestContent content;
  const std::vector<int64_t> shape = {count, static_cast<int64_t>(width)};
  content.inputs.push_back(
      Draw(random, 0, 1) ? IdTensor<int64_t>("INPUT_IDS", TRITONSERVER_TYPE_INT64, shape, ids)
                         : IdTensor<uint16_t>("INPUT_IDS", TRITONSERVER_TYPE_UINT16, shape, ids));
  content.inputs.push_back(
      IdTensor<int32_t>("INPUT_LENGTHS", TRITONSERVER_TYPE_INT32, {count, 1}, lengths));
  content.inputs.push_back(
      IdTensor<int32_t>("TARGET_PREFIX", TRITONSERVER_TYPE_INT32, {count, 1}, prefixes));
  content.buffers = static_cast<size_t>(Draw(random, 1, 4));
  content.parameters = kOptions[options];
  content.outputs = {"OUTPUT_IDS", "HYPOTHESES", "FINISH_REASON", "SCORES"};
  return content;
}

Case SomeCase(Random* random) {
  Case one;
  for (int64_t pieces = Draw(random, 0, 16); pieces > 0; --pieces) {
    one.source.push_back(Draw(random, 4, kLargestPiece));
  }
  one.source.push_back(kEnd);
  one.prefix = Draw(random, 4, kLargestPiece);
  return one;
}

void ComputeTruth(World* world, stand_in::Model* model, Random* random) {
  for (size_t i = 0; i < kCases; ++i) {
    Case one = SomeCase(random);
    for (size_t options = 0; options < kOptions.size(); ++options) {
      const auto call = std::make_shared<Call>();
      model->Execute(0, {stand_in::NewRequest(Content({&one}, options, random), call)});
      const Answer& answer = call->Wait();
      Require(!answer.error, "a good request failed: " + answer.message);
      one.outputs.push_back(answer.outputs.at("HYPOTHESES").bytes);
    }
    world->cases.push_back(std::move(one));
  }
}

// Spoils a request in one of the ways a client can.
void Spoil(stand_in::RequestContent* content, Random* random) {
  stand_in::Tensor& ids = content->inputs[0];
  switch (Draw(random, 0, 6)) {
    case 0:
      std::memset(ids.bytes.data(), 0xFF, stand_in::ElementSize(ids.type));
      return;
    case 1:
      content->parameters.emplace_back("beam_sise", int64_t{1});
      return;
    case 2:
      content->parameters.emplace_back("num_hypotheses", int64_t{30});
      return;
    case 3:
      content->inputs[1].bytes[0] = 100;
      return;
    case 4:
      ids.bytes.pop_back();
      return;
    case 5:
      ids.type = TRITONSERVER_TYPE_FP32;
      return;
    default:
      content->inputs.erase(content->inputs.begin());
  }
}

Sent SomeRequest(World* world, Random* random, std::vector<TRITONBACKEND_Request*>* batch) {
  Sent sent;
  sent.call = std::make_shared<Call>();
  sent.options = static_cast<size_t>(Draw(random, 0, static_cast<int64_t>(kOptions.size()) - 1));
  std::vector<const Case*> rows;
  const int64_t count = Draw(random, 0, 2) ? 1 : Draw(random, 1, 5);
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back(&world->cases[static_cast<size_t>(Draw(random, 0, kCases - 1))]);
  }
  if (count == 1) sent.only = rows[0];
  auto content = Content(rows, sent.options, random);
  sent.keyed = Draw(random, 0, 3) == 0;
  if (sent.keyed) {
    content.parameters.emplace_back("supersede_key", "key " + std::to_string(Draw(random, 0, 2)));
  }
  sent.bad = Draw(random, 0, 5) == 0;
  if (sent.bad) Spoil(&content, random);
  batch->push_back(stand_in::NewRequest(std::move(content), sent.call));
  return sent;
}

void CheckAnswer(World* world, const Sent& sent) {
  const Answer& answer = sent.call->Wait();
  if (answer.error == TRITONSERVER_ERROR_CANCELLED) {
    const bool superseded = answer.message.rfind("superseded", 0) == 0;
    Require(superseded ? sent.keyed : sent.cancelled, "cancelled by nobody");
    ++(superseded ? world->superseded : world->cancelled);
  } else if (sent.bad) {
    Require(answer.error == TRITONSERVER_ERROR_INVALID_ARG,
            "a bad request was not refused as the client's: " + answer.message);
    ++world->refused;
  } else {
    Require(!answer.error, "a good request failed: " + answer.message);
    Require(answer.outputs.size() == 4, "not the outputs asked for");
    const bool whole = sent.only != nullptr && !sent.cancelled;
    Require(!whole || answer.outputs.at("HYPOTHESES").bytes == sent.only->outputs[sent.options],
            "an answer differs from the row's own");
    ++world->good;
  }
}

void RefuseLoad(World* world, size_t round) {
  auto settings = kSettings;
  settings.push_back(kRefusedSettings[round % kRefusedSettings.size()]);
  try {
    const stand_in::Model model(world->folder, Config(settings), 1);
    Require(false, "a bad configuration was loaded");
  } catch (const std::runtime_error&) {
    ++world->refused_loads;
  }
}

void Reload(World* world, uint64_t seed) {
  Random random(seed);
  for (size_t round = 0; Clock::now() < world->end; ++round) {
    std::vector<Sent> sent;
    auto settings = Settings(Draw(&random, 0, 1) ? "loop" : "calls");
    if (Draw(&random, 0, 1)) settings[1].second = "1";
    {
      stand_in::Model model(world->folder, Config(settings), kInstances);
      for (size_t i = 0; i < 4; ++i) {
        std::vector<TRITONBACKEND_Request*> batch;
        sent.push_back(SomeRequest(world, &random, &batch));
        sent.push_back(SomeRequest(world, &random, &batch));
        model.Execute(i % kInstances, std::move(batch));
      }
    }
    for (const Sent& one : sent) CheckAnswer(world, one);
    ++world->loads;
    RefuseLoad(world, round);
  }
}

void Run(World* world, double seconds, uint64_t seed) {
  Random random(seed);
  stand_in::Model calls(world->folder, Config(Settings("calls")), kInstances);
  stand_in::Model loops(world->folder, Config(Settings("loop")), kInstances);
  ComputeTruth(world, &calls, &random);
  world->end = stress::After(seconds);
  const auto make = [world](Random* drawn, std::vector<TRITONBACKEND_Request*>* batch) {
    return SomeRequest(world, drawn, batch);
  };
  stress::OnThreads(2 * kInstances + 1, [&](size_t i) {
    if (i == 2 * kInstances) return Reload(world, seed);
    stress::KeepSending<Sent>(i % 2 ? &loops : &calls, i / 2, world->end, seed + i + 1, kPace, make,
                              [world](const Sent& sent) { CheckAnswer(world, sent); });
  });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: backend_stress <seconds> <seed> <model directory>\n");
    return 2;
  }
  const auto seed = std::stoull(arguments[2]);
  const fs::path folder =
      fs::temp_directory_path() / ("backend_stress-" + std::to_string(getpid()));
  fs::create_directories(folder / "1");
  fs::copy(arguments[3], folder / "1" / "model", fs::copy_options::recursive);
  World world;
  world.folder = folder.string();
  Run(&world, std::stod(arguments[1]), seed);
  fs::remove_all(folder);
  Require(stand_in::LiveHandles() == 0, "handles were not freed");
  std::printf(
      "seed %llu: %zu good, %zu refused, %zu cancelled, %zu superseded requests, %zu loads, "
      "%zu loads refused, every handle freed\n",
      seed, world.good.load(), world.refused.load(), world.cancelled.load(),
      world.superseded.load(), world.loads.load(), world.refused_loads.load());
  return 0;
}
