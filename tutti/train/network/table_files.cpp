#include "tutti/train/network/table_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/name_pattern.h"
#include "tutti/base/number.h"
#include "tutti/keep/foreign_names.h"
#include "tutti/keep/rank_file.h"

namespace tutti::train {
namespace {

constexpr std::string_view kPrefix = "tables/";
constexpr int64_t kMostRows = int64_t{1} << 48;  // sums of such numbers fit

/// The location of some rows of a table.
struct SavedRows {
  int64_t rank = 0, first = 0, rows = 0;
  std::string tensor;
};

/// Parses the rows of a tensor "tables/NAME@FIRST".
SavedRows saved_rows(const std::filesystem::path& path, const keep::SafetensorsFile::Entry& entry,
                     size_t at) {
  SavedRows rows{.tensor = entry.name};
  if (entry.shape.size() != 2 ||
      !read_number(std::string_view(entry.name).substr(at + 1), rows.first) || rows.first < 0 ||
      rows.first > kMostRows || entry.shape[0] > kMostRows)
    throw IoError(fmt::format(
        "{}: tensor '{}' of shape [{}] is no part of a table: the file is damaged; take another "
        "checkpoint",
        path.string(), entry.name, fmt::join(entry.shape, ", ")));
  rows.rows = entry.shape[0];
  return rows;
}

std::map<std::string, std::vector<SavedRows>> find_rows(const std::filesystem::path& checkpoint,
                                                        const keep::RankFiles& files) {
  std::map<std::string, std::vector<SavedRows>> found;  // by the table's name
  for (int64_t rank = 0; rank < files.count; ++rank) {
    const keep::SafetensorsFile file = keep::open_rank_file(checkpoint, files, rank);
    for (const keep::SafetensorsFile::Entry& entry : file.entries()) {
      const size_t at = entry.name.rfind('@');
      if (!entry.name.starts_with(kPrefix) || at == std::string::npos) continue;
      SavedRows rows = saved_rows(keep::rank_file_path(checkpoint, rank), entry, at);
      rows.rank = rank;
      found[entry.name.substr(kPrefix.size(), at - kPrefix.size())].push_back(rows);
    }
  }
  return found;
}

/// Rows [from, to) of a table, and this rank's memory for them.
struct Wanted {
  std::byte* memory;
  int64_t first, rows, width;
  size_t row_bytes() const { return static_cast<size_t>(width) * sizeof(float); }
};

/// Reads the wanted rows from the entry, which begins at row `first`; returns their number.
int64_t read_rows(const keep::SafetensorsFile& file, const keep::SafetensorsFile::Entry& entry,
                  int64_t first, const Wanted& wanted) {
  if (entry.type != keep::SafetensorsFile::Type::f32 || entry.shape.size() != 2 ||
      entry.shape[1] != wanted.width)
    throw ConfigError(fmt::format("tensor '{}' is no f32 table of width {}: it is of another model",
                                  entry.name, wanted.width));
  const int64_t begin = std::max(first, wanted.first);
  const int64_t end = std::min(first + entry.shape[0], wanted.first + wanted.rows);
  if (begin >= end) return 0;
  const size_t row = wanted.row_bytes();
  file.read_part(entry, static_cast<uint64_t>(begin - first) * row,
                 {wanted.memory + static_cast<size_t>(begin - wanted.first) * row,
                  static_cast<size_t>(end - begin) * row});
  return end - begin;
}

}  // namespace

std::vector<keep::TensorRef> table_refs(const Weights& weights) {
  std::vector<keep::TensorRef> refs;
  for (const plan::TableVariable& table : weights.variables().tables)
    refs.push_back(
        {.name = fmt::format("{}{}@{}", kPrefix, table.variable.name, table.rows.first),
         .desc = table.variable.desc,
         .bytes = {weights.tables() + table.variable.offset, table.variable.desc.bytes()}});
  return refs;
}

void read_tables(const keep::SafetensorsFile& file, const std::filesystem::path& checkpoint,
                 Weights& weights, std::span<const std::string> except) {
  if (weights.variables().tables.empty()) return;
  const keep::ForeignNames names(file, weights.variables());
  const keep::RankFiles files =
      checkpoint.empty() ? keep::RankFiles{} : keep::rank_files_of(checkpoint);
  const auto saved = find_rows(checkpoint, files);
  std::vector<std::string> without;
  std::set<int64_t> verified;  // the manifest has no checksums of the ranks' files
  for (const plan::TableVariable& table : weights.variables().tables) {
    const std::string& name = table.variable.name;
    if (fits_any(except, name)) continue;
    const Shape& shape = table.variable.desc.shape;
    const Wanted wanted{weights.tables() + table.variable.offset, table.rows.first, shape[0],
                        shape[1]};
    int64_t rows = 0;
    if (const keep::SafetensorsFile::Entry* whole = file.find(names.in_file(name))) {
      if (whole->shape.size() == 2 && whole->shape[0] != table.rows.all)
        throw ConfigError(fmt::format("tensor '{}' has {} rows, the model's table has {}", name,
                                      whole->shape[0], table.rows.all));
      rows = read_rows(file, *whole, 0, wanted);
    } else if (const auto found = saved.find(name); found != saved.end()) {
      int64_t all = 0;
      for (const SavedRows& part : found->second) all += part.rows;
      if (all != table.rows.all)
        throw ConfigError(fmt::format("the table '{}' of '{}' has {} rows, the model's has {}",
                                      name, checkpoint.string(), all, table.rows.all));
      for (const SavedRows& part : found->second) {
        if (part.first >= wanted.first + wanted.rows || part.first + part.rows <= wanted.first)
          continue;
        if (verified.insert(part.rank).second) keep::verify_rank_file(checkpoint, files, part.rank);
        const keep::SafetensorsFile of_rank = keep::open_rank_file(checkpoint, files, part.rank);
        rows += read_rows(of_rank, *of_rank.find(part.tensor), part.first, wanted);
      }
    }
    if (rows == wanted.rows) continue;
    if (!table.kept_by_update)
      throw ConfigError(fmt::format(
          "the table '{}' is missing from the weights: they are of another model, or without the "
          "files of ranks that a checkpoint has beside them",
          name));
    std::memset(wanted.memory, 0, table.variable.desc.bytes());
    without.push_back(name);
  }
  if (!without.empty())
    log::warn_once("what the update of tables keeps begins at zero: {}", list_of_names(without));
}

}  // namespace tutti::train
