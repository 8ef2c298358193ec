#pragma once
// Tables of which a sample reads a few rows, and their update. A table has no gradient of its own
// size: a step's memory grows only with the number of rows that are looked up.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// A bag: the columns of the numbers [N, F] that name rows of a table, and how these rows are
/// combined.
struct Bag {
  int64_t first = 0, count = 1;  ///< columns; a number below 0 names no row, so bags may be shorter
  bool mean = false;             ///< takes the mean of the named rows, instead of their sum
  bool weighted = false;  ///< multiplies each row by its own weight; the weights are an input [N,
                          ///< count]
  /// Where several ranks share a table: the number of this rank's first row. The other ranks' rows
  /// add nothing here.
  int64_t first_row = 0;
  std::string to_string() const;
};

/// (table [R, W], rows i32 [N, F], weights f32 [N, count] where it is weighted) -> y [N, W]: the
/// sum of the rows that the bag names, in the order of its columns; 0 where it names none. Has no
/// gradient rule: differentiate() keeps dy, from which TableUpdate changes the rows that were read.
class EmbeddingBag : public OpWith<"embedding_bag", Walk::per_sample, Bag> {
 public:
  using OpWith::OpWith;
  const Bag& bag() const { return a_; }
  int table() const override { return 0; }
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;
};

/// How the gradients g change the rows of a table that a step has read.
struct TableRule {
  enum class Kind : uint8_t {
    sgd,             ///< w -= lr g
    adagrad,         ///< sum += g^2;              w -= lr g / (sqrt(sum) + epsilon)
    rowwise_adagrad  ///< sum += mean of a row's g^2: one number a row
  } kind = Kind::sgd;
  float epsilon = 1e-10f;

  /// Returns how many numbers the rule keeps for each row of a table so wide.
  int64_t state_width(int64_t width) const {
    return kind == Kind::sgd ? 0 : kind == Kind::adagrad ? width : 1;
  }
};

constexpr std::array<std::string_view, 3> words(TableRule::Kind) {
  return {"sgd", "adagrad", "rowwise_adagrad"};
}

/// Makes one step of descent on the rows that a step's samples have read. Inputs: lr,
/// gradient_scale, table [R, W], sum [R, 1 or W] if the rule keeps one, dy [M, W], rows i32 [M, F],
/// weights f32 [M, count] if the bag is weighted. Table and sum change by
///   g[r] = gradient_scale * sum of c dy[m] over (m, column) with rows[m, column] = r
/// where c is 1, the row's weight or, for a mean, 1 / rows named by m. The sum is taken by m, then
/// by column, on any number of threads, each of which owns whole rows.
class TableUpdate : public NamedOp<"table_update", Walk::whole> {
 public:
  explicit TableUpdate(Bag bag = {}, TableRule rule = {}) : bag_(bag), rule_(rule) {}
  const Bag& bag() const { return bag_; }
  const TableRule& rule() const { return rule_; }
  bool has_state() const { return rule_.kind != TableRule::Kind::sgd; }
  std::string attributes() const override;
  bool in_update() const override { return true; }
  bool mutates(int input) const override { return input == 2 || (input == 3 && has_state()); }
  std::vector<ValueType> infer(Types in) const override;

 private:
  Bag bag_;
  TableRule rule_;
};

}  // namespace tutti::ops
