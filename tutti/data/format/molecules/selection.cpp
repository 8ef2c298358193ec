#include "tutti/data/format/molecules/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tutti::data {
namespace {

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (separator != ' ' || end > at) parts.emplace_back(text.substr(at, end - at));
    if (end == text.size()) return parts;
    at = end + 1;
  }
}

[[noreturn]] void refuse_word(std::string_view text, std::string_view word,
                              std::string_view wanted) {
  throw ConfigError(fmt::format(
      "the selection '{}': '{}' is not {}. A selection is names of atoms, as in CA, CA+CB or any, "
      "and then where wanted 'residues 12-40+55', 'chain A+B', 'atoms 0-99'",
      text, word, wanted));
}

Selection::Ranges ranges_of(std::string_view text, const std::string& word) {
  Selection::Ranges ranges;
  for (const std::string& part : split_at(word, '+')) {
    const size_t dash = part.find('-', 1);  // a number may be negative
    int64_t first = 0, last = 0;
    const bool reads =
        whole_number_of(std::string_view(part).substr(0, dash), first) &&
        (dash == part.npos || whole_number_of(std::string_view(part).substr(dash + 1), last));
    if (!reads) refuse_word(text, word, "a number, or ranges such as 12-40+55-60");
    if (dash == part.npos) last = first;
    if (last < first) refuse_word(text, word, "a range from its lower to its higher end");
    ranges.emplace_back(first, last);
  }
  return ranges;
}

std::vector<std::string> names_of(std::string_view text, const std::string& word) {
  std::vector<std::string> names = split_at(word, '+');
  if (std::ranges::any_of(names, &std::string::empty)) refuse_word(text, word, "names joined by +");
  return names;
}

bool lies_in(const Selection::Ranges& ranges, int64_t number) {
  return std::ranges::any_of(
      ranges, [&](const auto& range) { return range.first <= number && number <= range.second; });
}

/// Gets the number without an insertion code; false if there is no number.
bool number_of_residue(const Atom& atom, int64_t& number) {
  const std::string& text = atom.residue_number;
  const size_t digits = text.find_first_not_of("0123456789", text.starts_with('-') ? 1 : 0);
  return whole_number_of(std::string_view(text).substr(0, digits), number);
}

bool has(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::find(list, name) != list.end();
}

/// Returns "A, B, C", the first few values.
std::string some_of(const Topology& topology, const std::function<std::string(const Atom&)>& what) {
  constexpr size_t kMost = 20;
  std::set<std::string> found;
  for (const Atom& atom : topology.atoms)
    if (found.size() < kMost) found.insert(what(atom));
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace

Selection parse_selection(std::string_view text) {
  const std::vector<std::string> words = split_at(text, ' ');
  if (words.empty()) refuse_word(text, "", "names of atoms");
  Selection selection{.text = std::string(text)};
  if (words[0] != "any") selection.names = names_of(text, words[0]);
  for (size_t i = 1; i < words.size(); i += 2) {
    const std::string& word = words[i];
    const auto once = [&](bool there) {
      if (there) refuse_word(text, word, "wanted twice");
      if (i + 1 == words.size()) refuse_word(text, word, "followed by what it is to be");
    };
    if (word == "residues") {
      once(!selection.residues.empty());
      selection.residues = ranges_of(text, words[i + 1]);
    } else if (word == "atoms") {
      once(!selection.atoms.empty());
      selection.atoms = ranges_of(text, words[i + 1]);
    } else if (word == "chain") {
      once(!selection.chains.empty());
      selection.chains = names_of(text, words[i + 1]);
    } else {
      refuse_word(text, word, "residues, chain or atoms");
    }
  }
  return selection;
}

std::vector<int64_t> selected_atoms(const Topology& topology, const Selection& selection) {
  bool named = false, of_chain = false, of_residue = false;  // whether any atom matches
  std::vector<int64_t> places;
  for (size_t i = 0; i < topology.atoms.size(); ++i) {
    const Atom& atom = topology.atoms[i];
    if (!selection.names.empty() && (!has(selection.names, atom.name) || atom.residue == atom.name))
      continue;
    named = true;
    if (!selection.chains.empty() && !has(selection.chains, atom.chain)) continue;
    of_chain = true;
    int64_t number = 0;
    if (!selection.residues.empty() &&
        !(number_of_residue(atom, number) && lies_in(selection.residues, number)))
      continue;
    of_residue = true;
    if (selection.atoms.empty() || lies_in(selection.atoms, static_cast<int64_t>(i)))
      places.push_back(static_cast<int64_t>(i));
  }
  if (!places.empty()) return places;
  const auto none = [&](const std::string& is) {
    return ConfigError(
        fmt::format("{}: none of its {} atoms is {}", topology.file, topology.atoms.size(), is));
  };
  if (!named)
    throw none(fmt::format("named '{}'; there are, for example, {}",
                           fmt::join(selection.names, "' or '"),
                           some_of(topology, [](const Atom& atom) { return atom.name; })));
  if (!of_chain)
    throw none(fmt::format("of chain '{}' ('{}'); the chains are {}",
                           fmt::join(selection.chains, "' or '"), selection.text,
                           some_of(topology, [](const Atom& atom) {
                             return atom.chain.empty() ? "without a name" : atom.chain;
                           })));
  throw none(fmt::format("selected by '{}': {}", selection.text,
                         of_residue ? "no such atom stands at these places, counted from 0"
                                    : fmt::format("residues are numbered from {} to {}",
                                                  topology.atoms.front().residue_number,
                                                  topology.atoms.back().residue_number)));
}

}  // namespace tutti::data
