// SPDX-License-Identifier: Apache-2.0
//
// Batches of requests through the whole backend on a tiny model: every request is answered and
// given back exactly once, with an error only for what is the client's mistake, with outputs that
// fit their shapes. Requests may break rules that Triton itself keeps.
//
// CT2_TRITON_FUZZ_MODEL names the model's directory.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/parameters.h"
#include "config/tensor_table.h"
#include "fuzz.h"
#include "triton_stand_in.h"

namespace {

namespace fs = std::filesystem;
using fuzz::Require;
using stand_in::Call;

// Small bounds, so that a request costs little. A fresh model for every process.
std::unique_ptr<stand_in::Model> Load() {
  const char* directory = std::getenv("CT2_TRITON_FUZZ_MODEL");
  Require(directory != nullptr, "CT2_TRITON_FUZZ_MODEL is not set");
  const fs::path folder = fs::temp_directory_path() / ("fuzz_request-" + std::to_string(getpid()));
  fs::create_directories(folder / "1");
  fs::copy(directory, folder / "1" / "model", fs::copy_options::recursive);
  auto model = std::make_unique<stand_in::Model>(
      folder.string(),
      R"({"name":"fuzz","backend":"ctranslate2","max_batch_size":0,"input":[],"output":[],
          "parameters":{"compute_type":{"string_value":"float32"},
                        "inter_threads":{"string_value":"1"},
                        "max_decoding_length":{"string_value":"4"},
                        "decoding_length_limit":{"string_value":"4"},
                        "max_beam_size":{"string_value":"3"},
                        "max_num_hypotheses":{"string_value":"3"}}})",
      1);
  fs::remove_all(folder);
  return model;
}

std::string SomeInputName(FuzzedDataProvider* data) {
  static const std::string kNames[] = {"INPUT_IDS",     "INPUT_IDS",      "TARGET_PREFIX",
                                       "INPUT_LENGTHS", "PREFIX_LENGTHS", "DRAFT_IDS"};
  if (data->ConsumeIntegralInRange(0, 15) == 0) return data->ConsumeRandomLengthString(8);
  return data->PickValueInArray(kNames);
}

stand_in::Tensor SomeTensor(FuzzedDataProvider* data) {
  stand_in::Tensor tensor;
  tensor.name = SomeInputName(data);
  const bool usual = data->ConsumeIntegralInRange(0, 3) != 0;
  tensor.type = usual ? TRITONSERVER_TYPE_INT32
                      : static_cast<TRITONSERVER_DataType>(data->ConsumeIntegralInRange(0, 14));
  size_t bytes = stand_in::ElementSize(tensor.type);
  for (int rank = usual ? 2 : data->ConsumeIntegralInRange(0, 3); rank > 0; --rank) {
    tensor.shape.push_back(data->ConsumeIntegralInRange<int64_t>(usual ? 0 : -1, 5));
    bytes *= static_cast<size_t>(std::max<int64_t>(0, tensor.shape.back()));
  }
  if (data->ConsumeIntegralInRange(0, 15) == 0) bytes = data->ConsumeIntegralInRange<size_t>(0, 99);
  if (data->ConsumeBool()) {  // ids of the vocabulary
    for (size_t i = 0; i < bytes; ++i) {
      tensor.bytes += static_cast<char>(i % 4 == 0 ? data->ConsumeIntegral<uint8_t>() : 0);
    }
  } else {
    tensor.bytes = data->ConsumeBytesAsString(bytes);
    tensor.bytes.resize(bytes);
  }
  return tensor;
}

std::string SomeText(FuzzedDataProvider* data) {
  std::string text = data->ConsumeRandomLengthString(32);
  if (data->ConsumeIntegralInRange(0, 7) != 0) return text.c_str();
  std::string long_text = "[\"";  // may be a list, with a token of some size
  for (int i = 0; i < 500; ++i) long_text += text;
  long_text += "\"]";
  return long_text.c_str();
}

std::pair<std::string, stand_in::ParameterValue> SomeParameter(FuzzedDataProvider* data) {
  const auto& table = ct2triton::Parameters();
  std::string name(table[data->ConsumeIntegralInRange<size_t>(0, table.size() - 1)].name);
  if (data->ConsumeIntegralInRange(0, 15) == 0) name = data->ConsumeRandomLengthString(16);
  name = name.c_str();  // on the wire it ends at the first zero
  switch (data->ConsumeIntegralInRange(0, 4)) {
    case 0:
      return {name, data->ConsumeIntegral<int64_t>()};
    case 1:
      return {name, data->ConsumeBool()};
    case 2:
      return {name, data->ConsumeFloatingPoint<double>()};
    case 3:
      return {name, SomeText(data)};
    default:
      return {name, data->ConsumeIntegralInRange<int64_t>(0, 6)};
  }
}

stand_in::RequestContent SomeContent(FuzzedDataProvider* data) {
  stand_in::RequestContent content;
  for (int count = data->ConsumeIntegralInRange(0, 4); count > 0; --count) {
    content.inputs.push_back(SomeTensor(data));
  }
  content.buffers = data->ConsumeIntegralInRange<size_t>(1, 4);
  for (int count = data->ConsumeIntegralInRange(0, 3); count > 0; --count) {
    content.parameters.push_back(SomeParameter(data));
  }
  for (const auto& rule : ct2triton::OutputRules()) {
    if (data->ConsumeBool()) content.outputs.emplace_back(rule.name);
  }
  return content;
}

struct Sent {
  std::shared_ptr<Call> call = std::make_shared<Call>();
  std::vector<std::string> outputs;
  bool cancelled = false;
};

void CheckAnswer(const Sent& sent) {
  const stand_in::Answer& answer = sent.call->Wait();
  if (answer.error) {
    fuzz::RequireSentence(answer.message);
    Require(answer.error == TRITONSERVER_ERROR_INVALID_ARG ||
                (sent.cancelled && answer.error == TRITONSERVER_ERROR_CANCELLED),
            "not the client's mistake: " + answer.message);
    return;
  }
  Require(answer.outputs.size() == sent.outputs.size(), "not the outputs asked for");
  for (const auto& [name, output] : answer.outputs) {
    Require(output.shape.size() == (name == "HYPOTHESES" ? 3 : 2) ||
                output.shape.size() == (name == "HYPOTHESES" ? 2 : 1),
            name + " has another rank");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const std::unique_ptr<stand_in::Model> model = Load();
  static const auto handles_of_model = stand_in::LiveHandles();  // its metrics
  FuzzedDataProvider data(bytes, size);
  std::vector<Sent> sent(data.ConsumeIntegralInRange<size_t>(1, 3));
  std::vector<TRITONBACKEND_Request*> batch;
  for (Sent& one : sent) {
    auto content = SomeContent(&data);
    one.outputs = content.outputs;
    one.cancelled = data.ConsumeIntegralInRange(0, 7) == 0;
    if (one.cancelled) one.call->Cancel();
    batch.push_back(stand_in::NewRequest(std::move(content), one.call));
  }
  model->Execute(0, std::move(batch));
  for (const Sent& one : sent) CheckAnswer(one);
  Require(stand_in::LiveHandles() == handles_of_model, "handles were not freed");
  return 0;
}
