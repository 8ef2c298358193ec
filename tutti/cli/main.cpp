// The program: which verb, and how an error ends.

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "tutti/base/error.h"
#include "tutti/cli/arguments.h"
#include "tutti/cli/suggest.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"

namespace tutti {
namespace {

struct Verb {
  const char* name;
  const char* help;
  RunVerb (*add)(CLI::App&);
};

constexpr std::array kVerbs = {
    Verb{"config", "Show the resolved configuration, its documentation or its schema", add_config},
};

/// CLI11 names what it did not expect; this adds what was probably meant.
std::string unexpected(const CLI::App& app) {
  const CLI::App* verb = &app;
  std::vector<std::string> known;
  for (const CLI::App* chosen : app.get_subcommands()) verb = chosen;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  const auto extras = app.remaining(true);
  const std::string word = extras.empty() ? "" : extras.front().substr(0, extras.front().find('='));
  for (const CLI::Option* option : verb->get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const CLI::App* other : verb->get_subcommands([](const CLI::App*) { return true; })) known.push_back(other->get_name());
  const std::string command = verb == &app ? "tutti" : "tutti " + verb->get_name();
  return fmt::format("{} '{}' is unknown{}{} See {} --help.", word.starts_with("-") ? "the flag" : "the argument", word,
                     did_you_mean(word, known), nearest(word, known).empty() ? "." : "", command);
}

int run(int argc, char** argv) {
  CLI::App app("Tutti trains deep networks natively on clusters and reports how much faster they learn.", "tutti");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  std::vector<std::pair<CLI::App*, RunVerb>> runs;
  for (const Verb& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.help);
    runs.emplace_back(sub, verb.add(*sub));
  }
  std::vector<std::string> arguments = normalise_arguments({argv + 1, argv + argc});
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector from its back
  try {
    app.parse(arguments);
  } catch (const CLI::ExtrasError&) {
    throw ConfigError(unexpected(app));
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw ConfigError(fmt::format("{}. See tutti --help.", error.what()));
  }
  for (const auto& [sub, run_verb] : runs)
    if (sub->parsed()) return run_verb();
  fmt::print("{}", app.help());
  return static_cast<int>(ExitCode::usage);
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  try {
    return tutti::run(argc, argv);
  } catch (const tutti::Error& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti: {}\n", error.what());
    return static_cast<int>(tutti::ExitCode::failure);
  }
}
