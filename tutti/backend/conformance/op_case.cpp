#include "tutti/backend/conformance/op_case.h"

#include <fmt/format.h>

#include <cmath>

#include "tutti/backend/conformance/case_table.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::backend {
namespace {

const CaseTable& all_cases() {
  static const CaseTable all = [] {
    CaseTable table;
    register_all(table);
    return table;
  }();
  return all;
}

double draw(Rng& rng, Fill fill, int64_t labels) {
  switch (fill) {
    case Fill::normal: return rng.normal();
    case Fill::positive: return 0.5 + rng.uniform();
    case Fill::unit: return rng.uniform();
    case Fill::label: return rng.below(static_cast<uint32_t>(labels));
    case Fill::ties: return rng.below(16) == 0 ? std::nan("") : static_cast<int>(rng.below(3)) - 1;
  }
  return 0;
}

}  // namespace

OpCase parse_op_case(std::string_view text) {
  CaseLine line(text);
  OpCase made;
  made.text = text;
  const CaseTable::Make make = all_cases().find(line.op);
  if (!make) throw ConfigError(fmt::format("op case '{}': there is no op '{}'", text, line.op));
  make(line, made);
  line.check_all_used();
  if (!made.problem.op) throw ConfigError(fmt::format("op case '{}': words are missing", text));
  made.problem.out();  // refuses shapes that do not fit
  return made;
}

std::vector<Values> random_inputs(const OpCase& op_case, uint64_t seed) {
  std::vector<Values> all;
  for (size_t i = 0; i < op_case.fill.size(); ++i) {
    Rng rng(seed, Purpose::test, i);
    Values& values = all.emplace_back(static_cast<size_t>(op_case.problem.in[i].desc.elements()));
    const double factor = op_case.problem.in[i].desc.dtype == DType::u8 ||
                                  op_case.problem.in[i].desc.dtype == DType::i32
                              ? 40
                              : 1;
    for (double& v : values)
      v = draw(rng, op_case.fill[i], op_case.labels) *
          (op_case.fill[i] == Fill::normal ? factor : 1);
  }
  return all;
}

std::vector<std::string> conformance_lines() { return all_cases().lines(); }

}  // namespace tutti::backend
