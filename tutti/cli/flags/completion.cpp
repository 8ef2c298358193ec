#include "tutti/cli/flags/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/cli/flags/help.h"
#include "tutti/config/config.h"

namespace tutti::cli {
namespace {

/// A verb, with the words that lead to it.
struct FlagPlace {
  std::string path;  ///< "data list"; empty: no verb yet
  const Verb* verb;  ///< null where there is none yet
  std::vector<const Verb*> next;
};

void add_places(std::vector<FlagPlace>& places, const std::vector<Verb>& verbs,
                const std::string& prefix) {
  for (const Verb& verb : verbs) {
    FlagPlace place{prefix + verb.name, &verb, {}};
    for (const Verb& each : verb.verbs) place.next.push_back(&each);
    places.push_back(place);
    add_places(places, verb.verbs, place.path + " ");
  }
}

std::vector<FlagPlace> all_places(const std::vector<Verb>& verbs) {
  std::vector<FlagPlace> places = {{"", nullptr, {}}};
  for (const Verb& verb : verbs) places.front().next.push_back(&verb);
  add_places(places, verbs, "");
  return places;
}

/// Quotes a text for all three shells: nothing in it is expanded.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "’" : std::string(1, c);
  return out + "'";
}

std::string first_sentence(const std::string& text) { return text.substr(0, text.find(". ")); }

const Flag* first_argument(const FlagPlace& place) {
  return place.verb && !place.verb->arguments.empty() ? &place.verb->arguments.front() : nullptr;
}

/// Returns the words after which a shell looks for the verb: all paths.
std::string quoted_paths(const std::vector<FlagPlace>& places) {
  std::vector<std::string> paths;
  for (const FlagPlace& place : places)
    if (!place.path.empty()) paths.push_back(quoted(place.path));
  return fmt::format("{}", fmt::join(paths, " "));
}

/// The completion of a value: `words`, or a shell's own completion of `files` or folders.
struct FlagValues {
  std::string words;
  bool keys = false, files = false, folders = false;
};

FlagValues values_of(const Flag& flag, const std::vector<Verb>& verbs) {
  FlagValues values;
  values.keys = flag.kind == Names::setting;
  values.files = flag.kind == Names::file;
  values.folders = flag.kind == Names::folder;
  std::vector<std::string> words = known_values(flag);
  if (flag.kind == Names::verb)
    for (const Verb& verb : verbs) words.push_back(verb.name);
  values.words = fmt::format("{}", fmt::join(words, " "));
  return values;
}

/// Returns its name in the scripts of bash and zsh.
const char* kind_of(const FlagValues& values) {
  if (values.keys) return "keys";
  if (values.files) return "files";
  return values.folders ? "folders" : "words";
}

/// Returns the completion of a verb's first argument; empty where it has none.
FlagValues argument_of(const FlagPlace& place, const std::vector<Verb>& verbs) {
  const Flag* argument = first_argument(place);
  return argument ? values_of(*argument, verbs) : FlagValues{};
}

/// Returns the words of a key's values: case arms `section.key) words=... ;;` for bash and zsh.
std::string key_arms() {
  std::string out;
  for (const config::ConfigKey& key : config::config_keys()) {
    std::vector<std::string> words = key.choices;
    if (key.type == config::ConfigType::boolean) words = {"true", "false"};
    if (key.name == "model.name") words = known_values({.names = "", .kind = Names::model});
    if (!words.empty())
      out += fmt::format("    {}) offers='{}' ;;\n", key.name, fmt::join(words, " "));
  }
  return out;
}

std::string value_arms(const std::vector<FlagPlace>& places, const std::vector<Verb>& verbs) {
  std::string out;
  const auto arm = [&](const std::string& pattern, const Flag& flag) {
    const FlagValues values = values_of(flag, verbs);
    out += fmt::format("    {}) offers='{}' what={} ;;\n", pattern, values.words, kind_of(values));
  };
  for (const FlagPlace& place : places) {
    if (!place.verb) continue;
    for (const Flag& flag : place.verb->flags) {
      if (!takes_value(flag)) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : names_of(flag))
        patterns.push_back(quoted(place.path + " " + name));
      arm(fmt::format("{}", fmt::join(patterns, "|")), flag);
    }
  }
  return out;
}

/// Returns the lines of bash and zsh that find what to offer: values of a key or of a flag, or the
/// words after a verb, for which `after_verbs` are the case arms.
std::string finding_lines(const std::vector<FlagPlace>& places, const std::vector<Verb>& verbs,
                          const std::string& after_verbs) {
  return fmt::format(R"(  case "${{previous#--}}" in
{0}  esac
  [[ -n $offers ]] && what=words
  [[ -z $what ]] && case "$verb $previous" in
{1}  esac
  [[ -z $what ]] && case "$verb" in
{2}  esac
)",
                     key_arms(), value_arms(places, verbs), after_verbs);
}

std::string bash_script(const std::vector<FlagPlace>& places, const std::vector<Verb>& verbs) {
  std::string plain;
  for (const FlagPlace& place : places) {
    std::vector<std::string> flags = {"--help"}, words;
    for (const Verb* verb : place.next) words.push_back(verb->name);
    if (!place.verb) flags.push_back("--version");
    const FlagValues argument = argument_of(place, verbs);
    if (!argument.words.empty()) words.push_back(argument.words);
    if (place.verb)
      for (const Flag& flag : place.verb->flags) flags.push_back(long_name(flag));
    plain += fmt::format("    {}) flags='{}' offers='{}' what={} ;;\n", quoted(place.path),
                         fmt::join(flags, " "), fmt::join(words, " "), kind_of(argument));
  }
  return fmt::format(R"(# bash completion for tutti(1), written by `tutti help --completion bash`.
_tutti() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local verb="" word known flags="" offers="" what="" i
  # bash splits a word at "=": the name stands before it.
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $previous == "=" ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${{verb:+$verb }}${{COMP_WORDS[i]}}
    for known in {0}; do
      [[ $word == "$known" ]] && verb=$word
    done
  done
{1}  [[ $current == -* ]] && offers=$flags && what=words
  case $what in
    keys)
      compopt -o nospace
      mapfile -t COMPREPLY < <(compgen -S = -W "$offers" -- "$current")
      ;;
    files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$offers" -- "$current") ;;
  esac
}}
complete -F _tutti tutti
)",
                     quoted_paths(places), finding_lines(places, verbs, plain));
}

/// Returns a word and its explanation, as zsh's _describe wants it.
std::string described(const std::string& word, const std::string& help) {
  std::string name = word;
  for (size_t at = 0; (at = name.find(':', at)) != std::string::npos; at += 2)
    name.insert(at, "\\");
  return quoted(fmt::format("{}:{}", name, first_sentence(help)));
}

std::string zsh_script(const std::vector<FlagPlace>& places, const std::vector<Verb>& verbs) {
  std::string plain;
  for (const FlagPlace& place : places) {
    std::vector<std::string> flags = {described("--help", "Print help")}, next;
    for (const Verb* verb : place.next) next.push_back(described(verb->name, verb->summary));
    if (!place.verb) flags.push_back(described("--version", "Print the version"));
    const FlagValues argument = argument_of(place, verbs);
    if (place.verb)
      for (const Flag& flag : place.verb->flags)
        flags.push_back(described(long_name(flag), flag.help));
    plain +=
        fmt::format("    {}) flags=({}) next=({}) offers='{}' what={} ;;\n", quoted(place.path),
                    fmt::join(flags, " "), fmt::join(next, " "), argument.words, kind_of(argument));
  }
  return fmt::format(R"(#compdef tutti
# zsh completion for tutti(1), written by `tutti help --completion zsh`.
_tutti() {{
  local current=${{(Q)words[CURRENT]}} previous=${{words[CURRENT-1]}} line=("${{(@)words[2,CURRENT-1]}}")
  local verb="" word known offers="" what=""
  local -a flags next
  for word in $line; do
    for known in {0}; do
      [[ "${{verb:+$verb }}$word" == "$known" ]] && verb=$known && break
    done
  done
  if [[ $current == *=* ]]; then
    previous=${{current%%=*}}
    [[ $current == --set=*=* ]] && previous=${{${{current#--set=}}%%=*}}
    compset -P '*='
  fi
{1}  if [[ -n $flags && $current == -* ]]; then
    _describe -o flag flags
    return
  fi
  case $what in
    keys) compadd -S = -- ${{=offers}} ;;
    files) _files ;;
    folders) _files -/ ;;
    *)
      (( $#next )) && _describe verb next
      [[ -n $offers ]] && compadd -- ${{=offers}}
      ;;
  esac
}}
_tutti "$@"
)",
                     quoted_paths(places), finding_lines(places, verbs, plain));
}

std::string fish_value(const FlagValues& values) {
  if (values.files) return " -r -F";
  if (values.folders) return " -x -a '(__fish_complete_directories)'";
  if (values.keys) {
    std::string keys = values.words + "=";
    for (size_t at = 0; (at = keys.find(' ', at)) != std::string::npos; at += 2)
      keys.insert(at, "=");
    return fmt::format(" -x -a '{}'", keys);
  }
  return values.words.empty() ? " -x" : fmt::format(" -x -a '{}'", values.words);
}

std::string fish_script(const std::vector<FlagPlace>& places, const std::vector<Verb>& verbs) {
  std::string out =
      fmt::format(R"(# fish completion for tutti(1), written by `tutti help --completion fish`.
function __tutti_verb
  set -l verb
  for word in (commandline -opc)[2..-1]
    set -l path (string join ' ' -- $verb $word)
    contains -- $path {} && set verb $path
  end
  test "$verb" = "$argv"
end
complete -c tutti -f
)",
                  quoted_paths(places));
  for (const FlagPlace& place : places) {
    const std::string at = fmt::format("complete -c tutti -n '__tutti_verb {}'", place.path);
    for (const Verb* verb : place.next)
      out += fmt::format("{} -a {} -d {}\n", at, verb->name, quoted(verb->summary));
    if (const FlagValues argument = argument_of(place, verbs); argument.files || argument.folders)
      out += at + " -F\n";
    else if (!argument.words.empty())
      out += fmt::format("{} -a '{}'\n", at, argument.words);
    out += at + " -s h -l help -d 'Print help'\n";
    if (!place.verb) {
      out += at + " -s V -l version -d 'Print the version'\n";
      continue;
    }
    for (const Flag& flag : place.verb->flags) {
      out += at;
      for (const std::string& name : names_of(flag))
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (takes_value(flag)) out += fish_value(values_of(flag, verbs));
      out += fmt::format(" -d {}\n", quoted(first_sentence(flag.help)));
    }
  }
  return out;
}

}  // namespace

std::string completion(const std::vector<Verb>& verbs, const std::string& shell) {
  const std::vector<FlagPlace> places = all_places(verbs);
  if (shell == "bash") return bash_script(places, verbs);
  if (shell == "zsh") return zsh_script(places, verbs);
  return fish_script(places, verbs);
}

}  // namespace tutti::cli
