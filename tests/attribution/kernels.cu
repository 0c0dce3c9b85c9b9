// What ends up in an extension's device code, one kernel of each linkage.
template <int N> __global__ void tiled(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] * N; }
template __global__ void tiled<32>(const float*, float*);
namespace {
__global__ void hidden(float* x) { *x = 1.0f; }
}
extern "C" __global__ void tril_kernel(float* x) { *x = 2.0f; }
static __device__ __noinline__ float helper(float x) { return x * x; }
__global__ void caller(float* x) { *x = helper(*x); }
void launch(float* x) {
  hidden<<<1, 1>>>(x);
  caller<<<1, 1>>>(x);
}
