// Linear attention on CPUs, forwards and backwards, behind a plain C interface.
//
// kernel.inl holds the mathematics and is compiled once for each set of vector instructions that
// the processor's family has; the best that this processor knows is taken at the first call. Heads
// run in parallel, and where there are fewer of them than threads, parts of a head: their sums
// first, then each part from the state before it. The threads are lent by the caller.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#define INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

namespace {

enum Map { IDENTITY, ELU_PLUS_ONE, RELU };
enum Mode { CHUNKED, RECURRENT };

constexpr double RESET = -104.0;  // exp of less is 0 in float32

// Numbers of a tensor [B, T, H, D] whose rows are contiguous, and how far apart these are.
struct Tensor4 {
    float* data;
    int64_t batch, time, head;
};

// All of a call. eager.py's names; C: tokens of a chunk; what has no use is null.
struct Call {
    int64_t B, T, H, K, V, C, mode, map, normalize;
    float scale, eps;
    Tensor4 q, k, v, g, o, d_o, dq, dk, dv;
    float *den;                  // [B, T, H]
    float *S, *z, *S_T, *z_T;    // [B, H, K, V] and [B, H, K]
    float *dS_T, *dz_T, *dS, *dz;
    float *dg, *read, *written;  // [B, T, H]
    float *states, *through;     // of every chunk, while dg is computed
    int64_t chunks() const { return (T + C - 1) / C; }
};

// Tokens start .. start + length of one head, the state before them, and where the one after goes.
// Backwards in time R, m are the gradient of the state after them; the one before goes there.
struct Part {
    int64_t b, h, start, length;
    const float *S, *z, *R, *m;
    float *S_after, *z_after, *left;
    bool backwards;
    int64_t row(const Call& c, int64_t t) const { return (b * c.T + start + t) * c.H + h; }
};

using Work = void (*)(const Call&, const Part&, char*);

// What one instruction set brings. room: bytes that any of the functions needs;
// state: numbers of S and z, padded.
struct Body {
    const char* name;
    Work forward, forward_by_token, sums, queries, keys, queries_by_token, keys_by_token;
    int64_t (*room)(const Call&), (*state)(const Call&);
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
#define NAME "avx2"
#define BYTES 32
#define ROWS 6
#define VECTORS 2
#include "kernel.inl"
#undef NAME
#undef BYTES
#undef ROWS
#undef VECTORS
}
END
BEGIN("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")
namespace avx512 {
#define NAME "avx512"
#define BYTES 64
#define ROWS 8
#define VECTORS 2
#include "kernel.inl"
#undef NAME
#undef BYTES
#undef ROWS
#undef VECTORS
}
END
#elif defined(__aarch64__)
namespace neon {
#define NAME "neon"
#define BYTES 16
#define ROWS 6
#define VECTORS 4
#include "kernel.inl"
#undef NAME
#undef BYTES
#undef ROWS
#undef VECTORS
}
#endif

const Body* bodies[] = {
#if defined(__x86_64__)
    &avx512::body, &avx2::body,
#elif defined(__aarch64__)
    &neon::body,
#endif
};

bool runs(const Body* body) {
#if defined(__x86_64__)
    if (body == &avx512::body)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return body != nullptr;
#endif
}

const Body* chosen(const char* wanted) {
    for (const Body* body : bodies)
        if ((!wanted || !std::strcmp(wanted, body->name)) && runs(body)) return body;
    return nullptr;
}

// torch_parallel_for of torch's stable interface, or null.
using ParallelFor = int32_t (*)(int64_t, int64_t, int64_t, void (*)(int64_t, int64_t, void*), void*);

struct Freed {
    void operator()(char* p) const { std::free(p); }
};
using Memory = std::unique_ptr<char, Freed>;
Memory memory_of(int64_t bytes) {
    return Memory(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

// A thread keeps its room from call to call, but not what a long text in one chunk takes.
constexpr int64_t KEPT = 1 << 23;
char* room_of(int64_t bytes, Memory& own) {
    thread_local Memory kept;
    thread_local int64_t size = 0;
    if (bytes > KEPT) return (own = memory_of(bytes)).get();
    if (bytes > size) {
        kept = memory_of(bytes);
        size = kept ? bytes : 0;
    }
    return kept.get();
}

struct Threads {
    ParallelFor each;
    int64_t count;
};

// f(i, room) for i of n, in parallel. Raises bad_alloc where there is no memory.
template <class F>
void in_parallel(Threads threads, int64_t n, int64_t bytes, F f) {
    struct Context {
        F& f;
        int64_t bytes;
        std::atomic<bool> failed;
    } context{f, bytes, {false}};
    auto run = [](int64_t begin, int64_t end, void* given) {
        auto& context = *static_cast<Context*>(given);
        Memory own;
        char* room = room_of(context.bytes, own);
        if (!room) context.failed = true;
        else
            for (int64_t i = begin; i < end; ++i) context.f(i, room);
    };
    if (threads.each && threads.count > 1 && n > 1) threads.each(0, n, 1, run, &context);
    else run(0, n, &context);
    if (context.failed) throw std::bad_alloc();
}

// Into how many parts each head is cut: one where the heads are enough for the threads.
int64_t parts_of(const Call& call, Threads threads) {
    const int64_t heads = call.B * call.H, chunks = (call.T + call.C - 1) / call.C;
    if (!threads.each || heads >= threads.count || call.mode == RECURRENT) return 1;
    return std::max<int64_t>(1, std::min((threads.count + heads - 1) / heads, chunks / 4));
}

// The cuts of every head, and the states at them.
struct Cuts {
    const Call& call;
    int64_t parts, state;
    Memory memory;
    float *S, *left;

    Cuts(const Call& c, int64_t n) : call(c), parts(n), state(c.K * c.V + c.K) {
        const int64_t heads = c.B * c.H;
        memory = memory_of(4 * heads * n * (state + 1));
        if (!memory) throw std::bad_alloc();
        S = reinterpret_cast<float*>(memory.get());
        left = S + heads * n * state;
    }
    int64_t begin(int64_t p) const {
        const int64_t chunks = (call.T + call.C - 1) / call.C;
        return std::min(call.T, chunks * p / parts * call.C);
    }
    Part part(int64_t i) const {
        const int64_t head = i / parts, p = i % parts;
        Part found{};
        found.b = head / call.H, found.h = head % call.H;
        found.start = begin(p), found.length = begin(p + 1) - found.start;
        return found;
    }
    float* at(int64_t i) const { return S + i * state; }
    // at(i) holds what part i adds to a state: turn it into the state that part i meets.
    void meet(const float* first_S, const float* first_z, bool backwards) {
        const int64_t KV = call.K * call.V;
        std::vector<float> now(state), next(state);
        for (int64_t head = 0; head < call.B * call.H; ++head) {
            std::fill(now.begin(), now.end(), 0.0f);
            if (first_S) std::copy_n(first_S + head * KV, KV, now.data());
            if (first_z) std::copy_n(first_z + head * call.K, call.K, now.data() + KV);
            for (int64_t step = 0; step < parts; ++step) {
                const int64_t i = head * parts + (backwards ? parts - 1 - step : step);
                float* here = at(i);
                for (int64_t e = 0; e < state; ++e) next[e] = left[i] * now[e] + here[e];
                std::copy_n(now.data(), state, here);
                now.swap(next);
            }
        }
    }
    // The states that the parts meet, from their sums.
    void sum(const Body& body, Threads threads, bool backwards, const float* S0, const float* z0) {
        in_parallel(threads, call.B * call.H * parts, body.room(call), [&](int64_t i, char* room) {
            const int64_t p = i % parts;
            float* here = at(i);
            left[i] = 1.0f;
            if (p == (backwards ? 0 : parts - 1)) return;  // nothing comes after it
            Part one = part(i);
            one.backwards = backwards;
            one.S_after = here, one.z_after = here + call.K * call.V, one.left = left + i;
            body.sums(call, one, room);
        });
        meet(S0, z0, backwards);
    }
};

void forward(const Body& body, const Call& call, Threads threads) {
    const int64_t parts = parts_of(call, threads), KV = call.K * call.V;
    Cuts cuts(call, parts);
    if (parts > 1) cuts.sum(body, threads, false, call.S, call.z);
    const Work work = call.mode == RECURRENT ? body.forward_by_token : body.forward;
    in_parallel(threads, call.B * call.H * parts, body.room(call), [&](int64_t i, char* room) {
        const int64_t head = i / parts;
        Part part = cuts.part(i);
        part.S = parts > 1 ? cuts.at(i) : call.S ? call.S + head * KV : nullptr;
        part.z = parts > 1 ? cuts.at(i) + KV : call.z ? call.z + head * call.K : nullptr;
        if (i % parts == parts - 1) {
            part.S_after = call.S_T ? call.S_T + head * KV : nullptr;
            part.z_after = call.z_T ? call.z_T + head * call.K : nullptr;
        }
        work(call, part, room);
    });
}

// dg of a head. exp(g_t) is in whatever token i >= t reads of a token j < t: of the same chunk (in dg
// already), through the state before the chunk (`read`, at i), or later (`written`, at j); and in
// all that passes through the chunk. Every sum here is of numbers of one chunk, so that nothing
// large is taken from anything large.
void decay_gradient(const Call& call, int64_t head) {
    const int64_t b = head / call.H, h = head % call.H;
    const float* g = call.g.data + b * call.g.batch + h * call.g.head;
    for (int64_t start = 0, n = head * call.chunks(); start < call.T; start += call.C, ++n) {
        const int64_t end = std::min(call.T, start + call.C);
        auto row = [&](int64_t t) { return (b * call.T + t) * call.H + h; };
        double sum = call.through[n];
        for (int64_t t = start; t < end; ++t) {
            call.dg[row(t)] += float(sum);
            sum += call.written[row(t)];
        }
        sum = 0;
        for (int64_t t = end - 1; t >= start; --t) {
            sum += call.read[row(t)];
            call.dg[row(t)] = g[t * call.g.time] < RESET ? 0.0f : call.dg[row(t)] + float(sum);
        }
    }
}

void backward(const Body& body, Call call, Threads threads) {
    Memory memory;
    if (call.dg) {  // of a gradient it is the whole that counts, so it has no mode
        if (call.mode == RECURRENT) call.mode = CHUNKED, call.C = std::min<int64_t>(call.T, 64);
        const int64_t n = call.B * call.H * call.chunks();
        memory = memory_of(4 * n * (body.state(call) + 1));
        if (!memory) throw std::bad_alloc();
        call.states = reinterpret_cast<float*>(memory.get());
        call.through = call.states + n * body.state(call);
    }
    const int64_t parts = parts_of(call, threads), KV = call.K * call.V, heads = call.B * call.H;
    Cuts before(call, parts), after(call, parts);
    if (parts > 1) {
        before.sum(body, threads, false, call.S, call.z);
        after.sum(body, threads, true, call.dS_T, call.dz_T);
    }
    // Two halves of the work, which need nothing of each other but for dg.
    const int64_t half = heads * parts;
    auto work = [&](int64_t task, char* room) {
        const int64_t i = task % half, head = i / parts;
        Part part = before.part(i);
        if (task < half) {
            part.S = parts > 1 ? before.at(i) : call.S ? call.S + head * KV : nullptr;
            part.z = parts > 1 ? before.at(i) + KV : call.z ? call.z + head * call.K : nullptr;
            (call.mode == RECURRENT ? body.queries_by_token : body.queries)(call, part, room);
            return;
        }
        part.R = parts > 1 ? after.at(i) : call.dS_T ? call.dS_T + head * KV : nullptr;
        part.m = parts > 1 ? after.at(i) + KV : call.dz_T ? call.dz_T + head * call.K : nullptr;
        if (i % parts == 0) {
            part.S_after = call.dS ? call.dS + head * KV : nullptr;
            part.z_after = call.dz ? call.dz + head * call.K : nullptr;
        }
        (call.mode == RECURRENT ? body.keys_by_token : body.keys)(call, part, room);
    };
    auto keys = [&](int64_t i, char* room) { work(half + i, room); };
    if (!call.dg) return in_parallel(threads, 2 * half, body.room(call), work);
    in_parallel(threads, half, body.room(call), work);
    in_parallel(threads, half, body.room(call), keys);
    in_parallel(threads, heads, 1, [&](int64_t head, char*) { decay_gradient(call, head); });
}
}  // namespace

extern "C" {
// The instruction set that runs, or that of this name; null where this processor has none.
const char* lsa_body(const char* wanted) {
    const Body* body = chosen(wanted);
    return body ? body->name : nullptr;
}
// 0, or 1 where there is no memory.
int lsa_run(const Call* call, int back, const char* wanted, ParallelFor each, int64_t threads) {
    static const Body* best = chosen(nullptr);
    const Body* body = wanted ? chosen(wanted) : best;
    try {
        const Threads lent{each, threads};
        back ? backward(*body, *call, lent) : forward(*body, *call, lent);
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}
}
