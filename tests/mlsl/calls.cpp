// Tests the calls that the acceptance test does not make.
//
//   calls collectives   every collective of a distribution on the whole world, twice
//   calls colour        Configure("color=N"): the even and the odd ranks are worlds of their own
//   calls statistics    the results of Statistics for a gradient, with MLSL_STATS=1
//   calls residual LIB  quantised gradients from two buffers alternately: the error of each comes
//                       back with it
//   calls blocks N      AlltoAllv N times with other counts each time: no more descriptors,
//                       mappings and memory than after the first ones
//   calls servers LIB   with MLSL_NUM_SERVERS: results come while the program makes no call, of a
//                       quantised gradient too
//   calls affinity      a server is bound to the core that MLSL_SERVER_AFFINITY names
//   calls mistake       rank 1 asks for a root that does not exist: all processes end with exit
//                       code 1

#include <dirent.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "calls.h"
#include "mlsl.hpp"

using namespace MLSL;

int wrong = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  ++wrong;
}

namespace {

void collectives(Environment& environment) {
  const size_t size = environment.GetProcessCount();
  const size_t rank = environment.GetProcessIdx();
  const auto r = static_cast<double>(rank);
  const auto n = static_cast<double>(size);
  Distribution* world = environment.CreateDistributionWithColors(0, static_cast<int>(rank));
  expect(world->GetProcessCount(GT_DATA) == size && world->GetProcessCount(GT_MODEL) == 1 &&
             world->GetProcessIdx(GT_DATA) == rank,
         "groups by colours");
  for (int round = 0; round < 2; ++round) {
    std::vector<double> each(size), got(size, -1);
    for (size_t p = 0; p < size; ++p) each[p] = 100 * r + static_cast<double>(p);
    const auto from = [](size_t sender, size_t element) {
      return 100 * static_cast<double>(sender) + static_cast<double>(element);
    };

    double one = rank == size - 1 ? 42 : 0;
    environment.Wait(world->Bcast(&one, 1, DT_DOUBLE, size - 1, GT_DATA));
    expect(one == 42, "Bcast");
    double sum = -1;
    environment.Wait(world->Reduce(each.data(), &sum, 1, DT_DOUBLE, RT_SUM, 0, GT_GLOBAL));
    expect(rank != 0 || sum == 100 * n * (n - 1) / 2, "Reduce");
    environment.Wait(world->AllReduce(each.data(), &sum, 1, DT_DOUBLE, RT_MAX, GT_GLOBAL));
    expect(sum == from(size - 1, 0), "AllReduce");
    environment.Wait(world->AlltoAll(each.data(), 1, got.data(), DT_DOUBLE, GT_DATA));
    for (size_t p = 0; p < size; ++p) expect(got[p] == from(p, rank), "AlltoAll");
    environment.Wait(world->Gather(&each[1], 1, got.data(), DT_DOUBLE, 0, GT_DATA));
    for (size_t p = 0; rank == 0 && p < size; ++p) expect(got[p] == from(p, 1), "Gather");
    environment.Wait(world->AllGather(&each[1], 1, got.data(), DT_DOUBLE, GT_DATA));
    for (size_t p = 0; p < size; ++p) expect(got[p] == from(p, 1), "AllGather");
    environment.Wait(world->Scatter(each.data(), &sum, 1, DT_DOUBLE, 1, GT_DATA));
    expect(sum == from(1, rank), "Scatter");
    environment.Wait(world->ReduceScatter(each.data(), &sum, 1, DT_DOUBLE, RT_MIN, GT_DATA));
    expect(sum == from(0, rank), "ReduceScatter");

    // Rank p sends one element, the last rank two; bytes, with Test.
    std::vector<size_t> counts(size, 1), offsets(size), two(size, 2);
    counts[size - 1] = 2;
    for (size_t p = 0; p < size; ++p) offsets[p] = 2 * p;
    std::vector<char> text(2, static_cast<char>('a' + rank)), all(2 * size, '-');
    CommReq* request =
        world->AllGatherv(text.data(), counts[rank], all.data(), counts.data(), DT_BYTE, GT_DATA);
    for (bool complete = false; !complete;) environment.Test(request, &complete);
    for (size_t p = 0; p <= size; ++p)
      expect(all[p] == static_cast<char>('a' + (p < size ? p : size - 1)), "AllGatherv");
    auto* const shared = static_cast<char*>(environment.Alloc(2 * size, 4096));
    expect(reinterpret_cast<size_t>(shared) % 4096 == 0, "Alloc");
    std::memset(shared, 'a' + static_cast<int>(rank), 2 * size);
    environment.Wait(world->AlltoAllv(shared, two.data(), offsets.data(), all.data(), two.data(),
                                      offsets.data(), DT_BYTE, GT_DATA));
    for (size_t p = 0; p < 2 * size; ++p)
      expect(all[p] == static_cast<char>('a' + p / 2), "AlltoAllv");
    environment.Free(shared);
    world->Barrier(GT_GLOBAL);
  }
  environment.DeleteDistribution(world);
}

void colour(Environment& environment, size_t all, size_t rank) {
  expect(environment.GetProcessCount() == (all + 1 - rank % 2) / 2, "the size of a colour's world");
  Distribution* world = environment.CreateDistribution(environment.GetProcessCount(), 1);
  float sum = static_cast<float>(rank);
  environment.Wait(world->AllReduce(&sum, &sum, 1, DT_FLOAT, RT_SUM, GT_GLOBAL));
  float right = 0;
  for (size_t p = rank % 2; p < all; p += 2) right += static_cast<float>(p);
  expect(sum == right, "the sum over a colour's world");
}

void statistics(Environment& environment) {
  const size_t size = environment.GetProcessCount();
  Session* session = environment.CreateSession();
  session->SetGlobalMinibatchSize(size);
  OperationRegInfo* info = session->CreateOperationRegInfo(OT_BIAS);
  info->SetName("bias");
  info->AddInput(4, 5, DT_FLOAT);
  info->AddOutput(4, 5, DT_FLOAT);
  info->AddParameterSet(1000, 1, DT_DOUBLE);
  Operation* operation =
      session->GetOperation(session->AddOperation(info, environment.CreateDistribution(size, 1)));
  session->DeleteOperationRegInfo(info);
  session->Commit();
  expect(session->GetPhaseType() == PT_TRAIN && operation->GetOpType() == OT_BIAS &&
             std::string(operation->GetName()) == "bias",
         "the operation");
  expect(operation->GetSession() == session && session->GetOperationCount() == 1 &&
             operation->HasParameterSets(),
         "the session");
  Statistics* counts = session->GetStats();
  expect(counts->IsEnabled() && counts->IsStarted(), "started at Commit");
  std::vector<double> gradient(1000, 1);
  ParameterSet* parameters = operation->GetParameterSet(0);
  parameters->StartGradientComm(gradient.data());
  expect(parameters->WaitGradientComm() == gradient.data() &&
             gradient[999] == static_cast<double>(size),
         "the gradient");
  expect(counts->GetCommSize(0) == 8000 && counts->GetTotalCommSize() == 8000, "bytes");
  expect(counts->GetCommCycles(0) > 0 && counts->GetTotalCommCycles() == counts->GetCommCycles(0),
         "cycles");
  expect(counts->GetIsolationCommCycles(0) > 0 &&
             counts->GetTotalIsolationCommCycles() == counts->GetIsolationCommCycles(0),
         "cycles alone");
  expect(counts->GetComputeCycles(0) > 0 &&
             counts->GetTotalComputeCycles() == counts->GetComputeCycles(0),
         "computation");
  counts->Stop();
  counts->Reset();
  expect(!counts->IsStarted() && counts->GetTotalCommSize() == 0, "stopped and reset");
  session->RemoveOperations();
  environment.DeleteSession(session);
}

// Makes 300 kernels of one float in the data group of all ranks, quantised by the tests' library.
ParameterSet* quantised_parameters(Environment& environment, char* library) {
  char compress[] = "dl_comp_compress_buffer", decompress[] = "dl_comp_decompress_buffer",
       add[] = "dl_comp_compressed_buffer_reduce_sum";
  QuantParams params = {library, compress, decompress, add, 268, 256};
  environment.SetQuantizationParams(&params);
  const size_t size = environment.GetProcessCount();
  Session* session = environment.CreateSession();
  session->SetGlobalMinibatchSize(size);
  OperationRegInfo* info = session->CreateOperationRegInfo(OT_CC);
  info->AddInput(1, 1, DT_FLOAT);
  info->AddOutput(1, 1, DT_FLOAT);
  info->AddParameterSet(300, 1, DT_FLOAT, false, CT_QUANTIZATION);
  ParameterSet* parameters =
      session->GetOperation(session->AddOperation(info, environment.CreateDistribution(size, 1)))
          ->GetParameterSet(0);
  session->Commit();
  return parameters;
}

// Each start sends 0.4 of a quantum: rounded with the residual of the same buffer that gives 0, 1,
// 0, 1, 0 quanta. Without a residual it would be 0 always; with the other buffer's, too, 0, 0, 0.
void residual(Environment& environment, char* library) {
  const size_t size = environment.GetProcessCount();
  ParameterSet* const parameters = quantised_parameters(environment, library);
  expect(environment.GetQuantizationParams()->block_size == 268 &&
             environment.GetQuantizationParams()->lib_path != library,
         "a copy of the parameters");
  std::vector<float> buffers[2];
  for (int start = 0; start < 10; ++start) {
    std::vector<float>& gradient = buffers[start % 2];
    gradient.assign(300, 0.4f);
    gradient[0] = gradient[256] = 127;  // each block's quantum is 1
    parameters->StartGradientComm(gradient.data());
    parameters->WaitGradientComm();
    expect(gradient[0] == 127 * static_cast<float>(size), "the largest of a block");
    for (const size_t i : {1, 255, 257, 299})
      expect(gradient[i] == static_cast<float>(start / 2 % 2 * size),
             "what was lost, and what has come back");
  }
  // With a fresh buffer every time the error of one comes back in a later one.
  std::vector<std::vector<float>> fresh(40);
  float sum = 0;
  for (std::vector<float>& gradient : fresh) {
    gradient.assign(300, 0.4f);
    gradient[0] = gradient[256] = 127;
    parameters->StartGradientComm(gradient.data());
    parameters->WaitGradientComm();
    sum += gradient[1];
  }
  expect(sum >= 0.4f * 40 * static_cast<float>(size) * 0.8f, "nothing of fresh buffers is lost");
}

// The library makes progress while this program only reads the result: a thread of the library may
// be writing it, so no other program should do that.
template <class T>
__attribute__((no_sanitize("thread"))) T look_at(const volatile T& place) {
  return place;
}

template <class T>
void look_for(const volatile T& place, T value, const char* what) {
  constexpr auto kLongest = std::chrono::seconds(60);
  const auto begin = std::chrono::steady_clock::now();
  while (look_at(place) != value && std::chrono::steady_clock::now() - begin < kLongest) continue;
  expect(look_at(place) == value, what);
}

void servers(Environment& environment, char* library) {
  const size_t size = environment.GetProcessCount();
  const auto n = static_cast<float>(size);
  Distribution* world = environment.CreateDistribution(size, 1);
  std::vector<float> sum(300'000, 1), blocks(size, n), got(size, -1);
  CommReq* const request =
      world->AllReduce(sum.data(), sum.data(), sum.size(), DT_FLOAT, RT_SUM, GT_GLOBAL);
  look_for(sum.back(), n, "AllReduce without a call");
  std::vector<size_t> counts(size, 1), offsets(size);
  for (size_t p = 0; p < size; ++p) offsets[p] = p;
  CommReq* const other = world->AlltoAllv(blocks.data(), counts.data(), offsets.data(), got.data(),
                                          counts.data(), offsets.data(), DT_FLOAT, GT_GLOBAL);
  for (const float& block : got) look_for(block, n, "AlltoAllv without a call");
  environment.Wait(other);
  environment.Wait(request);
  ParameterSet* const parameters = quantised_parameters(environment, library);
  std::vector<float> gradient(300, 3);
  gradient[0] = gradient[256] = 127;  // each block's quantum is 1
  parameters->StartGradientComm(gradient.data());
  look_for(gradient.back(), 3 * n, "a quantised gradient without a call");
  parameters->WaitGradientComm();
  expect(gradient[0] == 127 * n && gradient[1] == 3 * n, "a quantised gradient");
}

// Counts this process's threads that run on `core` and nowhere else.
size_t threads_bound_to(int core) {
  size_t count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const entry = tasks == nullptr ? nullptr : readdir(tasks)) {
    std::ifstream status(std::string("/proc/self/task/") + entry->d_name + "/status");
    for (std::string word; status >> word;)
      if (word == "Cpus_allowed_list:") {
        status >> word;
        count += word == std::to_string(core);
        break;
      }
  }
  if (tasks != nullptr) closedir(tasks);
  return count;
}

int some_core() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int core = 0;
  while (core + 1 < CPU_SETSIZE && !CPU_ISSET(core, &set)) ++core;
  return core;
}

// Read from the launcher, because the world is split before a program can ask for it.
size_t number(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (const char* text = std::getenv(variable)) return static_cast<size_t>(std::atoi(text));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string test = argc > 1 ? argv[1] : "";
  Environment& environment = Environment::GetEnv();
  const size_t rank = number({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
  const size_t size = number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
  const int core = some_core();
  const size_t bound = threads_bound_to(core);
  if (test == "affinity") setenv("MLSL_SERVER_AFFINITY", std::to_string(core).c_str(), 1);
  if (test == "colour") environment.Configure(rank % 2 == 0 ? "color=0" : "color=1");
  environment.Init(&argc, &argv);
  if (test == "collectives") {
    collectives(environment);
  } else if (test == "colour") {
    colour(environment, size, rank);
  } else if (test == "statistics") {
    statistics(environment);
  } else if (test == "residual" && argc > 2) {
    residual(environment, argv[2]);
  } else if (test == "blocks" && argc > 2) {
    blocks(environment, static_cast<size_t>(std::atoi(argv[2])));
  } else if (test == "servers" && argc > 2) {
    servers(environment, argv[2]);
  } else if (test == "affinity") {
    expect(threads_bound_to(core) >= bound + 2, "two servers on the core of the list");
  } else if (test == "mistake") {
    Distribution* world = environment.CreateDistribution(environment.GetProcessCount(), 1);
    if (environment.GetProcessIdx() == 1) world->Bcast(nullptr, 1, DT_FLOAT, 99, GT_GLOBAL);
    world->Barrier(GT_GLOBAL);
    std::puts("still running");
  } else {
    return 2;
  }
  environment.Finalize();
  std::printf("calls %s: %s\n", test.c_str(), wrong == 0 ? "PASSED" : "FAILED");
  return wrong == 0 ? 0 : 1;
}
