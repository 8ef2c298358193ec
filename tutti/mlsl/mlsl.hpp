#pragma once
// MLSL 1.0 on Tutti: the C++ interface of the Machine Learning Scaling Library. docs/mlsl.md says
// what it maps to and where it differs.
//
// A program registers its layers and their distribution over the processes; the library finds out
// which collective each activation, gradient and increment needs, plans them all at
// Session::Commit, and runs them when the program starts them.
//
//   Init -> CreateSession, CreateDistribution -> SetGlobalMinibatchSize -> for each layer:
//     CreateOperationRegInfo, AddInput, AddOutput,
//   AddParameterSet, AddOperation, SetPrev -> Commit -> minibatches: WaitComm, compute, StartComm
//     ... -> DeleteSession -> Finalize
//
// Not thread-safe: one thread calls it, the one that called Init. All processes make the same calls
// in the same order. Objects belong to the library. Counts, sizes and offsets are in elements of
// the data type unless bytes are named. Nothing throws: an error is printed as `MLSL: rank r:
// message` on stderr and ends all processes with exit code 1.

#include <cstddef>

#define MLSL_MAJOR_VERSION 1
#define MLSL_MINOR_VERSION 0
#define MLSL_VERSION(major, minor) (((major) << 16) | (minor))
#define MLSL_MAJOR(version) ((version) >> 16)
#define MLSL_MINOR(version) ((version)&0xFFFF)
#define MLSL_VERSION_GE(v1, v2) ((v1) >= (v2))
#define MLSL_VERSION_LT(v1, v2) ((v1) < (v2))

/// Marks the names that libmlsl.so exports.
#define MLSL_PUBLIC __attribute__((visibility("default")))
/// Objects are made by the library alone.
#define MLSL_OBJECT(Class)               \
 public:                                 \
  Class(const Class&) = delete;          \
  void operator=(const Class&) = delete; \
                                         \
 protected:                              \
  Class() {}                             \
  ~Class() {}

namespace MLSL {

/// A collective that was started; only its address means anything. Gone after Environment::Wait, or
/// after Test has said true.
typedef int CommReq;

enum DataType { DT_FLOAT = 0, DT_DOUBLE = 1, DT_BYTE = 2 };  // bytes can be moved, not reduced
enum PhaseType { PT_TRAIN = 0, PT_TEST = 1 };
enum GroupType { GT_DATA = 0, GT_MODEL = 1, GT_GLOBAL = 2 };
enum ReductionType { RT_SUM = 0, RT_MIN = 1, RT_MAX = 2 };
/// OT_CC: the output is a sum over input maps, so that of several model parts each has a partial
/// sum. All others cut their output as their input.
enum OpType {
  OT_CC = 0,
  OT_BIAS = 1,
  OT_ACT = 2,
  OT_POOL = 3,
  OT_SPLIT = 4,  // refused by Validate
  OT_CONCAT = 5,
  OT_BCAST = 6,
  OT_REDUCE = 7,  // refused by Validate
  OT_DATA = 8,    // no input
  OT_EVAL = 9     // no output
};
enum CompressionType { CT_NONE = 0, CT_QUANTIZATION = 1 };

/// A library that quantises gradients (docs/mlsl.md has the three functions' types):
/// `elem_in_block` floats become `block_size` bytes.
typedef struct {
  char* lib_path;
  char* quant_buffer_func_name;
  char* dequant_buffer_func_name;
  char* reduce_sum_func_name;
  size_t block_size;
  size_t elem_in_block;
} QuantParams;

/// Samples x feature maps of a local activation, contiguous in the communication buffer as
/// [sample][map][GetFmSize() elements].
class MLSL_PUBLIC CommBlockInfo {
  MLSL_OBJECT(CommBlockInfo)
 public:
  size_t GetMbOffset();  ///< first sample, of the local ones
  size_t GetMbCount();
  size_t GetFmOffset();  ///< first map, of the local ones
  size_t GetFmCount();
  size_t GetFmSize();
  DataType GetDataType();
  size_t GetBufOffset();  ///< elements, in the communication buffer
};

/// An input or output of an operation. Forward, the producer's output becomes the consumer's input;
/// backward, the gradient of that input becomes the gradient of that output.
class MLSL_PUBLIC Activation {
  MLSL_OBJECT(Activation)
 public:
  size_t GetGlobalFmCount();
  size_t GetGlobalFmOffset();  ///< first local map, of all
  size_t GetLocalFmCount();
  /// Blocks to pack before StartComm, and to unpack after WaitComm. None where nothing is
  /// exchanged, or before Commit.
  size_t GetPackBlockCount();
  size_t GetUnpackBlockCount();
  CommBlockInfo* GetPackBlock(size_t idx);
  CommBlockInfo* GetUnpackBlock(size_t idx);
  DataType GetDataType();
  size_t GetFmSize();
  /// Memory of the library for packed blocks, which peers of the node read in place. NULL where
  /// nothing is exchanged, or before Commit.
  void* GetCommBuf();
  size_t GetCommBufSize();  ///< bytes; 0 where nothing is exchanged
  /// Starts sending this activation's packed blocks in `buf`: GetCommBuf(), or any memory of the
  /// same size, which may not change before the connected activation's WaitComm. No-op where
  /// nothing is exchanged.
  void StartComm(void* buf);
  /// Waits for what the connected activation has started, and returns it packed; it stays valid
  /// until that is started again. NULL where nothing is exchanged: then the local elements of both
  /// sides are the same.
  void* WaitComm();
};

/// Weights or biases. The gradient is summed over the data group. Distributed update: each process
/// updates the kernels it owns, and gives the others its increment.
class MLSL_PUBLIC ParameterSet {
  MLSL_OBJECT(ParameterSet)
 public:
  size_t GetGlobalKernelCount();
  size_t GetGlobalKernelOffset();  ///< first local kernel, of all
  size_t GetLocalKernelCount();    ///< distributed update: with the padding that makes owned parts
                                   ///< equal. Buffers have this size
  size_t GetOwnedKernelCount();
  size_t GetOwnedKernelOffset();  ///< first owned kernel, of the local ones
  DataType GetDataType();
  size_t GetKernelSize();
  bool IsDistributedUpdate();
  /// buf: the gradient of all local kernels, which may not change before its completion.
  void StartGradientComm(void* buf);
  /// buf: all local kernels, of which the owned ones have been updated; not to be touched before
  /// completion. No-op without distributed update.
  void StartIncrementComm(void* buf);
  /// The sum: plain update: `buf`, which now holds it; distributed update: the owned kernels alone,
  /// in memory of the library, valid until the next start. NULL where there is one data part, or
  /// before any start.
  void* WaitGradientComm();
  /// The same when complete; otherwise NULL.
  void* TestGradientComm(bool* isCompleted);
  /// `buf`, which now holds all local kernels. NULL where nothing is exchanged, or before any
  /// start.
  void* WaitIncrementComm();
};

/// How processes share layers: data parts x model parts. And collectives over its groups: all
/// return at once (the first calls of a kind and size plan it, and wait for the others there);
/// buffers may not be touched before Environment::Wait. Roots and orders are indices in the group.
class MLSL_PUBLIC Distribution {
  MLSL_OBJECT(Distribution)
 public:
  size_t GetProcessIdx(GroupType groupType);
  size_t GetProcessCount(GroupType groupType);
  CommReq* Bcast(void* buffer, size_t count, DataType dataType, size_t rootIdx,
                 GroupType groupType);
  CommReq* Reduce(void* sendBuffer, void* recvBuffer, size_t count, DataType dataType,
                  ReductionType redType, size_t rootIdx, GroupType groupType);
  CommReq* AllReduce(void* sendBuffer, void* recvBuffer, size_t count, DataType dataType,
                     ReductionType redType, GroupType groupType);
  /// sendCount elements to each process.
  CommReq* AlltoAll(void* sendBuffer, size_t sendCount, void* recvBuffer, DataType dataType,
                    GroupType groupType);
  /// Offsets in elements. Not planned, because counts are each process's own; all processes of the
  /// group make their calls in the same order.
  CommReq* AlltoAllv(void* sendBuffer, size_t* sendCounts, size_t* sendOffsets, void* recvBuffer,
                     size_t* recvCounts, size_t* recvOffsets, DataType dataType,
                     GroupType groupType);
  CommReq* Gather(void* sendBuffer, size_t sendCount, void* recvBuffer, DataType dataType,
                  size_t rootIdx, GroupType groupType);
  CommReq* AllGather(void* sendBuffer, size_t sendCount, void* recvBuffer, DataType dataType,
                     GroupType groupType);
  /// recvCounts are the same on all processes; blocks follow each other without gaps.
  CommReq* AllGatherv(void* sendBuffer, size_t sendCount, void* recvBuffer, size_t* recvCounts,
                      DataType dataType, GroupType groupType);
  CommReq* Scatter(void* sendBuffer, void* recvBuffer, size_t recvCount, DataType dataType,
                   size_t rootIdx, GroupType groupType);
  CommReq* ReduceScatter(void* sendBuffer, void* recvBuffer, size_t recvCount, DataType dataType,
                         ReductionType redType, GroupType groupType);
  void Barrier(GroupType groupType);  ///< blocks
};

/// The description of an operation, for Session::AddOperation.
class MLSL_PUBLIC OperationRegInfo {
  MLSL_OBJECT(OperationRegInfo)
 public:
  void SetName(const char* name);
  /// Each returns the new one's index.
  size_t AddInput(size_t featureMapCount, size_t featureMapSize, DataType dataType);
  size_t AddOutput(size_t featureMapCount, size_t featureMapSize, DataType dataType);
  size_t AddParameterSet(size_t kernelCount, size_t kernelSize, DataType dataType,
                         bool distributedUpdate = false, CompressionType compressType = CT_NONE);
  /// Ends the job where the operation cannot be done: OT_SPLIT, OT_REDUCE, inputs or outputs the
  /// type has not, maps or kernels that `dist` cannot cut. AddOperation does it too.
  void Validate(Distribution* dist = NULL);
};

class Session;

/// A layer as this process has it.
class MLSL_PUBLIC Operation {
  MLSL_OBJECT(Operation)
 public:
  void SetDistribution(Distribution* dist);  ///< once; AddOperation with a distribution is that
  Distribution* GetDistribution();           ///< NULL before it is set
  Session* GetSession();
  OpType GetOpType();
  /// Connects input actIdx to output prevOpActIdx of `prev` (NULL: to nothing). The same as SetNext
  /// on the other side; before Commit. Both ends have as many elements a sample, and one data type.
  void SetPrev(Operation* prev, size_t actIdx, size_t prevOpActIdx);
  void SetNext(Operation* next, size_t actIdx, size_t nextOpActIdx);
  const char* GetName();
  size_t GetGlobalMinibatchSize();
  size_t GetLocalMinibatchSize();
  size_t GetGlobalMinibatchOffset();  ///< first local sample, of the minibatch
  size_t GetInputCount();
  Activation* GetInput(size_t idx);
  size_t GetOutputCount();
  Activation* GetOutput(size_t idx);
  bool HasParameterSets();
  size_t GetParameterSetCount();
  ParameterSet* GetParameterSet(size_t idx);
};

/// How long the exchanges of a session take; counts when MLSL_STATS=1, from Commit on. A cycle is a
/// nanosecond of the steady clock.
class MLSL_PUBLIC Statistics {
  MLSL_OBJECT(Statistics)
 public:
  void Start();
  void Stop();
  void Reset();
  bool IsStarted();
  bool IsEnabled();
  /// Appends the table to mlsl_stats.log, on process 0.
  void Print();
  /// Cycles of one minibatch's exchanges with nothing else going on: the mean of 6 runs at Commit.
  unsigned long long GetIsolationCommCycles(size_t opIdx);
  size_t GetCommSize(size_t opIdx);                ///< bytes given to collectives
  unsigned long long GetCommCycles(size_t opIdx);  ///< spent in Start, Wait and Test calls
  unsigned long long GetComputeCycles(
      size_t opIdx);  ///< spent before calls of this operation, outside the library
  unsigned long long GetTotalIsolationCommCycles();
  size_t GetTotalCommSize();
  unsigned long long GetTotalCommCycles();
  unsigned long long GetTotalComputeCycles();
};

/// A network.
class MLSL_PUBLIC Session {
  MLSL_OBJECT(Session)
 public:
  void SetGlobalMinibatchSize(size_t globalMinibatchSize);  ///< once
  size_t GetGlobalMinibatchSize();
  PhaseType GetPhaseType();
  OperationRegInfo* CreateOperationRegInfo(OpType opType);
  void DeleteOperationRegInfo(OperationRegInfo* info);  ///< legal once AddOperation has had it
  size_t AddOperation(OperationRegInfo* info, Distribution* dist = NULL);
  void RemoveOperations();
  size_t GetOperationCount();
  Operation* GetOperation(size_t idx);
  void Commit();  ///< once; plans every exchange
  Statistics* GetStats();
};

class MLSL_PUBLIC Environment {
  MLSL_OBJECT(Environment)
 public:
  static Environment& GetEnv();
  static int GetVersion();
  /// "color=N", before Init: processes with equal N are a world of their own.
  void Configure(const char* config = NULL);
  /// Starts MPI, or joins the one that the program has started: that one the program ends, after
  /// Finalize. Once MPI has ended, Init is an error: it cannot start again in the same process.
  void Init(int* argc, char** argv[]);
  /// Completes what is in flight, deletes what is left, ends MPI if Init has started it.
  void Finalize();
  bool IsInitialized();
  size_t GetProcessIdx();
  size_t GetProcessCount();
  Session* CreateSession(PhaseType phaseType = PT_TRAIN);
  void DeleteSession(Session* session);
  /// Process p of a replica of dataPartitions * modelPartitions processes has model index p %
  /// modelPartitions. The product must divide the number of processes; what is left over makes
  /// further replicas.
  Distribution* CreateDistribution(size_t dataPartitions, size_t modelPartitions);
  /// Processes with equal colours are a data group, or a model group.
  Distribution* CreateDistributionWithColors(int dataColor, int modelColor);
  void DeleteDistribution(Distribution* distribution);
  void Wait(CommReq* req);
  void Test(CommReq* req, bool* isCompleted);
  /// Not collective. Memory that processes of the node see, while MLSL_HEAP_SIZE_GB lasts, and
  /// private memory then. Alignment: a power of two.
  void* Alloc(size_t size, size_t alignment);
  void Free(void* ptr);
  /// Once, before Commit. Copies what it points to, and loads the library.
  void SetQuantizationParams(QuantParams* params);
  QuantParams* GetQuantizationParams();  ///< NULL before they are set
};

}  // namespace MLSL

#undef MLSL_OBJECT
