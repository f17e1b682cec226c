// Linear attention on CPUs, forwards and backwards, behind a plain C interface.
//
// kernel.inl holds the mathematics and is compiled once for each set of vector instructions that
// the processor's family has; the best that this processor knows is taken at the first call. Heads
// run in parallel, and where there are fewer of them than threads, parts of a head: their sums
// first, then each part from the state before it. The threads are lent by the caller.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
enum Kind { OUT, DQ, DK, DV };
enum Which { Q, KEYS, VALUES, GRADIENT };

constexpr float RESET = -104.0f;  // exp of less is 0 in float32

// A tensor [B, T, H, D] with contiguous rows, and its other strides in floats.
struct Tensor4 {
    float* data;
    int64_t batch, time, head;
};

// One call, as __init__.py packs it. C: tokens in a chunk. Pointers without a use are null.
struct Call {
    int64_t B, T, H, K, V, C, map, normalize;
    int64_t half, o_half;              // in bfloat16: q, k, v and their gradients; o
    float scale, eps;
    Tensor4 q, k, v, o, g;
    float *S, *z, *S_T, *z_T, *den;    // [B, H, K, V] and [B, H, K]; [B, T, H]
    Tensor4 d_o, dq, dk, dv;           // from here on of a gradient alone
    float *dS_T, *dz_T, *dS, *dz;
    float *dg, *inside, *written;      // [B, T, H]
    float *states, *through;           // of every chunk, while dg is computed
    int64_t chunks() const { return (T + C - 1) / C; }
};

// Tokens start .. start + length of one head. S, z: the state before them, or null for zero.
// S_after, z_after: where the one after them goes, or null. In sums that run backwards in time they
// are gradients of states. left: null, or only what the tokens add to a state is wanted, and here
// goes the factor by which they decay one.
struct Part {
    int64_t b, h, start, length;
    Kind kind;
    const float *S, *z;
    float *S_after, *z_after, *left;
    int64_t row(const Call& c, int64_t t) const { return (b * c.T + start + t) * c.H + h; }
    int64_t chunk(const Call& c, int64_t t) const {
        return (b * c.H + h) * c.chunks() + (start + t) / c.C;
    }
};

// The code for one instruction set. room: bytes of memory that a sum works in; state: floats of a
// state with its padding.
struct Body {
    const char* name;
    void (*causal_sum)(const Call&, const Part&, char*);
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
}
END
BEGIN("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")
namespace avx512 {
#define NAME "avx512"
#define BYTES 64
#define ROWS 8
#define VECTORS 2
#include "kernel.inl"
}
END
#elif defined(__aarch64__)
namespace neon {
#define NAME "neon"
#define BYTES 16
#define ROWS 6
#define VECTORS 4
#include "kernel.inl"
}
#else
#error "no vector instructions of this processor's family are known here"
#endif

// The best body that this processor runs, or that of this name; null where there is none.
const Body* chosen(const char* wanted) {
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

// torch_parallel_for of torch's stable interface, or null.
using Range = void (*)(int64_t, int64_t, void*);
using ParallelFor = int32_t (*)(int64_t, int64_t, int64_t, Range, void*);

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

struct Threads {
    ParallelFor each;
    int64_t count;
};

// Calls f(i, room) for each i < n, in parallel. Raises bad_alloc, but never through the caller's
// threads, whose interface is C.
template <class F>
void in_parallel(Threads threads, int64_t n, int64_t bytes, F f) {
    struct Context {
        F& f;
        int64_t bytes;
        std::atomic<bool> failed;
    } context{f, bytes, {false}};
    auto run = [](int64_t begin, int64_t end, void* given) {
        auto& context = *static_cast<Context*>(given);
        try {
            Memory own;
            char* room = room_of(context.bytes, own);
            for (int64_t i = begin; i < end; ++i) context.f(i, room);
        } catch (const std::bad_alloc&) {
            context.failed = true;
        }
    };
    if (!threads.each || threads.count < 2 || n < 2) run(0, n, &context);
    else if (threads.each(0, n, 1, run, &context)) context.failed = true;
    if (context.failed) throw std::bad_alloc();
}

// Into how many parts each head is cut: one where the heads are enough for the threads.
int64_t parts_of(const Call& call, Threads threads) {
    const int64_t heads = std::max<int64_t>(call.B * call.H, 1);
    if (!threads.each || heads >= threads.count) return 1;
    return std::max<int64_t>(
        1, std::min((threads.count + heads - 1) / heads, call.chunks() / 4));
}

// The parts of all heads in one direction of time, and the states that they meet: the call's own
// where a head is one part, else sums of what the parts before add, made in a pass of their own.
struct Cuts {
    const Body& body;
    const Call& call;
    int64_t parts, heads, KV, state;
    bool back;
    const float *S0, *z0;
    Memory memory;

    Cuts(const Body& body, const Call& c, Threads threads, bool back)
        : body(body), call(c), parts(parts_of(c, threads)), heads(c.B * c.H), KV(c.K * c.V),
          state(KV + c.K), back(back), S0(back ? c.dS_T : c.S), z0(back ? c.dz_T : c.z) {
        if (parts == 1) return;
        memory = memory_of(4 * heads * parts * (state + 1));
        float* left = at(heads * parts);
        const int64_t next = back ? -1 : 1;
        auto place = [&](int64_t head, int64_t step) {
            return head * parts + (back ? parts - 1 - step : step);
        };
        // What a part adds lies where the part after it will find its state.
        in_parallel(threads, heads * (parts - 1), body.room(call), [&](int64_t n, char* room) {
            const int64_t i = place(n / (parts - 1), n % (parts - 1));
            Part one = part(i, back ? DV : OUT);
            one.S = one.z = nullptr;
            one.S_after = at(i + next), one.z_after = at(i + next) + KV, one.left = left + i;
            body.causal_sum(call, one, room);
        });
        for (int64_t head = 0; head < heads; ++head) {
            float* first = at(place(head, 0));
            std::fill_n(first, state, 0.0f);
            if (S0) std::copy_n(S0 + head * KV, KV, first);
            if (z0) std::copy_n(z0 + head * call.K, call.K, first + KV);
            for (int64_t step = 0; step + 1 < parts; ++step) {
                const int64_t i = place(head, step);
                for (int64_t n = 0; n < state; ++n) at(i + next)[n] += left[i] * at(i)[n];
            }
        }
    }
    float* at(int64_t i) const { return reinterpret_cast<float*>(memory.get()) + i * state; }
    Part part(int64_t i, Kind kind) const {
        const int64_t head = i / parts, p = i % parts;
        auto begin = [&](int64_t p) {
            return std::min(call.T, call.chunks() * p / parts * call.C);
        };
        Part found{};
        found.b = head / call.H, found.h = head % call.H, found.kind = kind;
        found.start = begin(p), found.length = begin(p + 1) - begin(p);
        found.S = parts > 1 ? at(i) : S0 ? S0 + head * KV : nullptr;
        found.z = parts > 1 ? at(i) + KV : z0 ? z0 + head * call.K : nullptr;
        float *S = back ? call.dS : call.S_T, *z = back ? call.dz : call.z_T;
        if ((kind == OUT || kind == DV) && p == (back ? 0 : parts - 1)) {
            found.S_after = S ? S + head * KV : nullptr;
            found.z_after = z ? z + head * call.K : nullptr;
        }
        return found;
    }
};

void forward(const Body& body, const Call& call, Threads threads) {
    Cuts cuts(body, call, threads, false);
    in_parallel(threads, cuts.heads * cuts.parts, body.room(call),
                [&](int64_t i, char* room) { body.causal_sum(call, cuts.part(i, OUT), room); });
}

// dg of a head. exp(g_t) scales what each token i >= t reads of a token j < t. With both in t's
// chunk this is in `inside`, at t; with j before the chunk in dg, at i; with i behind it in
// `written`, at j; with both outside in `through`. These are only added: differences lose digits.
void decay_gradient(const Call& call, int64_t head) {
    const int64_t b = head / call.H, h = head % call.H;
    const float* g = call.g.data + b * call.g.batch + h * call.g.head;
    for (int64_t start = 0, n = head * call.chunks(); start < call.T; start += call.C, ++n) {
        const int64_t end = std::min(call.T, start + call.C);
        auto row = [&](int64_t t) { return (b * call.T + t) * call.H + h; };
        double written = call.through[n], read = 0;
        for (int64_t t = start; t < end; ++t) {
            call.inside[row(t)] += float(written);
            written += call.written[row(t)];
        }
        for (int64_t t = end - 1; t >= start; --t) {
            read += call.dg[row(t)];
            call.dg[row(t)] =
                g[t * call.g.time] < RESET ? 0.0f : float(read) + call.inside[row(t)];
        }
    }
}

// The chunks of a gradient are short where dg is summed.
void backward(const Body& body, const Call& call, Threads threads) {
    Call own = call;
    Memory memory;
    if (call.dg) {
        own.C = std::min<int64_t>(call.C, 64);
        const int64_t n = call.B * call.H * own.chunks();
        memory = memory_of(4 * n * (body.state(call) + 1));
        own.states = reinterpret_cast<float*>(memory.get());
        own.through = own.states + n * body.state(call);
    }
    Cuts before(body, own, threads, false), after(body, own, threads, true);
    const int64_t n = before.heads * before.parts;
    auto work = [&](int64_t i, char* room) {
        const Kind kind = Kind(DQ + i / n);
        body.causal_sum(own, (kind == DQ ? before : after).part(i % n, kind), room);
    };
    auto keys = [&](int64_t i, char* room) { work(n + i, room); };
    // They need nothing of each other, but for dg.
    if (!call.dg) return in_parallel(threads, 3 * n, body.room(own), work);
    in_parallel(threads, n, body.room(own), work);
    in_parallel(threads, 2 * n, body.room(own), keys);
    in_parallel(threads, before.heads, 1, [&](int64_t i, char*) { decay_gradient(own, i); });
}
}  // namespace

extern "C" {
// The digest of the sources that this was built from.
const char* lsa_sources() { return SOURCES; }
// The name of the body that `chosen` finds, or null.
const char* lsa_body(const char* wanted) {
    const Body* body = chosen(wanted);
    return body ? body->name : nullptr;
}
// A `Call`, of which the first `size` bytes are given. 0, or 1 where there is no memory.
int lsa_run(const void* given, int64_t size, const char* wanted, ParallelFor each, int64_t count) {
    static const Body* best = chosen(nullptr);
    const Body* body = wanted ? chosen(wanted) : best;
    Call call{};
    std::memcpy(&call, given, size);
    try {
        (size > int64_t(offsetof(Call, d_o)) ? backward : forward)(*body, call, {each, count});
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}
}
