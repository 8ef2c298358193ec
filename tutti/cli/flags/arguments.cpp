#include "tutti/cli/flags/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "tutti/base/error.h"
#include "tutti/cli/flags/suggest.h"

namespace tutti::cli {
namespace {

/// "-1" and "-.5" are values, "-" is the name of a file.
bool looks_like_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' &&
         !std::isdigit(static_cast<unsigned char>(word[1]));
}

const Verb* verb_named(const std::vector<Verb>& verbs, const std::string& name) {
  const auto at = std::ranges::find_if(verbs, [&](const Verb& v) { return v.name == name; });
  return at == verbs.end() ? nullptr : &*at;
}

/// Returns the verbs that have this flag, "tutti study".
std::vector<std::string> verbs_with(const std::vector<Verb>& verbs, const std::string& name,
                                    const std::string& above) {
  std::vector<std::string> found;
  for (const Verb& verb : verbs) {
    const std::string command = above + " " + verb.name;
    if (find_flag(verb, name)) found.push_back(command);
    for (std::string& below : verbs_with(verb.verbs, name, command))
      found.push_back(std::move(below));
  }
  return found;
}

/// Collects the given values, then stores them.
class Reader {
 public:
  explicit Reader(const Request& request) : request_(request), verb_(*request.verb) {}

  void read() {
    const std::vector<std::string>& words = request_.words;
    for (at_ = 0; at_ < words.size(); ++at_) {
      const std::string& word = words[at_];
      if (word == "--") {
        while (++at_ < words.size()) plain_.push_back({words[at_]});
      } else if (!looks_like_flag(word)) {
        plain_.push_back({word});
      } else if (word.starts_with("--")) {
        read_long(word);
      } else {
        read_short(word);
      }
    }
    settle_optional();
  }

  void store_all() {
    store_arguments();
    for (const Given& given : given_) {
      check_alone(given);
      check_belongs(given);
      store_given(*given.flag, given.text, long_name(*given.flag));
    }
    for (const Flag& flag : verb_.flags) {
      if (was_given(flag)) continue;
      const char* value = flag.variable.empty() ? nullptr : std::getenv(flag.variable.c_str());
      if (value && *value)
        store(flag, value, flag.variable);
      else if (!flag.required.empty())
        fail(flag.required);
    }
  }

 private:
  struct Given {
    const Flag* flag;
    std::string text;
  };
  struct Plain {
    std::string text;
    int of_given = -1;  ///< index of a value that may belong to this flag, whose value is optional
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("{}. See {} --help.", what, request_.command));
  }

  [[noreturn]] void unknown(const std::string& name) const {
    for (const ForeignFlag& foreign : verb_.foreign)
      if (foreign.name == name)
        throw ConfigError(fmt::format("the flag '{}' is not one of {}: {}", name, request_.command,
                                      foreign.hint));
    const auto theirs = verbs_with(*request_.verbs, name, "tutti");
    if (const std::string gpu = about_gpus(name); !gpu.empty() && theirs.empty())
      throw ConfigError(fmt::format("the flag '{}' is unknown: {}.", name, gpu));
    std::vector<std::string> known = {"--help"};
    for (const Flag& flag : verb_.flags) known.push_back(long_name(flag));
    const std::string meant = name.starts_with("--") ? did_you_mean(name, known) : "";
    if (meant.empty() && !theirs.empty())
      throw ConfigError(fmt::format("the flag '{}' is not one of {}, but of {}. See {} --help.",
                                    name, request_.command, fmt::join(theirs, ", "),
                                    request_.command));
    throw ConfigError(fmt::format("the flag '{}' is unknown{} See {} --help.", name,
                                  meant.empty() ? "." : meant, request_.command));
  }

  void read_long(const std::string& word) {
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::optional<std::string> text;
    if (equals != std::string::npos) text = word.substr(equals + 1);
    if (const Flag* set = find_flag(verb_, "--set"); set && name.find('.') != std::string::npos) {
      std::replace(name.begin() + 2, name.end(), '-', '_');
      if (!text) text = next_word(name, "VALUE");
      given_.push_back({set, name + "=" + *text});  // with its dashes, as in messages
      return;
    }
    std::ranges::replace(name, '_', '-');
    const Flag* flag = find_flag(verb_, name);
    if (!flag) unknown(name);
    if (!takes_value(*flag)) {
      if (text) fail(fmt::format("{} is a switch and takes no value", name));
      given_.push_back({flag, ""});
    } else {
      take(*flag, name, text);
    }
  }

  void read_short(const std::string& word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string name = {'-', word[i]};
      const Flag* flag = find_flag(verb_, name);
      if (!flag) unknown(i == 1 ? word.substr(0, word.find('=')) : name);
      if (takes_value(*flag)) {
        const std::string rest = word.substr(i + 1);
        take(*flag, name,
             rest.empty() ? std::nullopt : std::optional(rest.substr(rest[0] == '=' ? 1 : 0)));
        return;
      }
      given_.push_back({flag, ""});
    }
  }

  void take(const Flag& flag, const std::string& name, std::optional<std::string> text) {
    if (flag.alone) {
      const std::vector<std::string>& words = request_.words;
      given_.push_back({&flag, text ? *text : *flag.alone});
      if (!text && at_ + 1 < words.size() && !looks_like_flag(words[at_ + 1]))
        plain_.push_back({words[++at_], static_cast<int>(given_.size()) - 1});
      return;
    }
    given_.push_back({&flag, text ? *text : next_word(name, flag.value)});
  }

  std::string next_word(const std::string& name, const std::string& value) {
    if (at_ + 1 == request_.words.size() || looks_like_flag(request_.words[at_ + 1]))
      fail(fmt::format("{} needs a value: {} {}", name, name, value));
    return request_.words[++at_];
  }

  /// Gives words that may belong to a flag to the verb's arguments only as far as those need them.
  void settle_optional() {
    const auto needed =
        std::ranges::count_if(verb_.arguments, [](const Flag& a) { return !a.required.empty(); });
    auto missing =
        needed - std::ranges::count_if(plain_, [](const Plain& p) { return p.of_given < 0; });
    std::vector<Plain> kept;
    for (const Plain& plain : plain_) {
      if (plain.of_given < 0 || missing-- > 0)
        kept.push_back(plain);
      else
        given_[static_cast<size_t>(plain.of_given)].text = plain.text;
    }
    plain_ = kept;
  }

  void store_arguments() {
    size_t next = 0;
    for (const Flag& argument : verb_.arguments) {
      if (next == plain_.size()) {
        if (!argument.required.empty()) fail(argument.required);
        continue;
      }
      store_given(argument, plain_[next++].text, argument.names);
      while (repeatable(argument) && next < plain_.size())
        store_given(argument, plain_[next++].text, argument.names);
    }
    if (next < plain_.size()) {
      std::vector<std::string> known;
      for (const Flag& flag : verb_.flags) known.push_back(long_name(flag));
      const std::string meant = did_you_mean(plain_[next].text, known);
      throw ConfigError(fmt::format("the argument '{}' is one too many{} See {} --help.",
                                    plain_[next].text, meant.empty() ? "." : meant,
                                    request_.command));
    }
  }

  /// An empty value is an unset shell variable, not a request for the default, except for a
  /// flag whose value is empty when it stands alone.
  void store_given(const Flag& flag, const std::string& text, const std::string& name) const {
    if (takes_value(flag) && text.empty() && flag.alone != "")
      fail(fmt::format("{} is given an empty value, as by a shell variable that is not set", name));
    store(flag, text, name);
  }

  bool was_given(const Flag& flag) const {
    return std::ranges::any_of(given_, [&](const Given& given) { return given.flag == &flag; });
  }

  void check_alone(const Given& given) const {
    if (!repeatable(*given.flag) && std::ranges::count_if(given_, [&](const Given& other) {
                                      return other.flag == given.flag;
                                    }) > 1)
      fail(long_name(*given.flag) + " is given twice");
    for (const std::string& name : given.flag->excludes)
      if (const Flag* other = find_flag(verb_, name); other && was_given(*other))
        fail(
            fmt::format("{} and {} contradict each other: give one", long_name(*given.flag), name));
  }

  /// Returns whether the flag applies to the value of the first argument.
  bool belongs(const Flag& flag) const {
    return flag.only_for.empty() || plain_.empty() ||
           std::ranges::find(flag.only_for, plain_.front().text) != flag.only_for.end();
  }

  void check_belongs(const Given& given) const {
    if (belongs(*given.flag)) return;
    std::vector<std::string> own;
    for (const Flag& flag : verb_.flags)
      if (belongs(flag)) own.push_back(long_name(flag));
    fail(fmt::format("{} is a flag of {}, and would change nothing in {}, which takes {}",
                     long_name(*given.flag), fmt::join(given.flag->only_for, " and "),
                     plain_.front().text, fmt::join(own, ", ")));
  }

  const Request& request_;
  const Verb& verb_;
  size_t at_ = 0;
  std::vector<Given> given_;
  std::vector<Plain> plain_;
};

}  // namespace

Request find_verb(const std::vector<Verb>& verbs, const std::vector<std::string>& words) {
  Request request{.verb = nullptr, .command = "tutti", .words = words, .verbs = &verbs};
  for (const std::vector<Verb>* level = &verbs; level && !level->empty();) {
    auto& rest = request.words;
    auto at = rest.begin();
    if (at != rest.end() && looks_like_flag(*at))
      at =
          std::find_if(at, rest.end(), [&](const std::string& w) { return verb_named(*level, w); });
    if (at == rest.end()) return request;
    const Verb* found = verb_named(*level, *at);
    if (!found) {
      std::vector<std::string> known;
      for (const Verb& verb : *level) known.push_back(verb.name);
      std::string meant = verb_elsewhere(*at);
      if (meant.empty()) meant = did_you_mean(*at, known);
      throw ConfigError(fmt::format("the verb '{}' is unknown{} See {} --help.", *at,
                                    meant.empty() ? "." : meant, request.command));
    }
    std::rotate(rest.begin(), at, rest.end());  // flags before the verb go to the end
    rest.erase(rest.begin());
    request.verb = found;
    request.command += " " + found->name;
    level = &found->verbs;
  }
  return request;
}

bool asks_for_help(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "-h" || word == "--help") return true;
  }
  return false;
}

void parse_arguments(const Request& request) {
  Reader reader(request);
  reader.read();
  reader.store_all();
}

}  // namespace tutti::cli
