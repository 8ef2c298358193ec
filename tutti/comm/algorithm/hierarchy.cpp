#include "tutti/comm/algorithm/hierarchy.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/halving.h"

namespace tutti::comm {
namespace {

Block shifted(Space space, Slice area, Block block) {
  return {space, {area.begin + block.slice.begin, block.slice.count}};
}

// The slices of the vector that the columns work on.
std::vector<Slice> slices_of(const Task& task, const GridPlace& at) {
  return balanced_parts(task.count, static_cast<int>(at.row_ranks.size()));
}

Holders holders_of(const Task& task, const GridPlace& at, RankAt rank_at) {
  return {.columns = slices_of(task, at),
          .ranks = static_cast<int>(at.column_ranks.size()),
          .rank = [rank_at = std::move(rank_at)](size_t column, int row) {
            return rank_at(row, static_cast<int>(column));
          }};
}

Task along_column_of(const GridPlace& at, Collective kind, size_t count) {
  return balanced_task(kind, at.row, static_cast<int>(at.column_ranks.size()), count);
}

// Adds up this rank's slice along the row, into `piece`.
void add_in_row(ScheduleBuilder& builder, const Task& task, const GridPlace& at,
                const Algorithm& along_row, Block piece) {
  Task scatter = balanced_task(Collective::reduce_scatter, at.column,
                               static_cast<int>(at.row_ranks.size()), task.count);
  scatter.wide = task.wide;
  const Schedule schedule = along_row.schedule(scatter);
  const Slice arriving = builder.take_staging(schedule.staging),
              sums = builder.take_accumulator(schedule.accumulator);
  builder.append(schedule, at.row_ranks, [&](Block b) {
    switch (b.space) {
      case Space::output: return within(piece, b.slice);
      case Space::staging: return shifted(Space::staging, arriving, b);
      case Space::accumulator: return shifted(Space::accumulator, sums, b);
      case Space::input: break;
    }
    return b;
  });
}

// Partial sums travel along the column: everything is an accumulator.
void add_in_column(ScheduleBuilder& builder, const GridPlace& at, Block piece,
                   const Schedule& schedule) {
  const Slice arriving = builder.take_accumulator(schedule.staging),
              sums = builder.take_accumulator(schedule.accumulator);
  builder.append(schedule, at.column_ranks, [&](Block b) {
    switch (b.space) {
      case Space::staging: return shifted(Space::accumulator, arriving, b);
      case Space::accumulator: return shifted(Space::accumulator, sums, b);
      default: return within(piece, b.slice);
    }
  });
}

// Gathers the output along the row: each rank has its slice; afterwards all have all slices.
void share_in_row(ScheduleBuilder& builder, const Task& task, const GridPlace& at,
                  const Algorithm& along_row) {
  Task gather = balanced_task(Collective::allgather, at.column,
                              static_cast<int>(at.row_ranks.size()), task.count);
  gather.shared_output = task.shared_output;
  const Slice mine = gather.part();
  const Schedule schedule = along_row.schedule(gather);
  CHECK(schedule.staging == 0 && schedule.accumulator == 0);
  builder.append(schedule, at.row_ranks, [&](Block b) {
    return b.space == Space::input ? within(output(mine), b.slice) : b;
  });
}

// Returns the costs of reduce_scatter, and of allgather, which is its reverse. The busiest rank
// keeps the larger half each time. Where not all rows hold a slice in the end, those that do have
// taken as much again from the others.
Steps steps_of_scatter(const Task& task, int columns, const Algorithm& along_row) {
  const Task in_row = balanced_task(Collective::reduce_scatter, 0, columns, task.count);
  const auto rows = static_cast<unsigned>(task.ranks / columns);
  size_t held = std::ranges::max(in_row.parts, {}, &Slice::count).count, taken = 0;
  for (unsigned k = std::bit_floor(rows); k > 1; k /= 2) taken += held = held - held / 2;
  if (!std::has_single_bit(rows)) taken += held;
  const auto ranks = static_cast<size_t>(task.ranks);
  const size_t part = (task.count + ranks - 1) / ranks;
  const Steps row = along_row.steps(in_row);
  return {(columns > 1 ? row.rounds : 0) + std::bit_width(rows - 1) + 1,
          row.moved + static_cast<double>(taken + part),
          reduces(task.kind) ? row.reduced + static_cast<double>(taken) : 0};
}

}  // namespace

GridPlace place_in_grid(const Task& task, int columns) {
  CHECK(columns >= 1 && task.ranks % columns == 0, "{} ranks in rows of {}", task.ranks, columns);
  GridPlace at{.row = task.rank / columns,
               .column = task.rank % columns,
               .row_ranks = {},
               .column_ranks = {}};
  for (int c = 0; c < columns; ++c) at.row_ranks.push_back(at.row * columns + c);
  for (int r = at.column; r < task.ranks; r += columns) at.column_ranks.push_back(r);
  return at;
}

Schedule allreduce_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                           const Algorithm& along_row, const Algorithm& along_column) {
  ScheduleBuilder builder(task, std::string(name));
  const Slice mine = slices_of(task, at)[static_cast<size_t>(at.column)];
  const Block piece = builder.sum_for(output(mine));
  add_in_row(builder, task, at, along_row, piece);
  add_in_column(builder, at, piece,
                along_column.schedule(along_column_of(at, Collective::allreduce, mine.count)));
  builder.finish(output(mine), piece);
  share_in_row(builder, task, at, along_row);
  return builder.build();
}

Schedule reduce_scatter_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                                const Algorithm& along_row, RankAt rank_at) {
  ScheduleBuilder builder(task, std::string(name));
  const Holders holders = holders_of(task, at, std::move(rank_at));
  const auto column = static_cast<size_t>(at.column);
  const Slice mine = holders.columns[column];
  const Block piece = builder.accumulator_for(mine.count);
  add_in_row(builder, task, at, along_row, piece);

  const Task up = along_column_of(at, Collective::reduce_scatter, mine.count);
  ScheduleBuilder halving(up, "");
  add_up(halving, up, output({0, mine.count}));
  add_in_column(builder, at, piece, halving.build());

  const Slice have = holders.held(column, at.row);
  deal_out(builder, task, holders, have, within(piece, {have.begin - mine.begin, have.count}));
  return builder.build();
}

Schedule allgather_in_rows(const Task& task, const GridPlace& at, std::string_view name,
                           const Algorithm& along_row, RankAt rank_at) {
  ScheduleBuilder builder(task, std::string(name));
  const Holders holders = holders_of(task, at, std::move(rank_at));
  const auto column = static_cast<size_t>(at.column);
  deal_in(builder, task, holders, holders.held(column, at.row));

  const Block mine = output(holders.columns[column]);
  const Task down = along_column_of(at, Collective::allgather, mine.count());
  ScheduleBuilder doubling(down, "");
  share_down(doubling, down);
  builder.append(doubling.build(), at.column_ranks, [&](Block b) { return within(mine, b.slice); });

  share_in_row(builder, task, at, along_row);
  return builder.build();
}

Steps steps_in_rows(const Task& task, int columns, const Algorithm& along_row,
                    const Algorithm& along_column) {
  if (task.kind != Collective::allreduce) return steps_of_scatter(task, columns, along_row);
  const Task scatter = balanced_task(Collective::reduce_scatter, 0, columns, task.count);
  const Steps first = along_row.steps(scatter);
  const Steps second = along_column.steps(
      balanced_task(Collective::allreduce, 0, task.ranks / columns, scatter.parts.back().count));
  const Steps third = along_row.steps(balanced_task(Collective::allgather, 0, columns, task.count));
  // A row of one rank exchanges nothing.
  const double in_row = columns == 1 ? 0 : first.rounds + third.rounds;
  return {in_row + second.rounds, first.moved + second.moved + third.moved,
          first.reduced + second.reduced};
}

}  // namespace tutti::comm
