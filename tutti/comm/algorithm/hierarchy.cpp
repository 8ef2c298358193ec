#include "tutti/comm/algorithm/hierarchy.h"

#include <bit>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

Task along(Collective kind, int rank, int ranks, size_t count) {
  Task task;
  task.kind = kind;
  task.rank = rank;
  task.ranks = ranks;
  task.count = count;
  task.parts = balanced_parts(count, ranks);
  return task;
}

struct GridPlace {
  GridPlace(const Task& task, int columns)
      : columns(columns), rows(task.ranks / columns), row(task.rank / columns),
        column(task.rank % columns) {
    CHECK(columns >= 1 && task.ranks % columns == 0, "{} ranks in rows of {}", task.ranks, columns);
    for (int c = 0; c < columns; ++c) row_ranks.push_back(row * columns + c);
    for (int r = 0; r < rows; ++r) column_ranks.push_back(r * columns + column);
  }
  int columns, rows, row, column;
  std::vector<int> row_ranks, column_ranks;
};

Block shifted(Place place, Slice area, Block block) {
  return {place, {area.begin + block.slice.begin, block.slice.count}};
}

}  // namespace

Schedule allreduce_in_rows(const Task& task, int columns, std::string_view name,
                           const Algorithm& along_row, const Algorithm& along_column) {
  const GridPlace at(task, columns);
  ScheduleBuilder builder(task, std::string(name));

  Task scatter = along(Collective::reduce_scatter, at.column, at.columns, task.count);
  scatter.wide = task.wide;
  const Slice mine = scatter.part();
  const Block piece = task.wide ? accumulator(builder.take_accumulator(mine.count)) : output(mine);
  const Schedule first = along_row.schedule(scatter);
  const Slice first_staging = builder.take_staging(first.staging),
              first_sums = builder.take_accumulator(first.accumulator);
  builder.append(first, at.row_ranks, [&](Block b) {
    switch (b.place) {
      case Place::output: return within(piece, b.slice);
      case Place::staging: return shifted(Place::staging, first_staging, b);
      case Place::accumulator: return shifted(Place::accumulator, first_sums, b);
      case Place::input: break;
    }
    return b;
  });

  // Partial sums travel here: everything is an accumulator.
  const Schedule second =
      along_column.schedule(along(Collective::allreduce, at.row, at.rows, mine.count));
  const Slice second_staging = builder.take_accumulator(second.staging),
              second_sums = builder.take_accumulator(second.accumulator);
  builder.append(second, at.column_ranks, [&](Block b) {
    switch (b.place) {
      case Place::staging: return shifted(Place::accumulator, second_staging, b);
      case Place::accumulator: return shifted(Place::accumulator, second_sums, b);
      default: return within(piece, b.slice);
    }
  });
  builder.finish(output(mine), piece);

  const Schedule third =
      along_row.schedule(along(Collective::allgather, at.column, at.columns, task.count));
  CHECK(third.staging == 0 && third.accumulator == 0);
  builder.append(third, at.row_ranks, [&](Block b) {
    return b.place == Place::input ? within(output(mine), b.slice) : b;
  });
  return builder.build();
}

Steps steps_in_rows(const Task& task, int columns, const Algorithm& along_row,
                    const Algorithm& along_column) {
  const Task scatter = along(Collective::reduce_scatter, 0, columns, task.count);
  const Steps first = along_row.steps(scatter);
  const Steps second = along_column.steps(
      along(Collective::allreduce, 0, task.ranks / columns, scatter.parts.back().count));
  const Steps third = along_row.steps(along(Collective::allgather, 0, columns, task.count));
  return {first.rounds + second.rounds + third.rounds, first.moved + second.moved + third.moved,
          first.reduced + second.reduced};
}

bool rows_follow_tree(const Task& task, int columns) {
  return columns == task.ranks || std::has_single_bit(static_cast<unsigned>(columns));
}

}  // namespace tutti::comm
