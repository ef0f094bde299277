// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/decoding_options.h"
#include "config/engine_options.h"
#include "config/parse_value.h"
#include "config/request_options.h"

namespace ct2triton {

enum class Scope {
  kModel,        // config.pbtxt only
  kRequest,      // config.pbtxt sets the model's default, a request its own value
  kRequestOnly,  // requests only
};

// Where a parameter's value is kept. Its type and default follow from it.
using ParameterMember =
    std::variant<std::int64_t DecodingOptions::*, float DecodingOptions::*,
                 double DecodingOptions::*, bool DecodingOptions::*, std::string DecodingOptions::*,
                 TokenSequence DecodingOptions::*, std::vector<TokenSequence> DecodingOptions::*,
                 std::int64_t EngineOptions::*, bool EngineOptions::*, std::string EngineOptions::*,
                 std::optional<std::int64_t> EngineOptions::*,
                 std::vector<std::int64_t> EngineOptions::*,
                 std::vector<std::string> EngineOptions::*, std::string RequestOptions::*,
                 bool RequestOptions::*, std::int64_t RequestOptions::*>;

// One row of the table.
struct Parameter {
  std::string_view name;
  ParameterMember member;
  Scope scope;
  Range range;            // of numbers, of the ids in lists, of the bytes of a string (none: any)
  std::string_view help;  // one sentence
  std::string_view example;                    // a value as config.pbtxt writes it
  std::vector<std::string_view> choices = {};  // strings only; empty = any
  // For integers: the model's parameter that bounds them, in addition to the range.
  std::int64_t EngineOptions::*limit = nullptr;
};

// A name that a parameter has in other servers. Requests and config.pbtxt may use it.
struct Alias {
  std::string_view name;
  std::string_view parameter;
};
const std::vector<Alias>& Aliases();

// The parameter's own name for one of its aliases; an unknown name is returned unchanged.
std::string_view CanonicalName(std::string_view name);

// Refuses a parameter that is given under two of its names.
class NamedOnce {
 public:
  // Throws Error(kInvalidArgument).
  void Add(std::string_view name);

 private:
  std::map<std::string, std::string, std::less<>> names_;  // as given, by the parameter's name
};

// All parameters, decoding first, in the order of the documentation.
const std::vector<Parameter>& Parameters();

// Allowed values of a parameter, for messages and documentation: "an integer from 1 to 1024".
// `engine`: options of a model, which may have tighter bounds; null for any model.
std::string Allowed(const Parameter& parameter, const EngineOptions* engine = nullptr);

// Sets one parameter of config.pbtxt. Throws Error(kInvalidArgument): unknown name (with the
// nearest known one), value of wrong type or out of range. Ignores what IsIgnoredParameter names;
// set allowed_parameters first.
void SetModelParameter(std::string_view name, const ParameterValue& value,
                       DecodingOptions* decoding, EngineOptions* engine);

// Sets one parameter of a request. Throws Error(kInvalidArgument) as SetModelParameter does, and
// for a parameter of model scope; the message names an input of a similar name. Parameters named by
// the allowed_parameters of `engine` are ignored.
void SetRequestParameter(std::string_view name, const ParameterValue& value,
                         const EngineOptions& engine, DecodingOptions* decoding,
                         RequestOptions* request);

// Compares names of headers.
bool EqualsNoCase(std::string_view a, std::string_view b);

// Whether a parameter that is not ours is ignored: it is tenant_header, one of
// allowed_parameters (case-insensitive; a trailing * matches any ending), or it has Triton's own
// prefix "triton_". In a request, headers that the server forwards are ignored as well.
bool IsIgnoredParameter(std::string_view name, const EngineOptions& engine);

}  // namespace ct2triton
