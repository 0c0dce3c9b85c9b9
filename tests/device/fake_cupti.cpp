// A CUPTI that a test scripts: it calls back for launches and hands over records as the true one does, from no GPU.

#include <stdint.h>
#include <string.h>

#include <string>
#include <utility>
#include <set>
#include <vector>

struct Facts {
  int32_t site;
  const char* function;
  const void* parameters;
  const int32_t* returned;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* shared;
  uint32_t correlation;
};
typedef void (*OnCall)(void*, int, uint32_t, const Facts*);
typedef void (*Wanted)(uint8_t**, size_t*, size_t*);
typedef void (*Full)(void*, uint32_t, uint8_t*, size_t, size_t);

static const size_t kKernelBytes = 216, kMemoryBytes = 96;
static OnCall on_call;
static Wanted wanted;
static Full full;
static std::set<std::pair<int, uint32_t>> watched;
static std::set<uint32_t> kinds;
static std::vector<std::vector<uint8_t>> records;
static std::set<std::string> names;
static size_t lost;
static uint32_t correlation;
static int refuses;  // what cuptiActivityEnable says
static int bears_inner;  // whether a kernel bears the number of the driver's call

template <class T>
static void put(std::vector<uint8_t>& record, size_t at, T value) { memcpy(record.data() + at, &value, sizeof value); }

static void call(int domain, uint32_t number, int32_t site, uint32_t id, int32_t returned) {
  Facts facts = {site, "", nullptr, &returned, "", nullptr, 0, nullptr, id};
  if (on_call && watched.count({domain, number})) on_call(nullptr, domain, number, &facts);
}

static void record(uint32_t kind, const char* name, uint64_t start, uint64_t end, uint32_t id) {
  if (!kinds.count(kind)) return;
  std::vector<uint8_t> made(kind == 10 ? kKernelBytes : kMemoryBytes);
  put(made, 0, kind);
  put(made, 16, start);
  put(made, 24, end);
  put(made, kind == 10 ? 48 : 40, uint32_t{7});
  put(made, kind == 10 ? 92 : 44, id);
  if (kind == 10) put(made, 104, names.insert(name).first->c_str());
  records.push_back(made);
}

extern "C" {

int cuptiSubscribe(void** subscriber, OnCall function, void*) {
  if (on_call) return 39;
  on_call = function;
  *subscriber = &on_call;
  return 0;
}
int cuptiUnsubscribe(void*) { on_call = nullptr; watched.clear(); return 0; }
int cuptiEnableCallback(uint32_t on, void*, int domain, uint32_t number) {
  if (number > 600 && domain == 2) return 1;
  if (on) watched.insert({domain, number}); else watched.erase({domain, number});
  return 0;
}
int cuptiActivityRegisterCallbacks(Wanted first, Full second) { wanted = first; full = second; return 0; }
int cuptiActivityEnable(uint32_t kind) { if (!refuses) kinds.insert(kind); return refuses; }
int cuptiActivityDisable(uint32_t kind) { kinds.erase(kind); return 0; }
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* count) { *count = lost; lost = 0; return 0; }
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** last) {
  const uint32_t kind = *last ? *static_cast<uint32_t*>(*last) : 0;
  uint8_t* next = *last ? static_cast<uint8_t*>(*last) + (kind == 10 ? kKernelBytes : kMemoryBytes) : buffer;
  if (next >= buffer + valid) return 12;
  *last = next;
  return 0;
}
int cuptiActivityFlushAll(uint32_t) {
  for (size_t at = 0; at < records.size();) {
    uint8_t* buffer = nullptr;
    size_t room = 0, most = 0, used = 0;
    wanted(&buffer, &room, &most);
    for (; at < records.size() && used + records[at].size() <= room; ++at) {
      memcpy(buffer + used, records[at].data(), records[at].size());
      used += records[at].size();
    }
    full(nullptr, 0, buffer, room, used);
  }
  records.clear();
  return 0;
}
int cuptiFinalize() {
  cuptiUnsubscribe(nullptr);
  kinds.clear();
  records.clear();
  return 0;
}

// A launch by the runtime, which ends in the driver's own; one that `fails` launches nothing.
void fake_launch(const char* name, uint64_t start, uint64_t end, int fails) {
  const uint32_t outer = ++correlation, inner = ++correlation;
  call(2, 211, 0, outer, 0);
  call(1, 307, 0, inner, 0);
  if (!fails) record(10, name, start, end, bears_inner ? inner : outer);
  call(1, 307, 1, inner, fails);
  call(2, 211, 1, outer, fails);
}
// A graph of two kernels by the driver's call.
void fake_graph(const char* name, uint64_t start, uint64_t end) {
  const uint32_t id = ++correlation;
  call(1, 514, 0, id, 0);
  record(10, name, start, (start + end) / 2, id);
  record(10, name, (start + end) / 2, end, id);
  call(1, 514, 1, id, 0);
}
// A module is loaded into the GPU.
void fake_module(const char* cubin, size_t bytes) {
  struct { uint32_t number; size_t bytes; const char* cubin; } module = {1, bytes, cubin};
  struct { void* context; void* stream; void* module; } resource = {nullptr, nullptr, &module};
  if (on_call && watched.count({3, 6})) on_call(nullptr, 3, 6, reinterpret_cast<const Facts*>(&resource));
}
void fake_fill(uint64_t start, uint64_t end) { record(2, "", start, end, ++correlation); }
void fake_kernel_alone(const char* name, uint64_t start, uint64_t end) { record(10, name, start, end, ++correlation); }
void fake_lose(size_t count) { lost += count; }
void fake_bear_inner() { bears_inner = 1; }
void fake_refuse(int code) { refuses = code; }
void fake_reset() { cuptiFinalize(); lost = 0; refuses = bears_inner = 0; wanted = nullptr; full = nullptr; }
}
