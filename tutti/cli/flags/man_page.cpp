#include "tutti/cli/flags/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/cli/flags/help.h"
#include "tutti/cli/flags/version.h"

namespace tutti::cli {
namespace {

/// Returns text as roff prints it: no letter is taken for a command, and a dash can be copied into
/// a shell.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_begins = c == '\n';
  }
  return out;
}

void entry(std::string& out, const std::string& left, const std::string& right) {
  out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(left), roff(right));
}

struct Entry {
  const char* left;
  const char* right;
};

constexpr Entry kEnvironment[] = {
    {"TUTTI_SECTION_KEY", "Sets the configuration key section.key. A flag overrides it"},
    {"TUTTI_RANKS", "Stands for --ranks where that is absent"},
    {"TUTTI_CACHE_DIR",
     "The folder for measurements of this machine. Otherwise $XDG_CACHE_HOME/tutti or "
     "~/.cache/tutti"},
    {"OMP_NUM_THREADS", "The compute threads of a rank where run.threads is 0"},
    {"CUDA_VISIBLE_DEVICES", "The GPUs that run.device = cuda sees, and takes the first of"},
    {"TUTTI_EMULATED_SEED",
     "Another order of work on the emulated device, which must not change results. By default 1"},
    {"COLUMNS", "The width of help texts"},
    {"NO_COLOR", "Where it is set, nothing is coloured"},
};

constexpr Entry kFiles[] = {
    {"run.output_dir/config.toml", "The resolved configuration; tutti train reads it again"},
    {"run.output_dir/record.jsonl", "All that happened in a run, one JSON object a line"},
    {"run.output_dir/checkpoints", "The checkpoints that --resume continues from"},
    {"study/report.html, study.json, study.csv, runs.csv", "The results of a study"},
    {"~/.cache/tutti", "Measurements of this machine, kept between runs"},
};

constexpr Entry kSignals[] = {
    {"SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, the first SIGINT",
     "The run stops in order at its next step: it writes a checkpoint and ends with 75"},
    {"the second SIGINT", "The run ends at once, with 130"},
};

constexpr Entry kExitCodes[] = {
    {"0", "Done. Of train with a target: it was reached"},
    {"1", "A failure while running"},
    {"2", "Wrong flags or a wrong configuration"},
    {"3", "train ran to its end without reaching its target; study only with --require-target"},
    {"75", "Stopped early with a checkpoint written. Start it again with --resume to go on"},
    {"130", "Ended at once by a second SIGINT, without a checkpoint"},
};

template <size_t kCount>
void list(std::string& out, const char* heading, const Entry (&entries)[kCount]) {
  out += fmt::format(".SH {}\n", heading);
  for (const Entry& each : entries) entry(out, each.left, each.right);
}

void verb_section(std::string& out, const Verb& verb, const std::string& command) {
  out += fmt::format(".SS {}\n{}.\n", roff(usage_line(verb, command)), roff(verb.summary));
  if (!verb.text.empty()) out += fmt::format(".PP\n{}\n", roff(verb.text));
  for (const Flag& argument : verb.arguments) entry(out, argument.names, description(argument));
  for (const Flag& flag : verb.flags) entry(out, spelling(flag), description(flag));
  for (const Verb& each : verb.verbs) verb_section(out, each, command + " " + each.name);
}

void examples(std::string& out, const Verb& verb) {
  for (const Example& example : verb.examples) entry(out, example.command, example.meaning);
  for (const Verb& each : verb.verbs) examples(out, each);
}

}  // namespace

std::string man_page(const std::vector<Verb>& verbs) {
  std::string out = fmt::format(
      ".\\\" Written by `tutti help --man`.\n.TH TUTTI 1 \"\" \"Tutti {}\" \"User Commands\"\n"
      ".SH NAME\ntutti \\- train deep networks on one or many ranks and report how much faster "
      "they learn\n"
      ".SH SYNOPSIS\n.B tutti\n.I VERB\n[\\fIARGUMENTS\\fR] [\\fIFLAGS\\fR]\n.br\n"
      ".B tutti help\n[\\fIVERB\\fR]\n.br\n.B tutti \\-\\-version\n"
      ".SH DESCRIPTION\n"
      "One program trains a network that a TOML file describes: alone, on ranks that\n"
      ".B \\-\\-ranks\nstarts on this machine, or on the ranks that mpirun, srun or another "
      "launcher started.\n"
      ".PP\nFlags may stand anywhere after the verb and before it. A value follows its flag as the "
      "next word or after an equals sign. In long flags an underscore is as good as a dash.\n"
      ".SH VERBS\n",
      version_short());
  for (const Verb& verb : verbs) verb_section(out, verb, "tutti " + verb.name);
  list(out, "ENVIRONMENT", kEnvironment);
  list(out, "FILES", kFiles);
  list(out, "SIGNALS", kSignals);
  list(out, "EXIT STATUS", kExitCodes);
  out += ".SH EXAMPLES\n";
  for (const Verb& verb : verbs) examples(out, verb);
  return out + ".SH SEE ALSO\n.BR mpirun (1),\n.BR srun (1),\n.BR tutti_comm (3)\n";
}

}  // namespace tutti::cli
