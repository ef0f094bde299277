// SPDX-License-Identifier: Apache-2.0
#include "quality/names.h"

#include <algorithm>
#include <cstddef>

namespace ct2triton {
namespace {

// Limits on the parts of a name, in bytes, so that a text is read in linear time.
constexpr size_t kMostScheme = 16;
constexpr size_t kMostHost = 253;
constexpr size_t kMostPlaceholder = 64;
constexpr size_t kMostTag = 256;
constexpr size_t kLeastDomain = 2;  // letters after the last dot

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDecimal(char c) { return c >= '0' && c <= '9'; }
bool IsAlnum(char c) { return IsLetter(c) || IsDecimal(c); }
bool IsOf(char c, std::string_view chars) { return chars.find(c) != std::string_view::npos; }
bool IsUrl(char c) { return IsAlnum(c) || IsOf(c, "-._~:/?#[]@!$&'()*+,;=%"); }
bool IsHost(char c) { return IsAlnum(c) || c == '.' || c == '-'; }
bool IsLocalPart(char c) { return IsAlnum(c) || IsOf(c, "._%+-"); }
bool IsVariable(char c) { return IsAlnum(c) || c == '_' || c == '.'; }
// Whether a byte may occur in a placeholder in brackets, including bytes of other scripts.
bool IsInBrackets(char c) {
  return IsAlnum(c) || static_cast<unsigned char>(c) > 0x7F || IsOf(c, "_.-:$[]|,#%@/");
}

bool Has(std::string_view text, size_t at, std::string_view part) {
  return text.substr(std::min(at, text.size()), part.size()) == part;
}

char At(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }

template <class Is>
size_t EndOfRun(std::string_view text, size_t at, size_t most, const Is& is) {
  const size_t end = at + std::min(most, text.size() - std::min(at, text.size()));
  while (at < end && is(text[at])) ++at;
  return at;
}

// Removes the punctuation of the sentence, and brackets that were opened before the name.
size_t WithoutEnd(std::string_view text, size_t begin, size_t end) {
  const auto count = [&](char c) {
    return std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                      text.begin() + static_cast<std::ptrdiff_t>(end), c);
  };
  auto unopened = count(')') - count('(');
  for (; end > begin; --end) {
    const char last = text[end - 1];
    if (last == ')') {
      if (unopened-- <= 0) break;
    } else if (!IsOf(last, ".,;:!?'*]")) {
      break;
    }
  }
  return end;
}

size_t EndOfUrl(std::string_view text, size_t begin, size_t at) {
  return WithoutEnd(text, begin, EndOfRun(text, at, text.size(), IsUrl));
}

// example.com/page, host.example:8080
bool IsHostWithMore(std::string_view text, size_t begin, size_t end) {
  const std::string_view host = text.substr(begin, end - begin);
  const size_t dot = host.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || host.size() - dot <= kLeastDomain) return false;
  if (!std::all_of(host.begin() + static_cast<std::ptrdiff_t>(dot) + 1, host.end(), IsLetter)) {
    return false;
  }
  return At(text, end) == '/' || (At(text, end) == ':' && IsDecimal(At(text, end + 1)));
}

// Each of these functions returns the end of a name that begins at `at`, or `at` if none does.
size_t Url(std::string_view text, size_t at) {
  const size_t scheme =
      EndOfRun(text, at, kMostScheme, [](char c) { return IsAlnum(c) || IsOf(c, "+-."); });
  if (Has(text, scheme, "://") && IsAlnum(At(text, scheme + 3))) {
    return EndOfUrl(text, at, scheme + 3);
  }
  const bool bare = Has(text, at, "www.") && IsAlnum(At(text, at + 4));
  const size_t host = EndOfRun(text, at, kMostHost, IsHost);
  return bare || IsHostWithMore(text, at, host) ? EndOfUrl(text, at, host) : at;
}

size_t Address(std::string_view text, size_t at) {
  const size_t local = EndOfRun(text, at, kMostPlaceholder, IsLocalPart);
  if (At(text, local) != '@') return at;
  size_t end = EndOfRun(text, local + 1, kMostHost, IsHost);
  while (end > local + 1 && !IsAlnum(text[end - 1])) --end;
  return text.substr(local, end - local).find('.') == std::string_view::npos ? at : end;
}

// {name}, {{ name }}, ${name}, [[name]]: no white space within the name.
size_t InBrackets(std::string_view text, size_t at, std::string_view open, std::string_view close) {
  const auto is_blank = [](char c) { return c == ' '; };
  const size_t begin = EndOfRun(text, at + open.size(), kMostPlaceholder, is_blank);
  const size_t name = EndOfRun(text, begin, kMostPlaceholder, [&](char c) {
    return IsInBrackets(c) && (c != ']' || close.front() != ']');
  });
  const size_t end = EndOfRun(text, name, kMostPlaceholder, is_blank);
  return name > begin && Has(text, end, close) ? end + close.size() : at;
}

size_t Brackets(std::string_view text, size_t at) {
  if (Has(text, at, "[[")) return InBrackets(text, at, "[[", "]]");
  size_t begin = at;
  if (IsOf(text[at], "$%#")) ++begin;
  if (At(text, begin) != '{') return at;
  const bool doubled = Has(text, begin, "{{");
  const size_t end = InBrackets(text, begin, doubled ? "{{" : "{", doubled ? "}}" : "}");
  return end == begin ? at : end;
}

// <b>, </b>, <x id=4/>: prose in angle brackets has no attributes.
size_t Tag(std::string_view text, size_t at) {
  if (text[at] != '<') return at;
  size_t begin = at + 1;
  if (At(text, begin) == '/') ++begin;
  const size_t name =
      EndOfRun(text, begin, kMostPlaceholder, [](char c) { return IsAlnum(c) || IsOf(c, "_.-"); });
  if (name == begin) return at;
  const size_t end = text.substr(0, std::min(text.size(), at + kMostTag)).find('>', name);
  if (end == std::string_view::npos) return at;
  const std::string_view attributes = text.substr(name, end - name);
  const bool none = attributes.find_first_not_of(" /") == std::string_view::npos;
  const bool some = !attributes.empty() && attributes.front() == ' ' &&
                    attributes.find('=') != std::string_view::npos;
  return none || some ? end + 1 : at;
}

// %s, %1$d, %.2f, %(id)s, %@, but not "50 %d".
size_t Format(std::string_view text, size_t at) {
  if (text[at] != '%' || (at > 0 && IsDecimal(text[at - 1]))) return at;
  size_t end = at + 1;
  if (At(text, end) == '(') {
    const size_t name = EndOfRun(text, end + 1, kMostPlaceholder, IsVariable);
    if (At(text, name) != ')') return at;
    end = name + 1;
  }
  end = EndOfRun(text, end, kMostScheme,
                 [](char c) { return IsDecimal(c) || IsOf(c, "$.#+-*hlLqz"); });
  if (!IsOf(At(text, end), "sdifuxXg@")) return at;
  return IsAlnum(At(text, end + 1)) ? at : end + 1;
}

// %NAME%, $name$, _name_: the same sign on both sides.
size_t Between(std::string_view text, size_t at) {
  const char sign = text[at];
  const bool bars = sign == '_';
  if (!IsOf(sign, "%$_") || (at > 0 && IsAlnum(text[at - 1]))) return at;
  const size_t begin = EndOfRun(text, at, 2, [&](char c) { return c == sign && bars; });
  const size_t name = std::max(begin, at + 1);
  if (!IsLetter(At(text, name))) return at;
  size_t end = EndOfRun(text, name, kMostPlaceholder, IsVariable);
  if (!bars) return At(text, end) == sign ? end + 1 : at;
  while (end > name && text[end - 1] == '.') --end;
  return end - at > 4 && text[end - 1] == '_' ? end : at;
}

size_t Name(std::string_view text, size_t at) {
  if (IsAlnum(text[at])) {
    if (at > 0 && IsAlnum(text[at - 1])) return at;
    const size_t end = Url(text, at);
    return end > at ? end : Address(text, at);
  }
  for (const auto reader : {Brackets, Tag, Format, Between}) {
    const size_t end = reader(text, at);
    if (end > at) return end;
  }
  return at;
}

}  // namespace

std::vector<Span> FindNames(std::string_view text) {
  std::vector<Span> names;
  for (size_t at = 0; at < text.size();) {
    const size_t end = Name(text, at);
    if (end > at) names.push_back({at, end});
    at = std::max(end, at + 1);
  }
  return names;
}

}  // namespace ct2triton
