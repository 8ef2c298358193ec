#pragma once
// The cases of each op. A file of cases defines
//   void register_NAME(CaseTable& table) { table.add({"op"}, make_case).lines({"n3c16h4w5"}); }
// and is found by the build.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/backend/conformance/op_case_line.h"

namespace tutti::backend {

class CaseTable {
 public:
  using Words = std::vector<std::string>;
  /// Makes the op and its inputs from a line of text.
  using Make = void (*)(CaseLine& line, OpCase& made);

  /// Some ops of the table.
  class Ops {
   public:
    Ops(CaseTable& table, Words ops) : table_(table), ops_(std::move(ops)) {}
    /// Adds the line "OP TYPE REST" for each op, type and rest: it is checked by tests and timed by
    /// `tutti bench ops`. There should be shapes with and without round numbers.
    const Ops& lines(const Words& rests, const Words& types = {"f32", "bf16"}) const;

   private:
    CaseTable& table_;
    Words ops_;
  };

  /// Registers how lines of these ops are made.
  Ops add(const Words& ops, Make make);

  /// Returns null for an unknown op.
  Make find(std::string_view op) const;
  const Words& lines() const { return lines_; }

 private:
  std::map<std::string, Make, std::less<>> makers_;
  Words lines_;
};

/// Returns each text followed by each of the endings.
CaseTable::Words with_endings(const CaseTable::Words& texts, const CaseTable::Words& endings);

/// Calls the register functions of all files of cases; the build writes it.
void register_all(CaseTable& table);

}  // namespace tutti::backend
