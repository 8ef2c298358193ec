#include "tutti/cli/flags/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "tutti/cli/flags/terminal.h"

namespace tutti::cli {
namespace {

constexpr int kIndent = 2;
constexpr size_t kWidestChoices = 28;  // longer lists are in the text instead of at the flag

/// Two columns: the left ones as wide as the widest of them, within limits.
class Table {
 public:
  void add(std::string left, std::string right) {
    rows_.emplace_back(std::move(left), std::move(right));
  }

  std::string to_text(int width) const {
    size_t widest = 0;
    for (const auto& [left, right] : rows_)
      if (left.size() <= static_cast<size_t>(width) / 3) widest = std::max(widest, left.size());
    const int column = kIndent + static_cast<int>(widest) + 2;
    std::string out;
    for (const auto& [left, right] : rows_) {
      out += std::string(kIndent, ' ') + left;
      if (left.size() > widest)
        out += "\n" + std::string(static_cast<size_t>(column), ' ');
      else
        out += std::string(widest - left.size() + 2, ' ');
      out += wrap(right, width, column, column) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

std::string section(const std::string& heading, const Table& table, int width) {
  return fmt::format("\n{}:\n{}", heading, table.to_text(width));
}

std::string examples_text(const Verb& verb, int width) {
  std::string out = "\nExamples:\n";
  for (const Example& example : verb.examples)
    out += fmt::format("  {}\n      {}\n", example.command, wrap(example.meaning, width, 6, 6));
  return out;
}

}  // namespace

int help_width() {
  constexpr int kLeast = 40, kMost = 100;
  return std::clamp(terminal_of(STDOUT_FILENO).columns, kLeast, kMost);
}

std::string wrap(std::string_view text, int width, int indent, int column) {
  std::string out;
  const std::string margin(static_cast<size_t>(indent), ' ');
  bool line_begins = true;
  while (!text.empty()) {
    if (text.front() == '\n') {
      out += "\n";
      text.remove_prefix(1);
      if (!text.empty() && text.front() != '\n') out += margin;
      column = indent;
      line_begins = true;
      continue;
    }
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    const int length = static_cast<int>(word.size());
    if (!line_begins && column + 1 + length > width) {
      out += "\n" + margin;
      column = indent;
      line_begins = true;
    }
    if (!line_begins) out += ' ', ++column;
    out += word;
    column += length;
    line_begins = false;
    text.remove_prefix(word.size());
  }
  return out;
}

std::string usage_line(const Verb& verb, const std::string& command) {
  if (!verb.verbs.empty()) return command + " VERB ...";
  std::string line = command;
  for (const Flag& argument : verb.arguments) {
    const std::string dots = repeatable(argument) ? "..." : "";
    line += argument.required.empty() ? fmt::format(" [{}{}]", argument.names, dots)
                                      : " " + argument.names + dots;
  }
  for (const Flag& flag : verb.flags)
    if (!flag.required.empty()) line += fmt::format(" {} {}", long_name(flag), placeholder(flag));
  return verb.flags.empty() ? line : line + " [FLAGS]";
}

std::string placeholder(const Flag& flag) {
  if (!takes_value(flag)) return "";
  std::string value = flag.value;
  if (value.empty()) value = fmt::format("{}", fmt::join(flag.choices, "|"));
  if (value.size() > kWidestChoices || value.empty()) value = "NAME";
  return flag.alone ? fmt::format("[{}]", value) : value;
}

std::string spelling(const Flag& flag) {
  const std::string value = placeholder(flag);
  return fmt::format("{}{}{}", fmt::join(names_of(flag), ", "), value.empty() ? "" : " ", value);
}

std::string description(const Flag& flag) {
  std::vector<std::string> facts;
  const std::string known = default_text(flag);
  if (!flag.only_for.empty())
    facts.push_back(fmt::format("only of {}", fmt::join(flag.only_for, " and ")));
  if (!flag.key.empty()) facts.push_back("key " + flag.key);
  if (!known.empty()) facts.push_back("default " + known);
  if (!flag.variable.empty()) facts.push_back("variable " + flag.variable);
  std::string text = flag.help;
  if (placeholder(flag).find('|') == std::string::npos && !flag.choices.empty())
    text += fmt::format(". One of {}", fmt::join(flag.choices, ", "));
  return facts.empty() ? text : fmt::format("{} [{}]", text, fmt::join(facts, ", "));
}

std::vector<std::string> flag_groups(const Verb& verb) {
  std::vector<std::string> groups;
  for (const Flag& flag : verb.flags)
    if (std::ranges::find(groups, flag.group) == groups.end()) groups.push_back(flag.group);
  return groups;
}

std::string overview(const std::vector<Verb>& verbs, int width) {
  std::string out =
      wrap(
          "Tutti trains deep networks natively on clusters and reports how much faster they "
          "learn.",
          width, 0, 0) +
      "\n\nUsage: tutti VERB [ARGUMENTS] [FLAGS]\n";
  std::vector<std::string> tasks;
  for (const Verb& verb : verbs)
    if (std::ranges::find(tasks, verb.task) == tasks.end()) tasks.push_back(verb.task);
  size_t widest = 0;
  for (const Verb& verb : verbs) widest = std::max(widest, verb.name.size());
  for (const std::string& task : tasks) {
    Table table;
    for (const Verb& verb : verbs)
      if (verb.task == task) table.add(fmt::format("{:<{}}", verb.name, widest), verb.summary);
    out += section(task, table, width);
  }
  Table first;
  first.add("tutti doctor", "Is this machine ready?");
  first.add("tutti train run.toml", "Train what run.toml describes");
  first.add("tutti study run.toml --ranks 1,2,4", "Measure how it scales");
  out += section("First steps", first, width);
  Table more;
  more.add("tutti help VERB", "A verb's flags, with examples (also tutti VERB --help)");
  more.add("tutti --version", "Version, compiler, libraries (also -V)");
  return out + section("More", more, width);
}

std::string help_text(const Verb& verb, const std::string& command, int width) {
  std::string out = wrap(verb.summary + ".", width, 0, 0) +
                    "\n\nUsage: " + wrap(usage_line(verb, command), width, 9, 7) + "\n";
  if (!verb.text.empty()) out += "\n" + wrap(verb.text, width, 0, 0) + "\n";
  if (!verb.verbs.empty()) {
    Table table;
    for (const Verb& each : verb.verbs) table.add(each.name, each.summary);
    out += section("Verbs", table, width);
  }
  if (!verb.arguments.empty()) {
    Table table;
    for (const Flag& argument : verb.arguments) table.add(argument.names, description(argument));
    out += section("Arguments", table, width);
  }
  for (const std::string& group : flag_groups(verb)) {
    Table table;
    for (const Flag& flag : verb.flags)
      if (flag.group == group) table.add(spelling(flag), description(flag));
    if (group.empty()) table.add("-h, --help", "Print this help");
    out += section(group.empty() ? "Flags" : group, table, width);
  }
  if (!verb.examples.empty()) out += examples_text(verb, width);
  if (!verb.see_also.empty())
    out += "\n" + wrap(fmt::format("See also: {}", fmt::join(verb.see_also, ", ")), width, 10, 0) +
           "\n";
  return out;
}

}  // namespace tutti::cli
