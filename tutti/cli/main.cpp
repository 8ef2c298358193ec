// The program: which verb, and how an error ends.

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/arguments.h"
#include "tutti/cli/config.h"
#include "tutti/cli/suggest.h"
#include "tutti/cli/terminal.h"
#include "tutti/cli/verbs.h"
#include "tutti/cli/version.h"
#include "tutti/comm/mpi/session.h"

namespace tutti {
namespace {

struct Verb {
  const char* name;
  const char* help;
  RunVerb (*add)(CLI::App&);
};

constexpr std::array kVerbs = {
    Verb{"bench", "Time whole training steps, or single operations", add_bench},
    Verb{"config", "Show the resolved configuration, its documentation or its schema", add_config},
    Verb{"data", "List, generate or verify data sets", add_data},
    Verb{"doctor", "Report what this machine offers a rank, and whether the build fits it",
         add_doctor},
    Verb{"eval", "The quality of given weights on a data set", add_eval},
    Verb{"model", "List the networks, or show what one consists of and costs", add_model},
    Verb{"plan", "Show in full what train would run", add_plan},
    Verb{"study", "Train at several scales and report how much faster it runs and learns",
         add_study},
    Verb{"train", "Train one run: alone, on several ranks, or resumed", add_train},
};

comm::Launcher launcher_or_single() {
  try {
    return read_launcher();
  } catch (const Error&) {
    return {};  // while reporting an error: that one matters more
  }
}

/// The innermost verb on the command line: `verify` of `tutti data verify ...`, or the program
/// itself.
const CLI::App& chosen_verb(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return *verb;
}

std::string command_of(const CLI::App& verb) {
  return verb.get_parent() ? command_of(*verb.get_parent()) + " " + verb.get_name()
                           : verb.get_name();
}

/// CLI11 names what it did not expect; this adds what was probably meant.
std::string unexpected(const CLI::App& app) {
  const CLI::App* verb = &chosen_verb(app);
  std::vector<std::string> known;
  const auto extras = app.remaining(true);
  const std::string word = extras.empty() ? "" : extras.front().substr(0, extras.front().find('='));
  for (const CLI::Option* option : verb->get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const CLI::App* other : verb->get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(other->get_name());
  return fmt::format(
      "{} '{}' is unknown{}{} See {} --help.", word.starts_with("-") ? "the flag" : "the argument",
      word, did_you_mean(word, known), nearest(word, known).empty() ? "." : "", command_of(*verb));
}

/// The one line that a failure leaves, then the end of the whole job: no other rank may wait for
/// this one.
int fail(const char* what, ExitCode code) {
  const comm::Launcher launcher = launcher_or_single();
  if (launcher.size <= 1) {
    fmt::print(stderr, "tutti: {}\n", what);
  } else {
    // A wrong configuration is wrong on all ranks: rank 0 speaks, and its exit ends the others
    // before they repeat it.
    if (code == ExitCode::usage && launcher.rank > 0)
      std::this_thread::sleep_for(std::chrono::seconds(3));
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    const std::string who =
        fmt::format("rank {}/{} on {}: ", launcher.rank, launcher.size, host.data());
    fmt::print(stderr, "tutti: {}{}\n", std::string_view(what).starts_with(who) ? "" : who,
               what);  // the ranks' own messages begin so
  }
  std::fflush(stderr);
  comm::MpiSession::end_job(static_cast<int>(code));
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Tutti trains deep networks natively on clusters and reports how much faster they learn.",
      "tutti");
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
    if (!app.remaining(true).empty())
      throw ConfigError(unexpected(app));  // the likelier cause: `data verfy` lacks a verb, too
    throw ConfigError(
        fmt::format("{}. See {} --help.", error.what(), command_of(chosen_verb(app))));
  }
  for (const auto& [sub, run_verb] : runs)
    if (sub->parsed()) return run_verb();
  fmt::print("{}", app.help());
  return static_cast<int>(ExitCode::usage);
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  std::signal(
      SIGXFSZ,
      SIG_IGN);  // a write beyond the file-size limit then fails as on a full disk, with a message
  const tutti::Terminal screen = tutti::terminal_of(STDERR_FILENO);
  if (screen.present)
    tutti::log::set_style({.color = screen.color, .columns = std::min(screen.columns, 100)});
  try {
    return tutti::run(argc, argv);
  } catch (const tutti::Error& error) {
    return tutti::fail(error.what(), error.exit_code());
  } catch (const std::exception& error) {
    return tutti::fail(error.what(), tutti::ExitCode::failure);
  }
}
