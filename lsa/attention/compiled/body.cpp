// Linear attention on CPUs, forwards and backwards, behind a plain C interface.
//
// kernel.inl holds the mathematics and is compiled once for each set of vector instructions that
// the processor's family has; the best that this processor knows is taken at the first call. Heads
// run in parallel, and where there are fewer of them than threads, parts of a head. The threads are
// lent by the caller.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#define INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define UNROLL _Pragma("GCC unroll 16")
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, ints{__VA_ARGS__})
#endif

namespace {

enum Map { IDENTITY, ELU_PLUS_ONE, RELU };
enum Name { Q, KEYS, VALUES, OUT, GRADIENT, DQ, DK, DV };  // tensors of a call, in its order

constexpr float RESET = -104.0f;  // exp of less is 0 in float32

// A tensor [B, T, H, D] with contiguous rows, and its other strides in numbers: float32 or, if
// `half`, bfloat16.
struct Tensor4 {
    char* data;
    int64_t batch, time, head, half;
};

// The causal sum of one kind, OUT or a gradient, over the tokens of a head, in the order of
// processing up to the chunk before `end`. Its outputs are written from the chunk `first` on.
struct Part {
    Name kind;
    int64_t b, h, first, end;
};

// torch_parallel_for of torch's stable interface, or null.
using Range = void (*)(int64_t, int64_t, void*);
using ParallelFor = int32_t (*)(int64_t, int64_t, int64_t, Range, void*);

// One call, as __init__.py packs it. C: tokens in a chunk. Pointers without a use are null.
struct Call {
    const struct Body* body;
    ParallelFor each;
    int64_t threads, B, T, H, K, V, C, map, normalize;
    float scale, eps;
    Tensor4 g;
    float *S, *z, *S_T, *z_T, *den;         // [B, H, K, V] and [B, H, K]; [B, T, H]
    float *dS_T, *dz_T, *dS, *dz, *dg;      // of a gradient alone; dg [B, T, H]
    Tensor4 x[DV + 1];                      // from GRADIENT on of a gradient alone
    float* states;                          // before every chunk, while dg is computed
    int64_t chunks() const { return (T + C - 1) / C; }
    int64_t row(const Part& p, int64_t t) const { return (p.b * T + t) * H + p.h; }
};

// The code for one instruction set. Without memory, causal_sum only says how many bytes it needs.
// state: floats of a state with its padding.
struct Body {
    const char* name;
    int64_t (*causal_sum)(const Call&, const Part&, char*), (*state)(const Call&);
};

#define STRING(x) #x
#if defined(__clang__)
#define BEGIN(target_name) \
    _Pragma(STRING(clang attribute push(__attribute__((target(target_name))), apply_to = function)))
#define END _Pragma("clang attribute pop")
#else
#define BEGIN(target_name) _Pragma("GCC push_options") _Pragma(STRING(GCC target(target_name)))
#define END _Pragma("GCC pop_options")
#endif

#if defined(__x86_64__)
BEGIN("avx2,fma")
namespace avx2 {
constexpr char NAME[] = "avx2";
constexpr int BYTES = 32, ROWS = 6, VECTORS = 2;
#include "kernel.inl"
}
END
BEGIN("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")
namespace avx512 {
constexpr char NAME[] = "avx512";
constexpr int BYTES = 64, ROWS = 8, VECTORS = 2;
#include "kernel.inl"
}
END
#elif defined(__aarch64__)
namespace neon {
constexpr char NAME[] = "neon";
constexpr int BYTES = 16, ROWS = 6, VECTORS = 4;
#include "kernel.inl"
}
#else
#error "no vector instructions of this processor's family are known here"
#endif

struct alignas(64) Line {
    char bytes[64];
};
using Memory = std::unique_ptr<Line[]>;
Memory memory_of(int64_t bytes) { return Memory(new Line[bytes / 64 + 1]); }

// Memory for this thread's sums. It is kept from call to call, unless a long chunk takes much.
constexpr int64_t KEPT = 1 << 23;
char* room_of(int64_t bytes, Memory& own) {
    thread_local Memory kept;
    thread_local int64_t size = 0;
    if (bytes > KEPT) return (own = memory_of(bytes))[0].bytes;
    if (bytes > size) kept = memory_of(bytes), size = bytes;
    return kept[0].bytes;
}

constexpr double WORTH = 1 << 19;  // multiply-adds; a thread is not woken for fewer

// Sums of these kinds over each head, in parallel. Where they leave threads idle, a head is cut into
// at most four parts. Each part first sums what comes before it. We assume that this takes a third
// of the time of as many own tokens. Then parts that shrink by a third end together.
// Raises bad_alloc, but never through the caller's threads, whose interface is C.
void sums(const Call& c, std::initializer_list<Name> kinds) {
    const int64_t heads = c.B * c.H, n = heads * int64_t(kinds.size()), N = c.chunks();
    // We count the reading and writing of a state as eight tokens.
    const double work = 2.0 * double(c.T + 8) * c.K * c.V + 0.5 * c.T * c.C * (c.K + c.V);
    const int64_t idle = c.threads / std::max<int64_t>(n, 1), worth = int64_t(work / WORTH);
    const int64_t parts = std::max<int64_t>(1, std::min({idle, N / 4, worth, int64_t(4)}));
    static constexpr int64_t AT[] = {0, 27, 27 + 18, 27 + 18 + 12, 27 + 18 + 12 + 8};
    auto begin = [&](int64_t part) { return (N * AT[part] + AT[parts] - 1) / AT[parts]; };
    const int64_t grain = std::max<int64_t>(1, int64_t(WORTH / work));
    int64_t bytes = 0;
    for (Name kind : kinds) bytes = std::max(bytes, c.body->causal_sum(c, {kind}, nullptr));
    std::atomic<bool> failed{false};
    auto some = [&](int64_t i, int64_t end) {
        try {
            Memory own;
            char* room = room_of(bytes, own);
            for (; i < end; ++i) {
                const int64_t head = i / parts % heads, p = i % parts;
                const Name kind = kinds.begin()[i / parts / heads];
                c.body->causal_sum(c, {kind, head / c.H, head % c.H, begin(p), begin(p + 1)}, room);
            }
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    };
    auto run = [](int64_t first, int64_t end, void* given) {
        (*static_cast<decltype(some)*>(given))(first, end);
    };
    if (c.threads < 2 || n * parts < 2) some(0, n * parts);
    else if (c.each(0, n * parts, grain, run, &some)) failed = true;
    if (failed) throw std::bad_alloc();
}
}  // namespace

extern "C" {
// The digest of the sources that this was built from.
const char* lsa_sources() { return SOURCES; }
// The best body that this processor runs, or that of this name; null where there is none.
const void* lsa_body(const char* wanted) {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    const Body* bodies[] = {avx512 ? &avx512::body : nullptr, avx2 ? &avx2::body : nullptr};
#elif defined(__aarch64__)
    const Body* bodies[] = {&neon::body};
#endif
    for (const Body* body : bodies)
        if (body && (!wanted || !std::strcmp(wanted, body->name))) return body;
    return nullptr;
}
// A `Call`, of which the first `size` bytes are given. 0, or 1 where there is no memory.
int lsa_run(const void* given, int64_t size) {
    Call call{};
    std::memcpy(&call, given, size);
    if (!call.each) call.threads = 1;
    try {
        if (size <= int64_t(offsetof(Call, x[GRADIENT]))) sums(call, {OUT});
        else if (!call.dg) sums(call, {DQ, DK, DV});
        else {
            // dg is summed in short chunks, but keeps a state for each.
            call.C = std::min(std::max<int64_t>(call.T, 1), std::clamp<int64_t>(call.C, 32, 64));
            const int64_t numbers = call.B * call.H * call.chunks() * call.body->state(call);
            const Memory memory = memory_of(4 * numbers);
            call.states = reinterpret_cast<float*>(memory.get());
            sums(call, {DQ});
            sums(call, {DK, DV});  // dk completes dg
        }
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}
}
