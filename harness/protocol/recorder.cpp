// What the GPU ran, written down where the judge reads it: raw activity records of CUPTI, with no Python on their way.
//
// A worker opens the recorder before it imports a candidate. From then on it keeps the machine code of each module that is
// loaded into the GPU, as kernels are first launched. It is the process's one CUPTI subscriber, and a
// thread of its own does what the judge asks by a word of shared memory: an odd number begins a recording, an even one
// ends it. The worker's Python neither begins, ends nor reads one, and does the same whether there is one or not.
//
// CUPTI is the library that PyTorch has loaded: a second one would not work beside it. The few types of its interface that
// are needed are spelt out, so that no header of CUDA's is; a test holds them against cupti.h where that is installed.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

// The beginning of the shared region. `wanted` is the judge's, all else the recorder's.
struct Head {
  uint32_t wanted;    // the number of what is asked for: odd to begin a recording, even to end it
  uint32_t reached;   // the last of them that was done
  uint32_t is_open;   // 1 once this process has opened the recorder
  uint32_t step;      // the first step that CUPTI refused, one of `Step`; 0 for none
  uint32_t code;      // what it said
  uint32_t records;   // that lie behind the head
  uint32_t cut;       // that had no room there
  uint32_t dropped;   // that CUPTI had no room for
  uint64_t bytes;     // of the records
  uint32_t modules;   // that were loaded into the GPU and lie behind the records' room
  uint32_t untaken;   // that had no room there
  uint64_t module_bytes;
  uint8_t rest[8];
};
static_assert(sizeof(Head) == 64, "the judge reads these places");

enum Step { kNoLibrary = 1, kNoFunction, kSubscribe, kCallbacks, kEnable, kFlush, kDropped, kUnsubscribed, kThread };
enum Kind { kKernel = 1, kCopy, kFill, kLaunch, kGraphLaunch };  // the last two are calls of the driver's or runtime's

// One record; its name follows, filled up to whole words. `within` is a call's, the number of the call that it made,
// `bytes` a copy's or fill's, `way` from where to where a copy goes, as CUPTI counts that.
struct Record {
  uint32_t number, kind, correlation, stream;
  uint64_t start_ns, end_ns;
  union {
    int32_t grid[3];
    uint32_t bytes[2];  // low and high
  };
  union {
    int32_t block[3];
    uint32_t way;
  };
  union {
    uint32_t graph, within;
  };
  uint32_t name_bytes;
};
static_assert(sizeof(Record) == 64, "the judge reads these places");

// CUPTI's records, as far as they are read. Later versions have added at the end alone.
struct KernelActivity {
  uint32_t kind, settings[3];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], shared[2];
  uint32_t local[2], correlation;
  int64_t grid_id;
  const char* name;
  void* reserved;
  uint64_t queued, submitted;
  uint32_t launch_type, shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit, graph;
};
struct MemoryActivity {  // a copy or a fill
  uint32_t kind;
  uint8_t way, ends[3];  // of a copy; a fill has its value there
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
struct PeerCopyActivity {
  uint32_t kind;
  uint8_t way, ends[3];
  uint64_t bytes, start, end;
  uint32_t device, context, stream, others[4], correlation;
};
struct CallbackFacts {
  int32_t site;  // 0 where the call begins, 1 where it ends
  const char* function;
  const void* parameters;
  const int32_t* returned;
  const char* symbol;
  void* context;
  uint32_t context_id;
  uint64_t* shared;
  uint32_t correlation;
};
const uint32_t kMemcpy = 1, kMemset = 2, kLoneKernel = 3, kConcurrentKernel = 10, kMemcpyPeer = 22;
const uint32_t kActivities[] = {kConcurrentKernel, kMemcpy, kMemset, kMemcpyPeer};
const int kInvalidParameter = 1;
const uint32_t kForced = 1;
const int kDriver = 1, kRuntime = 2;

// Every call that launches a kernel, by its number in CUPTI's lists.
struct Call {
  int domain;
  uint32_t number;
  bool is_graph;
};
const Call kCalls[] = {
    {kDriver, 115, false},  {kDriver, 116, false},  {kDriver, 117, false},  // cuLaunch, cuLaunchGrid(Async)
    {kDriver, 307, false},  {kDriver, 442, false},                          // cuLaunchKernel
    {kDriver, 477, false},  {kDriver, 478, false},  {kDriver, 480, false},  // cuLaunchCooperativeKernel(MultiDevice)
    {kDriver, 652, false},  {kDriver, 653, false},                          // cuLaunchKernelEx
    {kDriver, 514, true},   {kDriver, 515, true},                           // cuGraphLaunch
    {kRuntime, 13, false},  {kRuntime, 213, false},                         // cudaLaunch
    {kRuntime, 211, false}, {kRuntime, 214, false},                         // cudaLaunchKernel
    {kRuntime, 269, false}, {kRuntime, 270, false}, {kRuntime, 272, false},  // cudaLaunchCooperativeKernel(MultiDevice)
    {kRuntime, 430, false}, {kRuntime, 431, false},                         // cudaLaunchKernelExC
    {kRuntime, 505, false}, {kRuntime, 506, false},                         // __cudaLaunchKernel
    {kRuntime, 311, true},  {kRuntime, 312, true},                          // cudaGraphLaunch
};

struct ModuleFacts {
  uint32_t number;
  size_t bytes;
  const char* cubin;
};
struct ResourceFacts {
  void* context;
  void* stream;
  const ModuleFacts* module;
};
const int kResource = 3;
const uint32_t kModuleLoaded = 6;

typedef void (*OnCall)(void*, int, uint32_t, const CallbackFacts*);
typedef void (*OnBufferWanted)(uint8_t**, size_t*, size_t*);
typedef void (*OnBufferFull)(void*, uint32_t, uint8_t*, size_t, size_t);

struct Cupti {
  int (*subscribe)(void**, OnCall, void*);
  int (*unsubscribe)(void*);
  int (*enable_callback)(uint32_t, void*, int, uint32_t);
  int (*register_buffers)(OnBufferWanted, OnBufferFull);
  int (*next_record)(uint8_t*, size_t, void**);
  int (*enable)(uint32_t);
  int (*disable)(uint32_t);
  int (*flush)(uint32_t);
  int (*count_dropped)(void*, uint32_t, size_t*);
};

const size_t kBufferBytes = 1 << 20;
const uint64_t kModuleRoom = 128 << 20;  // at the end of the region
Head* head;
uint64_t room_bytes;  // for records, behind the head
Cupti cupti;
void* subscriber;
bool is_recording;
pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
// Launching calls lie within each other, since the runtime's end in the driver's: how deep this thread is in, and the
// number of the one within the outermost.
__thread int depth;
__thread uint32_t within;

void refuse(uint32_t step, int code) {
  if (code == 0 || head->step != 0) return;
  head->code = code;
  head->step = step;
}

void write(Record record, const char* name) {
  const uint64_t length = name == NULL ? 0 : strlen(name);
  const uint64_t bytes = sizeof(Record) + (length + 7) / 8 * 8;
  pthread_mutex_lock(&writing);
  if (head->bytes + bytes > room_bytes) {
    ++head->cut;
  } else {
    uint8_t* place = reinterpret_cast<uint8_t*>(head + 1) + head->bytes;
    record.number = head->records++;
    record.name_bytes = length;
    memcpy(place, &record, sizeof(Record));
    memset(place + sizeof(Record), 0, bytes - sizeof(Record));
    if (length != 0) memcpy(place + sizeof(Record), name, length);
    head->bytes += bytes;
  }
  pthread_mutex_unlock(&writing);
}

// Keep the machine code of a module: its length, and itself filled up to whole words.
void keep_module(const ModuleFacts& module) {
  const uint64_t bytes = sizeof(uint64_t) + (module.bytes + 7) / 8 * 8;
  pthread_mutex_lock(&writing);
  if (module.cubin == NULL || module.bytes > kModuleRoom || head->module_bytes + bytes > kModuleRoom) {
    ++head->untaken;
  } else {
    uint8_t* place = reinterpret_cast<uint8_t*>(head + 1) + room_bytes + head->module_bytes;
    const uint64_t length = module.bytes;
    memcpy(place, &length, sizeof length);
    memcpy(place + sizeof length, module.cubin, module.bytes);
    head->module_bytes += bytes;
    ++head->modules;
  }
  pthread_mutex_unlock(&writing);
}

void on_call(void*, int domain, uint32_t number, const CallbackFacts* facts) {
  if (domain == kResource) {
    const ModuleFacts* module = reinterpret_cast<const ResourceFacts*>(facts)->module;
    if (number == kModuleLoaded && module != NULL) keep_module(*module);
    return;
  }
  if (facts->site == 0) {
    if (depth < 2) within = depth == 0 ? 0 : facts->correlation;
    ++depth;
    return;
  }
  if (depth > 0 && --depth > 0) return;
  if (!is_recording || facts->returned == NULL || *facts->returned != 0) return;
  Record record = {};
  record.kind = kLaunch;
  for (const Call& call : kCalls) {
    if (call.is_graph && call.domain == domain && call.number == number) record.kind = kGraphLaunch;
  }
  record.correlation = facts->correlation;
  record.within = within;
  write(record, NULL);
}

void on_buffer_wanted(uint8_t** buffer, size_t* bytes, size_t* most) {
  *buffer = static_cast<uint8_t*>(malloc(kBufferBytes));
  *bytes = *buffer == NULL ? 0 : kBufferBytes;
  *most = 0;
}

void keep(const void* activity) {
  Record record = {};
  const char* name = NULL;
  const uint32_t kind = *static_cast<const uint32_t*>(activity);
  if (kind == kConcurrentKernel || kind == kLoneKernel) {
    const KernelActivity* kernel = static_cast<const KernelActivity*>(activity);
    record.kind = kKernel;
    record.correlation = kernel->correlation;
    record.stream = kernel->stream;
    record.start_ns = kernel->start;
    record.end_ns = kernel->end;
    record.graph = kernel->graph;
    memcpy(record.grid, kernel->grid, sizeof record.grid);
    memcpy(record.block, kernel->block, sizeof record.block);
    name = kernel->name;
  } else if (kind == kMemcpy || kind == kMemset || kind == kMemcpyPeer) {
    const MemoryActivity* memory = static_cast<const MemoryActivity*>(activity);
    record.kind = kind == kMemset ? kFill : kCopy;
    record.stream = memory->stream;
    record.start_ns = memory->start;
    record.end_ns = memory->end;
    memcpy(record.bytes, &memory->bytes, sizeof record.bytes);
    if (record.kind == kCopy) record.way = memory->way;
    record.correlation = kind == kMemcpyPeer ? static_cast<const PeerCopyActivity*>(activity)->correlation
                                             : memory->correlation;
  } else {
    return;
  }
  write(record, name);
}

void on_buffer_full(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  void* activity = NULL;
  while (is_recording && valid != 0 && cupti.next_record(buffer, valid, &activity) == 0) keep(activity);
  free(buffer);
}

void switch_all(bool on) {
  if (on) refuse(kCallbacks, cupti.register_buffers(on_buffer_wanted, on_buffer_full));  // another's may have come
  for (const Call& call : kCalls) {
    const int code = cupti.enable_callback(on, subscriber, call.domain, call.number);
    if (code != kInvalidParameter) refuse(kCallbacks, code);  // a call that this CUPTI does not know
  }
  for (uint32_t kind : kActivities) refuse(kEnable, on ? cupti.enable(kind) : cupti.disable(kind));
}

// There is room for one subscriber: who can be a second has put the first away.
void refuse_unless_subscribed() {
  void* other = NULL;
  if (cupti.subscribe(&other, on_call, NULL) == 0) {
    cupti.unsubscribe(other);
    refuse(kUnsubscribed, -1);
  }
}

void end() {
  refuse_unless_subscribed();
  switch_all(false);
  refuse(kFlush, cupti.flush(kForced));
  size_t dropped = 0;
  refuse(kDropped, cupti.count_dropped(NULL, 0, &dropped));
  head->dropped = static_cast<uint32_t>(dropped);
  is_recording = false;
}

void begin() {
  if (is_recording) end();  // of a launch that failed
  head->records = head->cut = head->dropped = 0;
  head->bytes = 0;
  size_t dropped = 0;
  cupti.count_dropped(NULL, 0, &dropped);  // what was dropped before is nobody's loss
  refuse_unless_subscribed();
  is_recording = true;
  switch_all(true);
}

void* serve(void*) {
  switch_all(true);  // what CUPTI does at first, it does now
  switch_all(false);
  cupti.flush(kForced);
  for (;;) {
    const uint32_t wanted = __atomic_load_n(&head->wanted, __ATOMIC_ACQUIRE);
    if (wanted == head->reached) {
      usleep(1000);
      continue;
    }
    wanted % 2 ? begin() : end();
    __atomic_store_n(&head->reached, wanted, __ATOMIC_RELEASE);
  }
}

int note_cupti(struct dl_phdr_info* library, size_t, void* path) {
  if (strstr(library->dlpi_name, "/libcupti.so") == NULL) return 0;
  *static_cast<const char**>(path) = library->dlpi_name;
  return 1;
}

bool find_cupti() {
  const char* path = NULL;
  dl_iterate_phdr(note_cupti, &path);
  void* library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) {
    refuse(kNoLibrary, -1);
    return false;
  }
  const char* const names[] = {
      "cuptiSubscribe", "cuptiUnsubscribe", "cuptiEnableCallback", "cuptiActivityRegisterCallbacks",
      "cuptiActivityGetNextRecord", "cuptiActivityEnable", "cuptiActivityDisable", "cuptiActivityFlushAll",
      "cuptiActivityGetNumDroppedRecords",
  };
  static_assert(sizeof names / sizeof names[0] == sizeof(Cupti) / sizeof(void*), "a function for each name");
  void** functions = reinterpret_cast<void**>(&cupti);
  for (const char* name : names) {
    *functions = dlsym(library, name);
    if (*functions++ == NULL) refuse(kNoFunction, -1);
  }
  return head->step == 0;
}

void start_serving() {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for Python's threads
  refuse(kThread, pthread_create(&thread, NULL, serve, NULL));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

}  // namespace

// Subscribe, and serve the judge through `bytes` of the shared file from `offset` on. What goes wrong stands in the head.
extern "C" void recorder_open(int file, int64_t offset, int64_t bytes) {
  void* region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
  if (head != NULL || region == MAP_FAILED) return;
  head = static_cast<Head*>(region);
  room_bytes = bytes - sizeof(Head) - kModuleRoom;
  if (find_cupti()) {
    refuse(kSubscribe, cupti.subscribe(&subscriber, on_call, NULL));
    if (head->step == 0) refuse(kCallbacks, cupti.enable_callback(1, subscriber, kResource, kModuleLoaded));
    if (head->step == 0) start_serving();
  }
  __atomic_store_n(&head->is_open, 1, __ATOMIC_RELEASE);
}
