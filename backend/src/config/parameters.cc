// SPDX-License-Identifier: Apache-2.0
#include "config/parameters.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <tuple>
#include <type_traits>

#include "config/nearest_name.h"
#include "config/tensor_table.h"
#include "error.h"

namespace ct2triton {
namespace {

// In other servers `stop` is a list of texts; `end_token` here is a list of tokens.
constexpr std::string_view kStop = "stop";
constexpr std::optional<std::string_view> kEndToken = "end_token";

// A trailing * in the pattern matches any ending.
bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || pattern.back() != '*') return EqualsNoCase(pattern, name);
  pattern.remove_suffix(1);
  return EqualsNoCase(pattern, name.substr(0, pattern.size()));
}

const Parameter* Find(std::string_view name) {
  const std::string_view canonical = CanonicalName(name);
  for (const Parameter& parameter : Parameters()) {
    if (parameter.name == canonical) return &parameter;
  }
  return nullptr;
}

std::string AllowedNumber(std::string_view what, const Range& range) {
  return std::string(what) + (range.above_min ? " above " : " from ") + Show(range.min) +
         (range.below_max ? " to below " : " to ") + Show(range.max);
}

std::string Joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string AllowedString(const Parameter& parameter) {
  if (!parameter.choices.empty()) return "one of " + Joined(parameter.choices);
  if (parameter.range.max == 0) return "a string";
  return "a string of " + Show(parameter.range.min) + " to " + Show(parameter.range.max) + " bytes";
}

// Whether a config (kModel) or a request (kRequest) may set the parameter.
bool Takes(Scope from, const Parameter& parameter) {
  return parameter.scope == from ||
         parameter.scope == (from == Scope::kModel ? Scope::kRequest : Scope::kRequestOnly);
}

[[noreturn]] void ThrowUnknown(std::string_view name, Scope scope) {
  std::vector<std::string_view> known;
  for (const Parameter& parameter : Parameters()) {
    if (Takes(scope, parameter)) known.push_back(parameter.name);
  }
  std::vector<std::string_view> all = known;
  for (const Alias& alias : Aliases()) all.push_back(alias.name);
  // A member of a /generate request that names no input is also a parameter, so input names are
  // candidates.
  for (const bool of_text : {true, false}) {
    for (const TensorRule& input : InputRules(of_text)) all.push_back(input.name);
  }
  const auto nearest = name == kStop ? kEndToken : NearestName(name, all);
  ThrowInvalid("unknown parameter " + Quote(name) + "; " +
               (nearest ? "did you mean " + Quote(*nearest) + "?" : "known are " + Joined(known)));
}

bool IsAllowedChoice(const Parameter& parameter, const ParameterValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return parameter.choices.empty() ||
         (text != nullptr && std::find(parameter.choices.begin(), parameter.choices.end(), *text) !=
                                 parameter.choices.end());
}

// The structs that receive values. A pointer is null if no parameter of the scope belongs there.
using Owners = std::tuple<DecodingOptions*, EngineOptions*, RequestOptions*>;

template <class Value, class Owner>
Value& Field(const Owners& owners, Value Owner::*member) {
  return std::get<Owner*>(owners)->*member;
}

// `engine`: options of the model that bounds a request's value, or null.
Range RangeOf(const Parameter& parameter, const EngineOptions* engine) {
  Range range = parameter.range;
  if (engine != nullptr && parameter.limit != nullptr) {
    range.max = std::min(range.max, static_cast<double>(engine->*parameter.limit));
  }
  return range;
}

std::string BoundedBy(const Parameter& parameter, const EngineOptions* engine) {
  if (RangeOf(parameter, engine).max == parameter.range.max) return "";
  for (const Parameter& other : Parameters()) {
    const auto* member = std::get_if<std::int64_t EngineOptions::*>(&other.member);
    if (member != nullptr && *member == parameter.limit) {
      return ", the model's " + std::string(other.name);
    }
  }
  return "";
}

void Assign(const Parameter& parameter, const ParameterValue& value, const Owners& owners,
            const EngineOptions* engine = nullptr) {
  const Range range = RangeOf(parameter, engine);
  const bool good =
      IsAllowedChoice(parameter, value) &&
      std::visit([&](auto member) { return ParseValue(value, range, &Field(owners, member)); },
                 parameter.member);
  if (good) return;
  ThrowInvalid("parameter " + Quote(parameter.name) + ": the value " + Show(value) +
               " is not allowed; give " + Allowed(parameter, engine));
}

// Headers of one word that clients and proxies send, including those of WebDAV. Triton forwards
// headers as parameters. A name that equals a parameter's name is always that parameter.
constexpr std::string_view kHeadersOfOneWord[] = {
    "accept",  "authorization", "b3",        "baggage", "connection", "cookie",      "date",
    "depth",   "destination",   "digest",    "dnt",     "downlink",   "dpop",        "dpr",
    "ect",     "expect",        "forwarded", "from",    "host",       "if",          "isolation",
    "label",   "link",          "meter",     "origin",  "overwrite",  "position",    "pragma",
    "prefer",  "priority",      "range",     "referer", "refresh",    "rtt",         "signature",
    "slug",    "tcn",           "te",        "timeout", "topic",      "traceparent", "tracestate",
    "trailer", "ttl",           "upgrade",   "urgency", "via",        "warning",     "width",
};

// Other headers contain a hyphen, which no parameter does. A hyphen in place of a parameter's _ is
// a mistake, and so is a value that is not a string. Aliases do not count as parameters here:
// "max-tokens" may be the header of a proxy.
bool IsHeader(std::string_view name, const ParameterValue& value) {
  std::string folded(name);
  std::replace(folded.begin(), folded.end(), '-', '_');
  if (folded != name) {
    if (!std::holds_alternative<std::string>(value)) return false;
    const auto& table = Parameters();
    return std::none_of(table.begin(), table.end(), [&folded](const Parameter& parameter) {
      return EqualsNoCase(parameter.name, folded);
    });
  }
  return std::any_of(std::begin(kHeadersOfOneWord), std::end(kHeadersOfOneWord),
                     [name](std::string_view header) { return EqualsNoCase(header, name); });
}

}  // namespace

bool EqualsNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

void NamedOnce::Add(std::string_view name) {
  const auto [known, is_new] = names_.emplace(CanonicalName(name), name);
  if (is_new) return;
  ThrowInvalid("parameters " + Quote(known->second) + " and " + Quote(name) +
               " are the same; give one of them");
}

std::string_view CanonicalName(std::string_view name) {
  for (const Alias& alias : Aliases()) {
    if (alias.name == name) return alias.parameter;
  }
  return name;
}

std::string Allowed(const Parameter& parameter, const EngineOptions* engine) {
  return std::visit(
      [&](auto member) -> std::string {
        using Value = std::decay_t<decltype(Field(Owners(), member))>;
        if constexpr (std::is_same_v<Value, bool>) {
          return "true or false";
        } else if constexpr (std::is_floating_point_v<Value>) {
          return AllowedNumber("a number", parameter.range);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return AllowedString(parameter);
        } else if constexpr (std::is_same_v<Value, TokenSequence>) {
          return R"(a JSON list of tokens and ids, like ["</s>", 2])";
        } else if constexpr (std::is_same_v<Value, std::vector<TokenSequence>>) {
          return R"(a JSON list of non-empty lists of tokens and ids, like [["a", "b"], [7]])";
        } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
          return "a JSON list of ids, like [0, 1, 2]";
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
          return R"(a JSON list of names, like ["x-request-id", "x-b3-*"])";
        } else {
          return AllowedNumber("an integer", RangeOf(parameter, engine)) +
                 BoundedBy(parameter, engine);
        }
      },
      parameter.member);
}

void SetModelParameter(std::string_view name, const ParameterValue& value,
                       DecodingOptions* decoding, EngineOptions* engine) {
  const Parameter* parameter = Find(name);
  if (parameter != nullptr && Takes(Scope::kModel, *parameter)) {
    Assign(*parameter, value, {decoding, engine, nullptr});
  } else if (IsIgnoredParameter(name, *engine)) {
    return;
  } else if (parameter != nullptr) {
    ThrowInvalid("parameter " + Quote(name) +
                 " cannot be set in config.pbtxt; each request sets it for itself");
  } else {
    ThrowUnknown(name, Scope::kModel);
  }
}

void SetRequestParameter(std::string_view name, const ParameterValue& value,
                         const EngineOptions& engine, DecodingOptions* decoding,
                         RequestOptions* request) {
  const Parameter* parameter = Find(name);
  if (parameter != nullptr && Takes(Scope::kRequest, *parameter)) {
    Assign(*parameter, value, {decoding, nullptr, request}, &engine);
  } else if (IsIgnoredParameter(name, engine) || (parameter == nullptr && IsHeader(name, value))) {
    return;
  } else if (parameter != nullptr) {
    ThrowInvalid("parameter " + Quote(name) +
                 " cannot be set by a request; set it in the model's config.pbtxt");
  } else {
    ThrowUnknown(name, Scope::kRequest);
  }
}

bool IsIgnoredParameter(std::string_view name, const EngineOptions& engine) {
  // Triton keeps this prefix for itself: request parameters ("triton_...", its parameter
  // extension) and config parameters that its core reads ("TRITON_BATCH_STRATEGY_PATH").
  if (Matches("triton_*", name)) return true;
  if (!engine.tenant_header.empty() && EqualsNoCase(engine.tenant_header, name)) return true;
  return std::any_of(engine.allowed_parameters.begin(), engine.allowed_parameters.end(),
                     [&](const std::string& pattern) { return Matches(pattern, name); });
}

}  // namespace ct2triton
