#include "tutti/split/tables.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/sequence/embedding.h"
#include "tutti/ops/shape_ops.h"
#include "tutti/split/split.h"

namespace tutti::split {
namespace {

constexpr int kRowsTag = 15'000;  // behind the tags of parts of samples; gradients have odd tags

/// Cuts a table into ranges of rows of nearly the same length, as few as fit a share.
std::vector<TablePiece> cut_table(size_t table, const Shape& shape, double share, int ranks) {
  const double bytes = static_cast<double>(shape.elements());
  const auto wanted = static_cast<int64_t>(std::ceil(bytes / share - 1e-9));
  const int64_t pieces = std::clamp<int64_t>(wanted, 1, std::min<int64_t>(ranks, shape[0]));
  std::vector<TablePiece> cut;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t first = shape[0] * i / pieces, end = shape[0] * (i + 1) / pieces;
    cut.push_back({table, first, end - first, 0});
  }
  return cut;
}

/// Rewrites a graph whose lookups read tables that ranks share.
class TableSharer {
 public:
  TableSharer(const graph::Graph& old, const TableRanks& ranks, bool kept)
      : old_(old), ranks_(ranks), kept_(kept) {
    for (const graph::Node& node : old.nodes())
      if (dynamic_cast<const ops::EmbeddingBag*>(node.op.get())) lookups_.push_back(&node);
  }
  bool is_needed() const { return !lookups_.empty(); }

  SharedTables build() {
    of_.resize(old_.values().size());
    deal();
    copy_bound();
    for (const graph::Node& node : old_.nodes()) {
      if (!dynamic_cast<const ops::EmbeddingBag*>(node.op.get())) {
        std::vector<graph::Value> in;
        for (const graph::Value v : node.in) in.push_back(read(v));
        const std::vector<graph::Value> out = graph().append(node.name, node.op, in);
        for (size_t i = 0; i < out.size(); ++i) of(node.out[i]) = out[i];
      } else if (&node == lookups_.front()) {
        exchange_rows();
        look_up();
        exchange_vectors();
      }
    }
    for (const graph::Value v : old_.outputs()) graph().mark_output(read(v));
    shared_.rewritten.of = std::move(of_);
    return std::move(shared_);
  }

 private:
  /// A lookup in one piece of a table, and the values that it reads and finds.
  struct Read {
    const graph::Node* node;
    TablePiece piece;
    graph::Value table;  // only for pieces that this rank owns
    std::vector<graph::Value> rows, weights,
        found;  // by rank; for others' pieces only this rank's entry
    const ops::EmbeddingBag& op() const {
      return dynamic_cast<const ops::EmbeddingBag&>(*node->op);
    }
    ops::Bag bag() const {
      ops::Bag bag = op().bag();
      bag.first = 0;
      bag.first_row = piece.first;
      return bag;
    }
  };

  graph::Graph& graph() { return shared_.rewritten.graph; }
  graph::Value& of(graph::Value v) { return of_[static_cast<size_t>(v.id)]; }
  size_t me() const { return static_cast<size_t>(ranks_.rank); }
  bool is_mine(const Read& read) const { return read.piece.rank == ranks_.rank; }

  void deal() {
    std::vector<Shape> shapes;
    for (const graph::Node* node : lookups_) {
      const graph::Value table = node->in[0];
      if (std::ranges::count_if(lookups_, [&](const graph::Node* n) { return n->in[0] == table; }) >
          1)
        throw ConfigError(
            fmt::format("the table '{}' is looked up in two places: on several ranks each table "
                        "has one",
                        old_[table].name));
      shapes.push_back(old_.shape(table));
    }
    for (const TablePiece& piece : deal_tables(shapes, ranks_.ranks))
      reads_.push_back({lookups_[piece.table], piece, {}, {}, {}, {}});
  }

  /// Copies the values that the caller binds, in order; tables with this rank's rows.
  void copy_bound() {
    for (size_t i = 0; i < old_.values().size(); ++i) {
      const graph::ValueInfo& info = old_.values()[i];
      const Shape& shape = info.type.desc.shape;
      of_[i] = copy_bound_value(graph(), info, shape);
      if (info.role != graph::Role::table) continue;
      for (Read& read : reads_)
        if (is_mine(read) && read.node->in[0].id == static_cast<int32_t>(i))
          of_[i] = read.table = graph().table(info.name, Shape{read.piece.rows, shape[1]},
                                              info.init, {read.piece.first, shape[0]});
    }
  }

  /// Returns the row numbers of this rank's samples for a lookup.
  graph::Value own_rows(const Read& read) {
    graph::Value& made = columns_[read.node];
    if (made.valid()) return made;
    const ops::Bag& bag = read.op().bag();
    const graph::Value all = of(read.node->in[1]);
    CHECK(all.valid(), "{}: its rows are made by another lookup", read.node->name);
    made = graph().append1(read.node->name + ".rows",
                           std::make_shared<ops::Slice>(
                               std::vector<ops::SliceRange>{{bag.first, bag.first + bag.count}}),
                           {all});
    return made;
  }

  /// Fills rows and weights; pieces that this rank owns get those of all ranks' samples.
  void exchange_rows() {
    std::vector<ops::ExchangeParts::Give> gives;
    std::vector<ops::ExchangeParts::Get> gets;
    std::vector<graph::Value> given;
    std::vector<std::pair<graph::Value*, size_t>> received;  // destination, and index of the output
    const auto send = [&](graph::Value v, int rank) {
      gives.push_back({static_cast<int>(given.size()), rank});
      given.push_back(v);
    };
    const auto receive = [&](graph::Value& place, graph::Value like, int rank) {
      received.emplace_back(&place, gets.size());
      gets.push_back({rank, graph().type(like)});
    };
    for (Read& read : reads_) {
      const graph::Value rows = own_rows(read);
      const graph::Value weights = read.op().bag().weighted ? of(read.node->in[2]) : graph::Value{};
      CHECK(weights.valid() == read.op().bag().weighted,
            "{}: its weights are made behind the first lookup", read.node->name);
      read.rows.resize(static_cast<size_t>(ranks_.ranks));
      read.weights.resize(static_cast<size_t>(ranks_.ranks));
      read.rows[me()] = rows;
      read.weights[me()] = weights;
      if (!is_mine(read)) {
        send(rows, read.piece.rank);
        if (weights.valid()) send(weights, read.piece.rank);
        continue;
      }
      for (int rank = 0; rank < ranks_.ranks; ++rank) {
        if (rank == ranks_.rank) continue;
        receive(read.rows[static_cast<size_t>(rank)], rows, rank);
        if (weights.valid()) receive(read.weights[static_cast<size_t>(rank)], weights, rank);
      }
    }
    if (given.empty()) given.push_back(own_rows(reads_.front()));
    if (ranks_.ranks == 1) return keep_rows();
    const std::vector<graph::Value> out = graph().append(
        "tables.rows", std::make_shared<ops::ExchangeBags>(kRowsTag, gives, gets, true), given);
    for (const auto& [place, i] : received) *place = out[i];
    keep_rows();
  }

  void keep_rows() {
    for (const Read& read : reads_)
      if (kept_ && is_mine(read))
        for (const auto* list : {&read.rows, &read.weights})
          for (const graph::Value v : *list)
            if (v.valid() && graph()[v].role != graph::Role::input) graph().mark_output(v);
  }

  /// Looks rows up in the pieces that this rank owns, for the samples of all ranks.
  void look_up() {
    for (Read& read : reads_) {
      read.found.resize(static_cast<size_t>(ranks_.ranks));
      if (!is_mine(read)) continue;
      for (size_t rank = 0; rank < read.found.size(); ++rank) {
        std::vector<graph::Value> in{read.table, read.rows[rank]};
        if (read.weights[rank].valid()) in.push_back(read.weights[rank]);
        const auto op = std::make_shared<ops::EmbeddingBag>(read.bag());
        shared_.rank_of[op.get()] = static_cast<int>(rank);
        read.found[rank] =
            graph().append(fmt::format("{}.of{}", read.node->name, rank), op, in).front();
      }
    }
  }

  /// Sends the vectors found to the ranks of the samples, this rank included: later nodes are then
  /// cut into the same bands, and sums have the same order, on any number of ranks.
  void exchange_vectors() {
    std::vector<ops::ExchangeParts::Give> gives;
    std::vector<ops::ExchangeParts::Get> gets;
    std::vector<graph::Value> given;
    for (const Read& read : reads_) {
      gets.push_back({read.piece.rank, old_.type(read.node->out[0])});
      for (int rank = 0; is_mine(read) && rank < ranks_.ranks; ++rank) {
        gives.push_back({static_cast<int>(given.size()), rank});
        given.push_back(read.found[static_cast<size_t>(rank)]);
      }
    }
    if (given.empty()) given.push_back(own_rows(reads_.front()));
    const std::vector<graph::Value> out = graph().append(
        "tables.vectors", std::make_shared<ops::ExchangeBags>(kRowsTag + 2, gives, gets), given);
    for (size_t r = 0; r < reads_.size(); ++r) pieces_[reads_[r].node->out[0].id].push_back(out[r]);
  }

  /// Returns the value that a node reads for the old one. Adds pieces of a table up where they are
  /// first read, so that nothing waits for them before.
  graph::Value read(graph::Value v) {
    graph::Value& value = of(v);
    const auto pieces = pieces_.find(v.id);
    if (value.valid() || pieces == pieces_.end()) return value;
    for (const graph::Value piece : pieces->second)
      value = value.valid() ? graph().append1(old_[v].name + ".sum", std::make_shared<ops::Add>(),
                                              {value, piece})
                            : piece;
    return value;
  }

  const graph::Graph& old_;
  const TableRanks ranks_;
  const bool kept_;
  std::vector<const graph::Node*> lookups_;
  std::vector<Read> reads_;  // by table and rows
  std::map<const graph::Node*, graph::Value> columns_;
  std::map<int32_t, std::vector<graph::Value>> pieces_;  // a lookup's results, in the order of rows
  std::vector<graph::Value> of_;
  SharedTables shared_;
};

}  // namespace

std::vector<TablePiece> deal_tables(std::span<const Shape> tables, int ranks) {
  double total = 0;
  for (const Shape& table : tables) total += static_cast<double>(table.elements());
  std::vector<TablePiece> pieces;
  for (size_t t = 0; t < tables.size(); ++t) {
    const std::vector<TablePiece> cut = cut_table(t, tables[t], total / ranks, ranks);
    pieces.insert(pieces.end(), cut.begin(), cut.end());
  }
  const auto elements = [&](size_t i) { return pieces[i].rows * tables[pieces[i].table][1]; };
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>{}, elements);
  std::vector<int64_t> load(static_cast<size_t>(ranks));
  std::vector<std::vector<bool>> has(tables.size(), std::vector<bool>(load.size()));
  for (const size_t i : order) {
    const std::vector<bool>& taken = has[pieces[i].table];
    size_t best = load.size();
    for (size_t r = 0; r < load.size(); ++r)
      if (!taken[r] && (best == load.size() || load[r] < load[best])) best = r;
    CHECK(best < load.size(), "a table is cut into more pieces than there are ranks");
    has[pieces[i].table][best] = true;
    load[best] += elements(i);
    pieces[i].rank = static_cast<int>(best);
  }
  return pieces;
}

SharedTables share_tables(const graph::Graph& graph, const TableRanks& ranks, bool kept) {
  TableSharer sharer(graph, ranks, kept);
  if (sharer.is_needed()) return sharer.build();
  SharedTables same{{graph, {}}, {}};
  for (size_t i = 0; i < graph.values().size(); ++i)
    same.rewritten.of.push_back(graph::Value{static_cast<int32_t>(i)});
  return same;
}

}  // namespace tutti::split
