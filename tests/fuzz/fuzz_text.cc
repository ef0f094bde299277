// SPDX-License-Identifier: Apache-2.0
//
// Requests of text and of streams through the whole backend: every one is answered and given back
// once, with an error only for what is the client's mistake. Texts are UTF-8, ranges lie in them,
// and the parts of a stream, joined, are the answer of the model that does not stream.
//
// CT2_TRITON_FUZZ_TEXT_MODEL names the folder of a prepared model.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "config/parameters.h"
#include "fuzz.h"
#include "text/code_points.h"
#include "text_tensors.h"
#include "triton_stand_in.h"

namespace {

using fuzz::Require;
using stand_in::Answer;
using stand_in::Call;
using Texts = std::vector<std::string>;

// Small bounds, so that a request costs little and meets them.
std::unique_ptr<stand_in::Model> Load(bool streams) {
  const char* folder = std::getenv("CT2_TRITON_FUZZ_TEXT_MODEL");
  Require(folder != nullptr, "CT2_TRITON_FUZZ_TEXT_MODEL is not set");
  return std::make_unique<stand_in::Model>(
      folder,
      R"({"name":"fuzz","backend":"ctranslate2","max_batch_size":0,"output":[],)"
      R"("input":[{"name":"text_input"}],"instance_group":[{"kind":"KIND_CPU"}],)"
      R"("model_transaction_policy":{"decoupled":)" +
          std::string(streams ? "true" : "false") +
          R"(},"parameters":{"beam_size":{"string_value":"1"},)"
          R"("source_language":{"string_value":"en"},"compute_type":{"string_value":"float32"},)"
          R"("max_decoding_length":{"string_value":"4"},)"
          R"("decoding_length_limit":{"string_value":"6"},"inter_threads":{"string_value":"1"},)"
          R"("max_beam_size":{"string_value":"2"},"max_num_hypotheses":{"string_value":"2"},)"
          R"("max_text_bytes":{"string_value":"120"},"max_text_sentences":{"string_value":"5"},)"
          R"("max_targets":{"string_value":"3"},"max_request_rows":{"string_value":"9"}}})",
      1);
}

std::string SomeText(FuzzedDataProvider* data) {
  static const std::string kTexts[] = {"Good morning.", "Gate C19 closes. Good morning.\n\n—",
                                       " \n", "日本。よい。", "Dr. No: \"Hi!\" </s>"};
  switch (data->ConsumeIntegralInRange(0, 3)) {
    case 0:
      return data->ConsumeRandomLengthString(140);
    case 1:
      return data->PickValueInArray(kTexts) + data->ConsumeRandomLengthString(20);
    default:
      return data->PickValueInArray(kTexts);
  }
}

std::string SomeLanguage(FuzzedDataProvider* data) {
  static const std::string kLanguages[] = {"en", "de", "fr", "nld_Latn", "ES", "it-IT", ""};
  if (data->ConsumeIntegralInRange(0, 15) == 0) return data->ConsumeRandomLengthString(30);
  return data->PickValueInArray(kLanguages);
}

// One tensor, now and then of another type, shape, or with bytes that do not fit it.
stand_in::Tensor SomeTensor(const std::string& name, const Texts& values,
                            FuzzedDataProvider* data) {
  stand_in::Tensor tensor = stand_in::Strings(name, values);
  if (data->ConsumeIntegralInRange(0, 15) != 0) return tensor;
  switch (data->ConsumeIntegralInRange(0, 3)) {
    case 0:
      tensor.type = static_cast<TRITONSERVER_DataType>(data->ConsumeIntegralInRange(0, 14));
      break;
    case 1:
      tensor.shape.clear();
      for (int rank = data->ConsumeIntegralInRange(0, 3); rank > 0; --rank) {
        tensor.shape.push_back(data->ConsumeIntegralInRange<int64_t>(-1, 5));
      }
      break;
    case 2:
      tensor.bytes = data->ConsumeRandomLengthString(40);
      break;
    default:
      tensor.name = data->ConsumeRandomLengthString(12);
  }
  return tensor;
}

std::pair<std::string, stand_in::ParameterValue> SomeParameter(FuzzedDataProvider* data) {
  static const std::string kSplits[] = {"sentences", "lines", "none", "words"};
  if (data->ConsumeBool()) return {"split", data->PickValueInArray(kSplits)};
  const auto& table = ct2triton::Parameters();
  const std::string name(table[data->ConsumeIntegralInRange<size_t>(0, table.size() - 1)].name);
  switch (data->ConsumeIntegralInRange(0, 3)) {
    case 0:
      return {name, data->ConsumeBool()};
    case 1:
      return {name, data->ConsumeFloatingPoint<double>()};
    case 2:
      return {name, std::string(data->ConsumeRandomLengthString(16).c_str())};
    default:
      return {name, data->ConsumeIntegralInRange<int64_t>(0, 6)};
  }
}

stand_in::RequestContent SomeContent(FuzzedDataProvider* data) {
  stand_in::RequestContent content;
  content.inputs.push_back(SomeTensor("text_input", {SomeText(data)}, data));
  if (data->ConsumeIntegralInRange(0, 3) == 0) {
    content.inputs.push_back(SomeTensor("source_language", {SomeLanguage(data)}, data));
  }
  Texts targets;
  for (int count = data->ConsumeIntegralInRange(0, 4); count > 0; --count) {
    targets.push_back(SomeLanguage(data));
  }
  content.inputs.push_back(SomeTensor("target_languages", targets, data));
  if (data->ConsumeIntegralInRange(0, 31) == 0) content.inputs.erase(content.inputs.begin());
  content.buffers = data->ConsumeIntegralInRange<size_t>(1, 4);
  for (int count = data->ConsumeIntegralInRange(0, 2); count > 0; --count) {
    content.parameters.push_back(SomeParameter(data));
  }
  return content;
}

void CheckTexts(const Answer& answer) {
  for (const char* name : {"text_output", "finish_reason", "target_language"}) {
    const auto found = answer.outputs.find(name);
    if (found == answer.outputs.end()) continue;
    for (const std::string& text : stand_in::ReadStrings(found->second)) {
      Require(!ct2triton::InvalidUtf8(text), std::string(name) + " is no UTF-8");
    }
  }
}

void CheckRanges(const Answer& answer) {
  const auto found = answer.outputs.find("target_ranges");
  if (found == answer.outputs.end()) return;
  const Texts texts = stand_in::ReadStrings(answer.outputs.at("text_output"));
  const std::string& bytes = found->second.bytes;
  if (texts.empty()) return;
  const size_t each = bytes.size() / texts.size();
  for (size_t i = 0; i + sizeof(int32_t) <= bytes.size(); i += sizeof(int32_t)) {
    int32_t at;
    std::memcpy(&at, &bytes[i], sizeof(at));
    const auto size = static_cast<int32_t>(texts[std::min(i / each, texts.size() - 1)].size());
    Require(at >= -1 && at <= size, "a range that is not in the text");
  }
}

// The answer, or none: a mistake of the client, or cancelled.
const Answer* Checked(Call* call, bool cancelled) {
  const Answer& answer = call->Wait();
  if (!answer.error) {
    CheckTexts(answer);
    CheckRanges(answer);
    return &answer;
  }
  fuzz::RequireSentence(answer.message);
  Require(answer.error == TRITONSERVER_ERROR_INVALID_ARG ||
              (cancelled && answer.error == TRITONSERVER_ERROR_CANCELLED),
          "not the client's mistake: " + answer.message);
  return nullptr;
}

Texts Joined(const Call& call, const Answer& last, size_t targets) {
  Texts texts(targets);
  const auto add = [&](const Answer& part) {
    uint32_t index;
    std::memcpy(&index, part.outputs.at("target_index").bytes.data(), sizeof(index));
    Require(index < targets, "a part of no language");
    CheckTexts(part);
    texts[index] += stand_in::ReadStrings(part.outputs.at("text_output"))[0];
  };
  for (const Answer& part : call.parts()) add(part);
  add(last);
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const std::unique_ptr<stand_in::Model> unary = Load(false);
  static const std::unique_ptr<stand_in::Model> streaming = Load(true);
  FuzzedDataProvider data(bytes, size);
  const bool cancelled = data.ConsumeIntegralInRange(0, 15) == 0;
  const bool stream = data.ConsumeBool();
  stand_in::RequestContent content = SomeContent(&data);
  stand_in::RequestContent same = content;
  same.outputs = {"text_output"};
  content.outputs = {"text_output", "finish_reason"};
  content.outputs.emplace_back(stream ? "target_index" : "target_ranges");
  const auto call = std::make_shared<Call>();
  call->takes_parts = stream;
  if (stream) content.parameters.emplace_back("stream", true);
  if (cancelled) call->Cancel();
  (stream ? streaming : unary)->Execute(0, {stand_in::NewRequest(std::move(content), call)});
  const Answer* answer = Checked(call.get(), cancelled);
  if (answer != nullptr && stream) {
    const auto whole = std::make_shared<Call>();
    unary->Execute(0, {stand_in::NewRequest(std::move(same), whole)});
    const Answer& wanted = whole->Wait();
    Require(!wanted.error, "refused where a stream is not: " + wanted.message);
    const Texts texts = stand_in::ReadStrings(wanted.outputs.at("text_output"));
    Require(Joined(*call, *answer, texts.size()) == texts, "the parts are another text");
  }
  Require(stand_in::LiveHandles() == stand_in::LiveMetrics(), "handles were not freed");
  return 0;
}
