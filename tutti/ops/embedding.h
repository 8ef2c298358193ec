#pragma once
// Tables of which a sample reads a few rows, and their update. A table is a parameter without a
// gradient of its own size: what a step needs grows with the rows looked up alone.

#include "tutti/graph/graph.h"

namespace tutti {

/// Which columns of the rows' numbers [N, F] are one bag.
struct BagColumns {
  int64_t first = 0, count = 1;
};

/// (table [R, W], rows i32 [N, F]) -> y [N, W]: the sum of the rows that the bag's columns name, in
/// their order. All numbers are in [0, R). Has no gradient rule: differentiate() keeps dy, from
/// which TableUpdate changes the rows that were read.
class EmbeddingBag : public Op {
 public:
  explicit EmbeddingBag(BagColumns columns = {}) : columns_(columns) {}
  const BagColumns& columns() const { return columns_; }
  std::string_view name() const override { return "embedding_bag"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  int table() const override { return 0; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  double flop(std::span<const ValueType> in, std::span<const ValueType> out) const override;

 private:
  BagColumns columns_;
};

/// Plain stochastic gradient descent of the rows that a batch has read:
///   (lr, gradient_scale, table, dy [N, W], rows i32 [N, F]); the table changes
///   table[r] -= lr * gradient_scale * sum of dy[n] over (n, column) with rows[n, column] = r
/// The sum goes by n, then by column, whatever the threads, each of which owns whole rows.
class TableUpdate : public Op {
 public:
  explicit TableUpdate(BagColumns columns = {}) : columns_(columns) {}
  const BagColumns& columns() const { return columns_; }
  std::string_view name() const override { return "table_update"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::whole; }
  bool in_update() const override { return true; }
  bool mutates(int input) const override { return input == 2; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

 private:
  BagColumns columns_;
};

}  // namespace tutti
