// SPDX-License-Identifier: Apache-2.0
//
// Parameters of a config and of requests, by name and value. A value that is taken is inside its
// range, a value that is refused changes nothing, and no combination that passes is one of those
// that end CTranslate2's process.
#include <cmath>
#include <string>
#include <type_traits>

#include "config/parameters.h"
#include "config/validate.h"
#include "fuzz.h"

namespace {

using namespace ct2triton;
using fuzz::Require;

std::string SomeText(FuzzedDataProvider* data) {
  static const char* const kTexts[] = {"4",     "0.5",   "true", "[]",  "[[1,2],[\"a\"]]",
                                       "1e400", "[1,2]", "-0.0", "nan", "[\"</s>\"]",
                                       "0x10",  "int8"};
  if (data->ConsumeBool()) return data->PickValueInArray(kTexts);
  const std::string text = data->ConsumeRandomLengthString(64);
  if (data->ConsumeIntegralInRange(0, 15) != 0) return text;
  std::string long_text = "[\"";  // may be a list, with a token of some size
  for (int i = 0; i < 500; ++i) long_text += text;
  return long_text + "\"]";
}

ParameterValue SomeValue(FuzzedDataProvider* data) {
  switch (data->ConsumeIntegralInRange(0, 4)) {
    case 0:
      return data->ConsumeIntegral<int64_t>();
    case 1:
      return data->ConsumeIntegralInRange<int64_t>(-2, 40);
    case 2:
      return data->ConsumeBool();
    case 3:
      return data->ConsumeFloatingPoint<double>();
    default:
      return SomeText(data);
  }
}

std::string SomeName(FuzzedDataProvider* data) {
  if (data->ConsumeIntegralInRange(0, 7) == 0) return data->ConsumeRandomLengthString(40);
  const auto& table = Parameters();
  return std::string(table[data->ConsumeIntegralInRange<size_t>(0, table.size() - 1)].name);
}

bool Inside(double number, const Range& range) {
  return std::isfinite(number) && number >= range.min && number <= range.max &&
         !(range.above_min && number == range.min) && !(range.below_max && number == range.max);
}

void CheckToken(const Token& token, const Range& range) {
  if (const auto* id = std::get_if<int64_t>(&token)) {
    Require(Inside(static_cast<double>(*id), range), "an id outside its range");
  } else {
    Require(!std::get<std::string>(token).empty(), "an empty token");
  }
}

template <typename Value>
void CheckValue(const Value& value, const Range& range) {
  if constexpr (std::is_same_v<Value, float>) {
    // Bounds narrow with the value.
    const Range narrow{static_cast<float>(range.min), static_cast<float>(range.max),
                       range.above_min, range.below_max};
    Require(Inside(value, narrow), "a number outside its range");
  } else if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
    Require(Inside(static_cast<double>(value), range), "a number outside its range");
  } else if constexpr (std::is_same_v<Value, std::optional<int64_t>>) {
    if (value) Require(Inside(static_cast<double>(*value), range), "a number outside its range");
  } else if constexpr (std::is_same_v<Value, TokenSequence>) {
    for (const Token& token : value) CheckToken(token, range);
  } else if constexpr (std::is_same_v<Value, std::vector<TokenSequence>>) {
    for (const auto& sequence : value) {
      Require(!sequence.empty(), "an empty sequence");
      for (const Token& token : sequence) CheckToken(token, range);
    }
  } else if constexpr (std::is_same_v<Value, std::string>) {
    const bool set = range.max > 0 && !value.empty();
    if (set) Require(Inside(static_cast<double>(value.size()), range), "a string too long");
  } else if constexpr (std::is_same_v<Value, std::vector<int64_t>>) {
    for (const int64_t id : value) Require(Inside(static_cast<double>(id), range), "an id outside");
  }
}

void CheckAll(const DecodingOptions& decoding, const EngineOptions& engine,
              const RequestOptions& request) {
  for (const Parameter& parameter : Parameters()) {
    std::visit(
        [&](auto member) {
          if constexpr (std::is_invocable_v<decltype(member), const DecodingOptions&>) {
            CheckValue(decoding.*member, parameter.range);
          } else if constexpr (std::is_invocable_v<decltype(member), const EngineOptions&>) {
            CheckValue(engine.*member, parameter.range);
          } else {
            CheckValue(request.*member, parameter.range);
          }
        },
        parameter.member);
  }
}

// What CTranslate2 does not survive, or refuses for a whole call (measured on 4.8.5).
void CheckSafe(const DecodingOptions& o, const EngineOptions& engine) {
  const bool greedy = o.beam_size == 1 && o.prefix_bias_beta == 0;
  const bool samples = o.sampling_topk != 1 && o.sampling_temperature != 0;
  Require(!greedy || o.coverage_penalty == 0, "SIGSEGV: coverage penalty in greedy search");
  Require(greedy || !samples || o.sampling_topk == 0 || o.sampling_topk >= 2 * o.beam_size,
          "SIGSEGV: a beam that draws more than there is");
  Require(!o.return_alternatives || o.min_alternative_expansion_prob == 0,
          "SIGFPE: alternatives that do not reach the probability");
  Require(o.beam_size <= engine.max_beam_size && o.num_hypotheses <= engine.max_num_hypotheses &&
              o.max_decoding_length <= engine.decoding_length_limit,
          "the operator's limits");
}

struct Settings {
  DecodingOptions decoding;
  EngineOptions engine;
  RequestOptions request;
};

void Set(bool of_model, const std::string& name, const ParameterValue& value, Settings* settings) {
  const DecodingOptions before = settings->decoding;
  const bool accepted = fuzz::Accepted([&] {
    if (of_model) {
      SetModelParameter(name, value, &settings->decoding, &settings->engine);
    } else {
      SetRequestParameter(name, value, settings->engine, &settings->decoding, &settings->request);
    }
  });
  if (!accepted) Require(settings->decoding == before, "a refused value changed the options");
  CheckAll(settings->decoding, settings->engine, settings->request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  Settings settings;
  bool of_model = true;
  for (int count = 0; count < 24 && data.remaining_bytes() > 0; ++count) {
    of_model = of_model && data.ConsumeIntegralInRange(0, 7) != 0;
    const std::string name = SomeName(&data);
    Set(of_model, name, SomeValue(&data), &settings);
  }
  if (fuzz::Accepted([&] { ValidateCombination(settings.decoding, settings.engine); })) {
    CheckSafe(settings.decoding, settings.engine);
  }
  fuzz::Accepted([&] { ValidateEngine(settings.engine); });
  return 0;
}
