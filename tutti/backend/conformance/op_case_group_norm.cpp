#include "tutti/backend/conformance/case_table.h"
#include "tutti/ops/group_norm.h"

namespace tutti::backend {
namespace {

void group_norm_case(CaseLine& line, OpCase& made) {
  const ops::GroupNormAttributes a{.groups = line.whole_number("groups", 1)};
  const Shape channels{line.x[1]};
  CaseInputs in(made);
  in.batched(line.x, line.dtype);
  if (line.op == "group_norm") {
    in.free(channels).free(channels);
    made.use<ops::GroupNorm>(a);
  } else {
    in.batched(line.x, line.dtype).free(channels);
    made.use<ops::GroupNormGrad>(a);
  }
}

}  // namespace

void register_group_norm_cases(CaseTable& table) {
  table.add({"group_norm", "group_norm_grad"}, group_norm_case)
      .lines({"n3c16h6w7 groups4", "n2c32h8w8 groups32", "n2c6t19 groups3", "n3c5h6w7",
              "n2c160h3w5 groups10", "n1c32d3h4w5 groups8", "n5c24 groups2"});
}

}  // namespace tutti::backend
