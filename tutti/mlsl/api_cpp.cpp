// The public classes of mlsl.hpp: each call is forwarded to the class of tutti::mlsl behind the
// object, and an exception ends the job.

#include "tutti/mlsl/entry.h"

namespace MLSL {
namespace {

namespace own = tutti::mlsl;
using tutti::comm::Collective;

own::CommBlockInfo& of(CommBlockInfo* object) { return static_cast<own::CommBlockInfo&>(*object); }
own::Activation& of(Activation* object) { return static_cast<own::Activation&>(*object); }
own::ParameterSet& of(ParameterSet* object) { return static_cast<own::ParameterSet&>(*object); }
own::Distribution& of(Distribution* object) { return static_cast<own::Distribution&>(*object); }
own::OperationRegInfo& of(OperationRegInfo* object) {
  return static_cast<own::OperationRegInfo&>(*object);
}
own::Operation& of(Operation* object) { return static_cast<own::Operation&>(*object); }
own::Statistics& of(Statistics* object) { return static_cast<own::Statistics&>(*object); }
own::Session& of(Session* object) { return static_cast<own::Session&>(*object); }
own::Environment& of(Environment* object) { return static_cast<own::Environment&>(*object); }
own::Distribution* or_null(Distribution* object) {
  return object == nullptr ? nullptr : &of(object);
}
own::Operation* or_null(Operation* object) { return object == nullptr ? nullptr : &of(object); }
using own::guarded;
using Tally = own::Statistics::Tally;

}  // namespace

size_t CommBlockInfo::GetMbOffset() { return of(this).block().samples.begin; }
size_t CommBlockInfo::GetMbCount() { return of(this).block().samples.count; }
size_t CommBlockInfo::GetFmOffset() { return of(this).block().maps.begin; }
size_t CommBlockInfo::GetFmCount() { return of(this).block().maps.count; }
size_t CommBlockInfo::GetFmSize() { return of(this).block().map_size; }
DataType CommBlockInfo::GetDataType() { return of(this).type(); }
size_t CommBlockInfo::GetBufOffset() { return of(this).block().buffer_offset; }

size_t Activation::GetGlobalFmCount() { return of(this).info().maps; }
size_t Activation::GetGlobalFmOffset() { return of(this).local_maps().begin; }
size_t Activation::GetLocalFmCount() { return of(this).local_maps().count; }
size_t Activation::GetPackBlockCount() { return of(this).pack_blocks().size(); }
size_t Activation::GetUnpackBlockCount() { return of(this).unpack_blocks().size(); }
CommBlockInfo* Activation::GetPackBlock(size_t idx) {
  return guarded([&] { return &of(this).pack_block(idx); });
}
CommBlockInfo* Activation::GetUnpackBlock(size_t idx) {
  return guarded([&] { return &of(this).unpack_block(idx); });
}
DataType Activation::GetDataType() { return of(this).info().type; }
size_t Activation::GetFmSize() { return of(this).info().map_size; }
void* Activation::GetCommBuf() { return of(this).buffer(); }
size_t Activation::GetCommBufSize() { return of(this).buffer_bytes(); }
void Activation::StartComm(void* buf) {
  guarded([&] { of(this).start(buf); });
}
void* Activation::WaitComm() {
  return guarded([&] { return of(this).wait(); });
}

size_t ParameterSet::GetGlobalKernelCount() { return of(this).info().all.kernels; }
size_t ParameterSet::GetGlobalKernelOffset() { return of(this).share().local.begin; }
size_t ParameterSet::GetLocalKernelCount() { return of(this).local_kernels(); }
size_t ParameterSet::GetOwnedKernelCount() { return of(this).share().owned.count; }
size_t ParameterSet::GetOwnedKernelOffset() { return of(this).share().owned.begin; }
DataType ParameterSet::GetDataType() { return of(this).info().type; }
size_t ParameterSet::GetKernelSize() { return of(this).info().all.kernel_size; }
bool ParameterSet::IsDistributedUpdate() { return of(this).info().all.distributed_update; }
void ParameterSet::StartGradientComm(void* buf) {
  guarded([&] { of(this).start_gradient(buf); });
}
void ParameterSet::StartIncrementComm(void* buf) {
  guarded([&] { of(this).start_increment(buf); });
}
void* ParameterSet::WaitGradientComm() {
  return guarded([&] { return of(this).wait_gradient(); });
}
void* ParameterSet::TestGradientComm(bool* isCompleted) {
  return guarded([&] {
    own::demand(isCompleted != nullptr, "TestGradientComm: nowhere to put the answer");
    return of(this).test_gradient(*isCompleted);
  });
}
void* ParameterSet::WaitIncrementComm() {
  return guarded([&] { return of(this).wait_increment(); });
}

size_t Distribution::GetProcessIdx(GroupType groupType) {
  return guarded([&] { return of(this).process_index(groupType); });
}
size_t Distribution::GetProcessCount(GroupType groupType) {
  return guarded([&] { return of(this).process_count(groupType); });
}
CommReq* Distribution::Bcast(void* buffer, size_t count, DataType dataType, size_t rootIdx,
                             GroupType groupType) {
  return guarded([&] { return of(this).broadcast(buffer, count, dataType, rootIdx, groupType); });
}
CommReq* Distribution::Reduce(void* sendBuffer, void* recvBuffer, size_t count, DataType dataType,
                              ReductionType redType, size_t rootIdx, GroupType groupType) {
  return guarded([&] {
    return of(this).start({Collective::reduce, count, dataType, groupType, redType, rootIdx},
                          sendBuffer, recvBuffer);
  });
}
CommReq* Distribution::AllReduce(void* sendBuffer, void* recvBuffer, size_t count,
                                 DataType dataType, ReductionType redType, GroupType groupType) {
  return guarded([&] {
    return of(this).start({Collective::allreduce, count, dataType, groupType, redType}, sendBuffer,
                          recvBuffer);
  });
}
CommReq* Distribution::AlltoAll(void* sendBuffer, size_t sendCount, void* recvBuffer,
                                DataType dataType, GroupType groupType) {
  return guarded([&] {
    return of(this).start_equal({Collective::all_to_all, sendCount, dataType, groupType},
                                sendBuffer, recvBuffer);
  });
}
CommReq* Distribution::AlltoAllv(void* sendBuffer, size_t* sendCounts, size_t* sendOffsets,
                                 void* recvBuffer, size_t* recvCounts, size_t* recvOffsets,
                                 DataType dataType, GroupType groupType) {
  return guarded([&] {
    return of(this).all_to_all_blocks(sendBuffer, {sendCounts, sendOffsets}, recvBuffer,
                                      {recvCounts, recvOffsets}, dataType, groupType);
  });
}
CommReq* Distribution::Gather(void* sendBuffer, size_t sendCount, void* recvBuffer,
                              DataType dataType, size_t rootIdx, GroupType groupType) {
  return guarded([&] {
    return of(this).start_equal(
        {Collective::gather, sendCount, dataType, groupType, RT_SUM, rootIdx}, sendBuffer,
        recvBuffer);
  });
}
CommReq* Distribution::AllGather(void* sendBuffer, size_t sendCount, void* recvBuffer,
                                 DataType dataType, GroupType groupType) {
  return guarded([&] {
    return of(this).start_equal({Collective::allgather, sendCount, dataType, groupType}, sendBuffer,
                                recvBuffer);
  });
}
CommReq* Distribution::AllGatherv(void* sendBuffer, size_t sendCount, void* recvBuffer,
                                  size_t* recvCounts, DataType dataType, GroupType groupType) {
  return guarded([&] {
    return of(this).allgather_parts(sendBuffer, sendCount, recvBuffer, recvCounts, dataType,
                                    groupType);
  });
}
CommReq* Distribution::Scatter(void* sendBuffer, void* recvBuffer, size_t recvCount,
                               DataType dataType, size_t rootIdx, GroupType groupType) {
  return guarded([&] {
    return of(this).start_equal(
        {Collective::scatter, recvCount, dataType, groupType, RT_SUM, rootIdx}, sendBuffer,
        recvBuffer);
  });
}
CommReq* Distribution::ReduceScatter(void* sendBuffer, void* recvBuffer, size_t recvCount,
                                     DataType dataType, ReductionType redType,
                                     GroupType groupType) {
  return guarded([&] {
    return of(this).start_equal(
        {Collective::reduce_scatter, recvCount, dataType, groupType, redType}, sendBuffer,
        recvBuffer);
  });
}
void Distribution::Barrier(GroupType groupType) {
  guarded([&] { of(this).barrier(groupType); });
}

void OperationRegInfo::SetName(const char* name) { of(this).set_name(name); }
size_t OperationRegInfo::AddInput(size_t featureMapCount, size_t featureMapSize,
                                  DataType dataType) {
  return guarded([&] { return of(this).add_input({featureMapCount, featureMapSize, dataType}); });
}
size_t OperationRegInfo::AddOutput(size_t featureMapCount, size_t featureMapSize,
                                   DataType dataType) {
  return guarded([&] { return of(this).add_output({featureMapCount, featureMapSize, dataType}); });
}
size_t OperationRegInfo::AddParameterSet(size_t kernelCount, size_t kernelSize, DataType dataType,
                                         bool distributedUpdate, CompressionType compressType) {
  return guarded([&] {
    return of(this).add_parameters(
        {{kernelCount, kernelSize, distributedUpdate}, dataType, compressType});
  });
}
void OperationRegInfo::Validate(Distribution* dist) {
  guarded([&] { of(this).validate(or_null(dist)); });
}

void Operation::SetDistribution(Distribution* dist) {
  guarded([&] { of(this).set_distribution(own::shared(or_null(dist))); });
}
Distribution* Operation::GetDistribution() { return of(this).distribution(); }
Session* Operation::GetSession() { return &of(this).session(); }
OpType Operation::GetOpType() { return of(this).description().type; }
void Operation::SetPrev(Operation* prev, size_t actIdx, size_t prevOpActIdx) {
  guarded([&] { of(this).set_previous(or_null(prev), actIdx, prevOpActIdx); });
}
void Operation::SetNext(Operation* next, size_t actIdx, size_t nextOpActIdx) {
  guarded([&] { of(this).set_next(or_null(next), actIdx, nextOpActIdx); });
}
const char* Operation::GetName() { return of(this).description().name.c_str(); }
size_t Operation::GetGlobalMinibatchSize() {
  return guarded([&] { return of(this).session().minibatch(); });
}
size_t Operation::GetLocalMinibatchSize() {
  return guarded([&] { return of(this).samples().count; });
}
size_t Operation::GetGlobalMinibatchOffset() {
  return guarded([&] { return of(this).samples().begin; });
}
size_t Operation::GetInputCount() { return of(this).input_count(); }
Activation* Operation::GetInput(size_t idx) {
  return guarded([&] { return &of(this).input(idx); });
}
size_t Operation::GetOutputCount() { return of(this).output_count(); }
Activation* Operation::GetOutput(size_t idx) {
  return guarded([&] { return &of(this).output(idx); });
}
bool Operation::HasParameterSets() { return of(this).parameter_count() > 0; }
size_t Operation::GetParameterSetCount() { return of(this).parameter_count(); }
ParameterSet* Operation::GetParameterSet(size_t idx) {
  return guarded([&] { return &of(this).parameters(idx); });
}

void Statistics::Start() { of(this).start(); }
void Statistics::Stop() { of(this).stop(); }
void Statistics::Reset() { of(this).reset(); }
bool Statistics::IsStarted() { return of(this).started(); }
bool Statistics::IsEnabled() { return of(this).enabled(); }
void Statistics::Print() {
  guarded([&] { of(this).print(); });
}
unsigned long long Statistics::GetIsolationCommCycles(size_t opIdx) {
  return of(this).of_operation(opIdx, &Tally::isolated);
}
size_t Statistics::GetCommSize(size_t opIdx) { return of(this).of_operation(opIdx, &Tally::bytes); }
unsigned long long Statistics::GetCommCycles(size_t opIdx) {
  return of(this).of_operation(opIdx, &Tally::cycles);
}
unsigned long long Statistics::GetComputeCycles(size_t opIdx) { return of(this).compute(opIdx); }
unsigned long long Statistics::GetTotalIsolationCommCycles() {
  return of(this).total(&Tally::isolated);
}
size_t Statistics::GetTotalCommSize() { return of(this).total(&Tally::bytes); }
unsigned long long Statistics::GetTotalCommCycles() { return of(this).total(&Tally::cycles); }
unsigned long long Statistics::GetTotalComputeCycles() { return of(this).total_compute(); }

void Session::SetGlobalMinibatchSize(size_t globalMinibatchSize) {
  guarded([&] { of(this).set_minibatch(globalMinibatchSize); });
}
size_t Session::GetGlobalMinibatchSize() {
  return guarded([&] { return of(this).minibatch(); });
}
PhaseType Session::GetPhaseType() { return of(this).phase(); }
OperationRegInfo* Session::CreateOperationRegInfo(OpType opType) {
  return guarded([&] { return &of(this).create_description(opType); });
}
void Session::DeleteOperationRegInfo(OperationRegInfo* info) {
  guarded([&] { of(this).remove_description(info == nullptr ? nullptr : &of(info)); });
}
size_t Session::AddOperation(OperationRegInfo* info, Distribution* dist) {
  return guarded([&] {
    own::demand(info != nullptr, "AddOperation without a description");
    return of(this).add(of(info), own::shared(or_null(dist)));
  });
}
void Session::RemoveOperations() {
  guarded([&] { of(this).remove_operations(); });
}
size_t Session::GetOperationCount() { return of(this).operation_count(); }
Operation* Session::GetOperation(size_t idx) {
  return guarded([&] { return &of(this).operation(idx); });
}
void Session::Commit() {
  guarded([&] { of(this).commit(); });
}
Statistics* Session::GetStats() { return &of(this).statistics(); }

Environment& Environment::GetEnv() { return own::process_environment(); }
int Environment::GetVersion() { return MLSL_VERSION(MLSL_MAJOR_VERSION, MLSL_MINOR_VERSION); }
void Environment::Configure(const char* config) {
  guarded([&] { of(this).configure(config); });
}
void Environment::Init(int*, char***) {
  guarded([&] { of(this).init(); });
}
void Environment::Finalize() {
  guarded([&] { of(this).finalize(); });
}
bool Environment::IsInitialized() { return of(this).initialized(); }
size_t Environment::GetProcessIdx() {
  return guarded([&] { return of(this).process_index(); });
}
size_t Environment::GetProcessCount() {
  return guarded([&] { return of(this).process_count(); });
}
Session* Environment::CreateSession(PhaseType phaseType) {
  return guarded([&] { return &of(this).create_session(phaseType); });
}
void Environment::DeleteSession(Session* session) {
  guarded([&] { of(this).remove_session(session == nullptr ? nullptr : &of(session)); });
}
Distribution* Environment::CreateDistribution(size_t dataPartitions, size_t modelPartitions) {
  return guarded([&] { return &of(this).create_distribution(dataPartitions, modelPartitions); });
}
Distribution* Environment::CreateDistributionWithColors(int dataColor, int modelColor) {
  return guarded([&] { return &of(this).create_distribution({dataColor, modelColor}); });
}
void Environment::DeleteDistribution(Distribution* distribution) {
  guarded([&] { of(this).remove_distribution(or_null(distribution)); });
}
void Environment::Wait(CommReq* req) {
  guarded([&] { of(this).requests().wait(req); });
}
void Environment::Test(CommReq* req, bool* isCompleted) {
  guarded([&] {
    own::demand(isCompleted != nullptr, "Test: nowhere to put the answer");
    *isCompleted = of(this).requests().test(req);
  });
}
void* Environment::Alloc(size_t size, size_t alignment) {
  return guarded([&] { return of(this).allocate(size, alignment); });
}
void Environment::Free(void* ptr) {
  guarded([&] { of(this).free(ptr); });
}
void Environment::SetQuantizationParams(QuantParams* params) {
  guarded([&] { of(this).set_quantization(params); });
}
QuantParams* Environment::GetQuantizationParams() { return of(this).quantization(); }

}  // namespace MLSL
