#include "tutti/data/format/molecules/topology.h"

#include <fmt/format.h>

#include <charconv>

#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

constexpr int64_t kMostTopologyBytes = int64_t{1} << 30;

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || text[word.size()] == ' ' ||
                                    text[word.size()] == '\n' || text[word.size()] == '\r');
}

[[noreturn]] void refuse_as_topology(const FileBytes& file) {
  throw BadFile(
      "{}: expected a topology: PDB (.pdb, .ent), GRO (.gro), PSF or AMBER's parm7, with its "
      "ending; {}",
      file.name(), found_instead(file));
}

std::vector<Atom> atoms_of(const FileBytes& file, std::string_view text,
                           const std::filesystem::path& ending) {
  if (!is_plain_text(first_bytes_of(file).content)) refuse_as_topology(file);
  const std::string& name = file.name();
  if (begins_with_word(text, "PSF")) return read_psf_atoms(text, name);
  if (text.starts_with("%VERSION")) return read_parm7_atoms(text, name);
  if (ending == ".gro") return read_gro_atoms(text, name);
  if (ending == ".pdb" || ending == ".ent") return read_pdb_atoms(text, name);
  refuse_as_topology(file);
}

}  // namespace

bool TextLines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

std::string_view TextLines::expect(std::string_view what) {
  std::string_view line;
  if (!next(line)) refuse(fmt::format("the file ends, expected {}: fetch it again", what));
  return line;
}

void TextLines::refuse(std::string_view why) const {
  throw BadFile("{}:{}: {}", name_, number_, why);
}

std::string_view columns_of(std::string_view line, size_t first, size_t count) {
  if (first >= line.size()) return {};
  line = line.substr(first, count);
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
}

bool whole_number_of(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Topology read_topology(const std::filesystem::path& path) {
  const FileBytes file = FileBytes::open(path);
  if (file.size() > kMostTopologyBytes)
    throw BadFile("{}: expected a topology, found {} bytes: give another file", file.name(),
                  file.size());
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  return {file.name(), atoms_of(file, text, path.extension())};
}

}  // namespace tutti::data
