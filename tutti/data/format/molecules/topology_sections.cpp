// Reads PSF and parm7: sections, each with its own number of entries.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "tutti/data/format/molecules/topology.h"

namespace tutti::data {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != line.npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// A section of a parm7: a format "20a4" or "10I8", and lines of entries with that width.
struct Parm7Section {
  size_t width = 0;
  std::vector<std::string_view> entries{};
};

/// Returns 4 for "%FORMAT(20a4)"; 0 if it is not understood.
size_t format_width(std::string_view line) {
  const size_t open = line.find('('), close = line.find(')');
  if (open == line.npos || close == line.npos || close < open) return 0;
  const std::string_view inside = line.substr(open + 1, close - open - 1);
  const size_t letter = inside.find_first_of("aAiI");
  int64_t width = 0;
  if (letter == inside.npos || !whole_number_of(inside.substr(letter + 1), width)) return 0;
  return width >= 1 && width <= 80 ? static_cast<size_t>(width) : 0;
}

class Parm7Reader {
 public:
  Parm7Reader(std::string_view text, const std::string& name) : lines_(text, name), name_(name) {}

  std::vector<Atom> read() {
    read_sections();
    const Parm7Section &pointers = section("POINTERS"), &names = section("ATOM_NAME"),
                       &labels = section("RESIDUE_LABEL"), &firsts = section("RESIDUE_POINTER");
    const int64_t atoms = number(pointers, 0, "POINTERS"),
                  residues = number(pointers, 11, "POINTERS");
    if (atoms < 1 || std::ssize(names.entries) < atoms)
      refuse(fmt::format("{} atoms in POINTERS, {} in ATOM_NAME", atoms, names.entries.size()));
    if (residues < 1 || std::ssize(labels.entries) < residues ||
        std::ssize(firsts.entries) < residues)
      refuse(fmt::format("{} residues in POINTERS, {} in RESIDUE_LABEL, {} in RESIDUE_POINTER",
                         residues, labels.entries.size(), firsts.entries.size()));
    std::vector<Atom> all;
    for (int64_t r = 0; r < residues; ++r) {
      const auto at = static_cast<size_t>(r);
      const int64_t first = number(firsts, at, "RESIDUE_POINTER"),
                    end = r + 1 < residues ? number(firsts, at + 1, "RESIDUE_POINTER") : atoms + 1;
      if (first != std::ssize(all) + 1 || end <= first || end > atoms + 1)
        refuse(fmt::format("residue {} from atom {} on, up to {} of {}", r + 1, first, end, atoms));
      for (int64_t a = first; a < end; ++a)
        all.push_back({.name = std::string(names.entries[static_cast<size_t>(a - 1)]),
                       .residue = std::string(labels.entries[at]),
                       .residue_number = std::to_string(r + 1)});
    }
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& found) const {
    throw BadFile(
        "{}: its sections contradict each other: {}: the file is damaged, or no parm7; fetch it "
        "again",
        name_, found);
  }

  /// Reads the sections that are used later; others are skipped.
  void read_sections() {
    Parm7Section* open = nullptr;
    for (std::string_view line; lines_.next(line);) {
      if (line.starts_with("%FLAG")) {
        const std::string flag(columns_of(line, 5, line.size()));
        const bool wanted = flag == "POINTERS" || flag == "ATOM_NAME" || flag == "RESIDUE_LABEL" ||
                            flag == "RESIDUE_POINTER";
        open = wanted ? &sections_[flag] : nullptr;
        if (open != nullptr && open->width > 0)
          lines_.refuse(fmt::format("{} is there twice", flag));
      } else if (line.starts_with("%FORMAT") && open != nullptr) {
        open->width = format_width(line);
        if (open->width == 0) lines_.refuse("expected a format such as (20a4) or (10I8)");
      } else if (!line.starts_with('%') && open != nullptr) {
        if (open->width == 0) lines_.refuse("expected a line %FORMAT before the entries");
        for (size_t at = 0; at < line.size(); at += open->width)
          if (const auto entry = columns_of(line, at, open->width); !entry.empty())
            open->entries.push_back(entry);
      }
    }
  }

  const Parm7Section& section(const std::string& flag) const {
    const auto found = sections_.find(flag);
    if (found == sections_.end())
      throw BadFile(
          "{}: expected a section %FLAG {} of a parm7, found none: the file is truncated; fetch it "
          "again",
          name_, flag);
    return found->second;
  }

  int64_t number(const Parm7Section& of, size_t at, std::string_view flag) const {
    int64_t value = 0;
    if (at >= of.entries.size() || !whole_number_of(of.entries[at], value))
      refuse(fmt::format("{} has no number {}", flag, at + 1));
    return value;
  }

  TextLines lines_;
  const std::string& name_;
  std::map<std::string, Parm7Section> sections_;
};

bool begins_as_number(std::string_view word) {
  return !word.empty() && word.find_first_of("0123456789") <= 1;
}

/// Reads a line in the columns of Fortran's formats: the atom's number, then segment, residue's
/// number and name, the atom's name and its type, each `width` wide after a blank. Segments may
/// have no name. Returns nothing if the line has another layout.
std::optional<Atom> psf_columns(std::string_view line, size_t number, size_t width) {
  std::array<std::string_view, 5> columns;
  int64_t place = 0;
  if (!whole_number_of(columns_of(line, 0, number), place)) return {};
  for (size_t c = 0; c < columns.size(); ++c) {
    const size_t at = number + c * (width + 1);
    columns[c] = columns_of(line, at + 1, width);
    if (at >= line.size() || line[at] != ' ' || columns[c].find(' ') != columns[c].npos) return {};
  }
  const auto [segment, residue_number, residue, name, type] = columns;
  if (!begins_as_number(residue_number) || residue.empty() || name.empty() || type.empty())
    return {};
  return Atom{.name = std::string(name),
              .residue = std::string(residue),
              .residue_number = std::string(residue_number),
              .chain = std::string(segment)};
}

/// Reads a line in words. If the segment is blank, they stand one place further to the left: the
/// charge and the mass follow the type.
std::optional<Atom> psf_words(std::string_view line) {
  const auto words = words_of(line);
  const bool charge_is_sixth = words.size() >= 8 && words[5].find('.') != words[5].npos &&
                               words[6].find('.') != words[6].npos && begins_as_number(words[1]);
  const size_t first = charge_is_sixth ? 1 : 2;
  if (words.size() < first + 4 || !begins_as_number(words[first])) return {};
  return Atom{.name = std::string(words[first + 2]),
              .residue = std::string(words[first + 1]),
              .residue_number = std::string(words[first]),
              .chain = charge_is_sixth ? "" : std::string(words[1])};
}

}  // namespace

std::vector<Atom> read_psf_atoms(std::string_view text, const std::string& name) {
  TextLines lines(text, name);
  const auto flags = words_of(text.substr(0, text.find('\n')));
  const auto has = [&](std::string_view flag) {
    return std::ranges::find(flags, flag) != flags.end();
  };
  int64_t count = -1;
  for (std::string_view line; count < 0 && lines.next(line);) {
    const auto words = words_of(line);
    if (words.size() >= 2 && words[1].starts_with("!NATOM") &&
        (!whole_number_of(words[0], count) || count < 1))
      lines.refuse("expected the number of atoms before !NATOM");
  }
  if (count < 0) lines.refuse("expected a line 'N !NATOM' of a PSF, found none: fetch it again");
  std::vector<Atom> atoms;
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view line = lines.expect(fmt::format("{} atoms, found {}", count, i));
    // NAMD's form is only words, and other forms may have been written like it.
    std::optional<Atom> atom;
    if (!has("NAMD")) atom = psf_columns(line, has("EXT") ? 10 : 8, has("EXT") ? 8 : 4);
    if (!atom) atom = psf_words(line);
    if (!atom)
      lines.refuse(
          "expected an atom: its number, segment, residue's number and name, its name and "
          "type: the line is damaged, or the file ends before its atoms do; fetch it again");
    atoms.push_back(std::move(*atom));
  }
  return atoms;
}

std::vector<Atom> read_parm7_atoms(std::string_view text, const std::string& name) {
  return Parm7Reader(text, name).read();
}

}  // namespace tutti::data
