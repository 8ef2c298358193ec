#include "tutti/exchange/replicas.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::exchange {
namespace {

TEST(ReplicaMap, RunsAreContiguousBalancedAndComplete) {
  for (int replicas = 1; replicas <= 12; ++replicas)
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ReplicaMap map(replicas, ranks, rank);
        EXPECT_EQ(map.owned().lo, next);
        EXPECT_GE(map.local_count(), replicas / ranks);
        EXPECT_LE(map.local_count(), map.most_per_rank());
        for (int local = 0; local < map.local_count(); ++local)
          EXPECT_EQ(map.owner(map.replica(local)), rank);
        next = map.owned().hi;
      }
      EXPECT_EQ(next, replicas);
      EXPECT_EQ(ReplicaMap(replicas, ranks, 0).local_count(),
                ReplicaMap(replicas, ranks, 0).most_per_rank())
          << "larger runs first";
    }
}

TEST(ReplicaMap, MoreRanksThanReplicasIsTheUsersError) {
  EXPECT_TRUE(throws<ConfigError>({"2 replicas cannot be spread over 4 ranks"},
                                  [&] { ReplicaMap(2, 4, 0); }));
}

}  // namespace
TEST(ReplicaMap, MicroBatchesStayWithTheirReplica) {
  const ReplicaMap map = ReplicaMap(3, 2, 1).times(2);  // 2 and 1 replicas
  EXPECT_EQ(map.replicas(), 6);
  EXPECT_EQ(map.first(), (std::vector<int>{0, 4, 6}));
  EXPECT_EQ(map.owned(), (comm::Range{4, 6}));
  EXPECT_EQ(map.most_per_rank(), 4);
  EXPECT_EQ(map.owner(3), 0);
  EXPECT_EQ(map.owner(4), 1);
  EXPECT_EQ(ReplicaMap(5, 3, 2).times(1).first(), ReplicaMap(5, 3, 2).first());
}

}  // namespace tutti::exchange
