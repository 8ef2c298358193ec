#include <memory>

#include "tutti/backend/conformance/case_table.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::backend {
namespace {

void update_case(CaseLine& line, OpCase& made) {
  std::shared_ptr<const ops::Update> op;
  const double decay = line.number("decay", 0);
  const double rate = line.number("rate", 1), clip = line.number("clip", 0);
  const ops::LambAttributes lamb{.weight_decay = decay, .rate = rate};
  if (line.op == "sgd_update")
    op = std::make_shared<ops::SgdUpdate>(
        ops::SgdAttributes{line.number("momentum", 0), decay, line.has("nesterov"), rate, clip});
  else if (line.op == "lars_update")
    op = std::make_shared<ops::LarsUpdate>(
        ops::LarsAttributes{.momentum = line.number("momentum", 0.9),
                            .weight_decay = decay,
                            .trust = 0.01,
                            .rate = rate});
  else if (line.op == "rmsprop_update")
    op = std::make_shared<ops::RmspropUpdate>(
        ops::RmspropAttributes{.weight_decay = decay, .rate = rate, .clip = clip});
  else if (line.op == "weight_average")
    op = std::make_shared<ops::WeightAverage>(
        ops::WeightAverageAttributes{decay, line.whole_number("from", 0)});
  else if (line.op == "parameter_norms")
    op = std::make_shared<ops::ParameterNorms>();
  else if (line.op == "gradient_squares")
    op = std::make_shared<ops::GradientSquares>();
  else if (line.op == "lamb_moments")
    op = std::make_shared<ops::LambMoments>(lamb);
  else if (line.op == "lamb_update")
    op = std::make_shared<ops::LambUpdate>(lamb);
  else
    op = std::make_shared<ops::AdamUpdate>(ops::AdamAttributes{
        .weight_decay = decay, .decoupled = line.has("decoupled"), .rate = rate, .clip = clip});
  made.problem.op = op;
  CaseInputs in(made);
  in.fixed({}, Fill::unit).fixed({}, Fill::unit);
  const auto count = line.whole_number("count", 1);
  const auto size = [&](int64_t p) {
    return line.x[0] + 7 * p;
  };  // different sizes, so that threads' shares begin inside parameters
  int64_t blocks = 0;
  for (int64_t p = 0; p < count; ++p) blocks += sum_blocks(size(p));
  const int square = line.op == "rmsprop_update" ? 2 : 3;  // a mean of squares among the operands
  if (op->sums() == ops::Update::Sums::reads) in.fixed(Shape{blocks, 2}, Fill::positive);
  for (int64_t p = 0; p < count; ++p)
    for (int i = 0; i < op->arity(); ++i)
      in.fixed(Shape{size(p)}, i == square ? Fill::positive : Fill::normal);
}

/// A table of so many `rows` of wK numbers, some of which are named by n samples of cF columns.
/// `from`: rows of other ranks before these, `shared`: rows that all have.
void table_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  const ops::Bag bag{.first = line.whole_number("first", 0),
                     .count = line.whole_number("count", 1),
                     .mean = line.has("mean"),
                     .weighted = line.has("weighted"),
                     .first_row = line.whole_number("from", 0)};
  const int64_t rows = line.whole_number("rows", 20);
  made.labels = line.whole_number("shared", rows);
  const auto finish = [&] {
    in.batched({x[0], x[1]}, DType::i32, Fill::label);
    if (bag.weighted) in.batched({x[0], bag.count}, DType::f32);
  };
  if (line.op == "embedding_bag") {
    in.fixed({rows, x[2]});
    finish();
    made.use<ops::EmbeddingBag>(bag);
    return;
  }
  ops::TableRule rule;
  if (line.has("adagrad")) rule.kind = ops::TableRule::Kind::adagrad;
  if (line.has("rowwise_adagrad")) rule.kind = ops::TableRule::Kind::rowwise_adagrad;
  in.fixed({}, Fill::unit).fixed({}, Fill::unit).fixed({rows, x[2]});
  if (const int64_t kept = rule.state_width(x[2]); kept > 0) in.fixed({rows, kept}, Fill::positive);
  in.batched({x[0], x[2]}, DType::f32);
  finish();
  made.use<ops::TableUpdate>(bag, rule);
}

/// Two sets of `count` parameters of nK elements, added alternately, starting with the last one.
void clip_case(CaseLine& line, OpCase& made) {
  const auto count = static_cast<int>(line.whole_number("count", 1));
  ops::ClipScale::Attributes a{
      .limit = line.number("limit", 1), .parameters = {count, count}, .order = {}};
  for (int p = count; p-- > 0;) a.order.insert(a.order.end(), {p, p + count});
  made.use<ops::ClipScale>(a);
  CaseInputs in(made);
  in.fixed({}, Fill::unit);
  for (int set = 0; set < 2; ++set)
    in.fixed(Shape{count * sum_blocks(line.x[0]), 1}, Fill::positive);
  for (int p = 0; p < 2 * count; ++p) in.fixed(Shape{line.x[0]});
}

}  // namespace

void register_update_cases(CaseTable& table) {
  const auto update = [&](const char* op, const CaseTable::Words& lines) {
    table.add({op}, update_case).lines(lines, {"f32"});
  };
  update("sgd_update",
         {"n1000", "n333 momentum0.9 decay0.0001 count5",
          "n64 momentum0.9 decay0.01 nesterov count3", "n333 momentum0.9 decay0.01 clip0.3 count3",
          "n333 clip0.3", "n333 momentum0.9 decay0.01 rate0.1 count3", "n5 momentum0.9 count90"});
  update("adam_update", {"n333 clip0.3 count2", "n333 count5", "n333 decay0.1 decoupled count2",
                         "n333 decay0.1 count2", "n333 decay0.1 decoupled rate0.1 count2"});
  update("rmsprop_update", {"n333 clip0.3 count2", "n333 count5", "n333 decay0.1 rate0.1 count2"});
  update("lars_update",
         {"n333 momentum0.9 decay0.0001 count5", "n5000 momentum0.9 decay0.0001 count3",
          "n333 momentum0.9 decay0.01 rate0.1 count3", "n5 count170", "n530000"});
  update("parameter_norms", {"n333 count5", "n5000 count3", "n5 count90"});
  update("gradient_squares", {"n333 count5", "n5000 count3", "n5 count90"});
  update("lamb_moments", {"n333 count5", "n5000 decay0.1 count3", "n5 count90"});
  update("lamb_update",
         {"n5000 decay0.1 count3", "n333 decay0.1 rate0.1 count3", "n5 count170", "n530000"});
  update("weight_average", {"n333 decay0.9 count5", "n333 decay0.9 from8 count2"});
  table.add({"clip_scale"}, clip_case)
      .lines({"n5000 limit0.2 count3", "n333 limit1000 count5", "n5 limit0.2 count90"}, {"f32"});
  table.add({"embedding_bag"}, table_case)
      .lines({"n5c3w7 first1", "n9c4w16 count4 rows1000", "n33c5w33 first2 count3",
              "n33c5w33 first2 count3 mean", "n9c4w16 count4 weighted rows50",
              "n9c4w16 count4 weighted mean rows50", "n33c4w16 first1 from10 rows7 shared30",
              "n33c4w16 count4 mean from10 rows7 shared30"},
             {"f32"});
  table.add({"table_update"}, table_case)
      .lines({"n5c3w7 first1", "n300c4w16 count4 rows50", "n300c26w33 first25 rows3",
              "n33c5w8 first2 count3 rows1000", "n33c5w8 first2 count3 mean rows40",
              "n33c4w9 count4 weighted rows40", "n300c4w16 first3 from10 rows7 shared30",
              "n300c4w17 first3 adagrad rows50", "n300c4w17 first3 rowwise_adagrad rows50",
              "n90c4w8 count4 weighted mean adagrad from10 rows7 shared30",
              "n90c4w8 count4 mean rowwise_adagrad from10 rows7 shared30"},
             {"f32"});
}

}  // namespace tutti::backend
