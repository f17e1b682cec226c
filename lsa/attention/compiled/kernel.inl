// Linear attention for one instruction set: included once for each, inside a namespace of its own.
//
// Before it: BYTES, the width of a vector; ROWS and VECTORS, the shape of a block of registers;
// `Call` and `Part` (body.cpp). A product of matrices is a walk of such blocks: ROWS numbers of the
// left matrix are each multiplied with VECTORS vectors of the right one, so that every number
// loaded is used many times. All buffers of the right side have rows padded to whole blocks.
//
// With chunks of C tokens, S and z the state before a chunk, w_ij the decay between two tokens:
//   A_ij = w_ij q_i.k_j (j <= i)      o_i = (since_i q_i S + A v) / den_i      S' = whole S + k^T until v
// Gradients, with dn = do / den and dd = -(do.o) / den, R and m the gradient of the state after:
//   P_ij = w_ij (dn_i.v_j + dd_i)     dq = since (dn S^T + dd z) + P k
//   dk = until (v R^T + m) + P^T q    dv = until k R + A^T dn    R' = whole R + q^T since dn

typedef float vec __attribute__((vector_size(BYTES)));
typedef int32_t ints __attribute__((vector_size(BYTES)));
constexpr long W = BYTES / 4, NR = W * VECTORS, MR = ROWS;

INLINE vec load(const float* p) {
    vec x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
}
INLINE void store(float* p, vec x) { __builtin_memcpy(p, &x, sizeof x); }
INLINE vec splat(float x) { return vec{} + x; }
INLINE long padded(long n) { return (n + NR - 1) / NR * NR; }
INLINE float sum(vec x) {
    float total = 0;
    for (long i = 0; i < W; ++i) total += x[i];
    return total;
}
INLINE float dot(const float* a, const float* b, long n) {  // n: whole vectors
    vec total = vec{};
    for (long i = 0; i < n; i += W) total += load(a + i) * load(b + i);
    return sum(total);
}

// exp to about one unit in the last place; 0 below -87, where float32 has no normal numbers.
INLINE vec exponential(vec x) {
    const vec shift = splat(12582912.0f);  // 1.5 * 2^23: the sum's last bits are a whole number
    vec bounded = x < splat(-87.0f) ? splat(-87.0f) : x;
    bounded = bounded > splat(88.72f) ? splat(88.72f) : bounded;
    const vec t = bounded * 1.44269504f + shift, n = t - shift;
    vec r = bounded - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    ints bits;
    __builtin_memcpy(&bits, &t, sizeof bits);
    bits <<= 23;
    ints whole;
    __builtin_memcpy(&whole, &p, sizeof whole);
    whole += bits;
    __builtin_memcpy(&p, &whole, sizeof p);
    return x < splat(-87.0f) ? vec{} : x == x ? p : x;  // NaN stays NaN
}

INLINE vec mapped(vec x, int map) {
    if (map == RELU) return x < vec{} ? vec{} : x;
    if (map == ELU_PLUS_ONE) return x > vec{} ? x + 1.0f : exponential(x);
    return x;
}
// Its derivative, from the value before.
INLINE vec slope(vec x, int map) {
    if (map == RELU) return x > vec{} ? splat(1.0f) : vec{};
    if (map == ELU_PLUS_ONE) return x > vec{} ? splat(1.0f) : exponential(x);
    return splat(1.0f);
}

// One block: acc[r] += sum over p of a[r * row + p * step] times row p of b.
template <int M>
INLINE void multiply(vec (&acc)[M][VECTORS], const float* a, long row, long step, const float* b,
                     long width, long n) {
    for (long p = 0; p < n; ++p, a += step, b += width) {
        vec right[VECTORS];
        UNROLL
        for (int v = 0; v < VECTORS; ++v) right[v] = load(b + v * W);
        UNROLL
        for (int r = 0; r < M; ++r) {
            const float left = a[r * row];
            UNROLL
            for (int v = 0; v < VECTORS; ++v) acc[r][v] += right[v] * left;
        }
    }
}

// Every row of a block times a number of its own.
template <int M>
INLINE void scale_rows(vec (&acc)[M][VECTORS], const float* times) {
    for (int r = 0; r < M; ++r)
        for (int v = 0; v < VECTORS; ++v) acc[r][v] *= times[r];
}
// To every row of a block the same row, times a number of its own where there are any.
template <int M>
INLINE void add_row(vec (&acc)[M][VECTORS], const float* row, const float* times) {
    for (int r = 0; r < M; ++r)
        for (int v = 0; v < VECTORS; ++v) acc[r][v] += load(row + v * W) * (times ? times[r] : 1.0f);
}

template <int M>
INLINE void store_rows(float* to, long width, const vec (&acc)[M][VECTORS]) {
    for (int r = 0; r < M; ++r)
        for (int v = 0; v < VECTORS; ++v) store(to + r * width + v * W, acc[r][v]);
}

// Calls f with the number of rows, a constant, for each block of at most ROWS rows of n.
template <int M, class F>
INLINE void last_rows(long at, long left, F& f) {
    if constexpr (M > 0) {
        if (left == M) return f(std::integral_constant<int, M>{}, at);
        last_rows<M - 1>(at, left, f);
    }
}
template <class F>
INLINE void blocks(long n, F f) {
    long at = 0;
    for (; at + MR <= n; at += MR) f(std::integral_constant<int, ROWS>{}, at);
    last_rows<ROWS - 1>(at, n - at, f);
}

// out = keep * out + a^T b, of [rows] x [columns, whole blocks]; a [n, rows], b [n, columns]. Where
// keep is 0 nothing of out is read.
static void accumulate(float* out, long width, long rows, long columns, const float* a, long a_width,
                       const float* b, long b_width, long n, float keep) {
    blocks(rows, [&](auto count, long r0) {
        constexpr int M = decltype(count)::value;
        for (long c = 0; c < columns; c += NR) {
            vec acc[M][VECTORS] = {};
            multiply<M>(acc, a + r0, 1, a_width, b + c, b_width, n);
            for (int r = 0; r < M; ++r)
                for (int v = 0; v < VECTORS; ++v) {
                    float* at = out + (r0 + r) * width + c + v * W;
                    store(at, keep == 0.0f ? acc[r][v] : load(at) * keep + acc[r][v]);
                }
        }
    });
}

static void transpose(float* out, long width, const float* x, long x_width, long rows, long columns) {
    for (long c0 = 0; c0 < columns; c0 += 16)
        for (long r0 = 0; r0 < rows; r0 += 16)
            for (long c = c0; c < std::min(c0 + 16, columns); ++c)
                for (long r = r0; r < std::min(r0 + 16, rows); ++r)
                    out[c * width + r] = x[r * x_width + c];
}

// Rows of a tensor as rows padded with zeros: mapped, and times a number.
static void pack(float* out, long width, const float* x, long stride, long rows, long columns, int map,
                 float times) {
    for (long r = 0; r < rows; ++r, x += stride, out += width) {
        long c = 0;
        for (; c + W <= columns; c += W) store(out + c, mapped(load(x + c), map) * times);
        if (c < width) {
            float rest[NR] = {};
            std::copy(x + c, x + columns, rest);
            vec filled = mapped(load(rest), map) * times;
            store(rest, filled);
            std::fill(rest + (columns - c), rest + NR, 0.0f);
            std::copy(rest, rest + (width - c), out + c);
        }
    }
}

// A row of dq or dk: times the derivative of the map and a number.
INLINE void finish(float* to, const float* d, const float* x, long n, int map, float times) {
    long c = 0;
    for (; c + W <= n; c += W) store(to + c, load(d + c) * slope(load(x + c), map) * times);
    if (c == n) return;
    float rest[W] = {};
    std::copy(x + c, x + n, rest);
    store(rest, load(d + c) * slope(load(rest), map) * times);
    std::copy_n(rest, n - c, to + c);
}

// What decay does inside a chunk. A token that fades by more than float32 can tell is a reset:
// sums begin anew behind it, so that what follows is exact however strong it was. A sum is kept as
// two floats, whose differences are exact to the last bit that matters.
struct Decay {
    float *high, *low, *since, *until;
    int32_t *from, *to;  // the tokens j >= from[i] still count at i; of j, the tokens i < to[j] see it
    float whole = 1.0f;

    void read(const float* g, long step, long n) {
        double total = 0, all = 0;
        int32_t start = 0;
        bool cut = false;
        for (long i = 0; i < n; ++i) {
            const double each = g[i * step];
            if (each < RESET) {
                total = 0;
                start = int32_t(i);
                cut = true;
            } else {
                total += each;
                all += each;
            }
            high[i] = float(total);
            low[i] = float(total - high[i]);
            from[i] = start;
            since[i] = cut ? 0.0f : float(std::exp(total));
        }
        whole = cut ? 0.0f : float(std::exp(all));
        const double last = double(high[n - 1]) + low[n - 1];
        int32_t end = int32_t(n);
        for (long j = n - 1; j >= 0; --j) {
            to[j] = end;
            until[j] = end < n ? 0.0f : float(std::exp(last - high[j] - low[j]));
            if (g[j * step] < RESET) end = int32_t(j);
        }
    }

    // Weights between token `at` and the tokens first, first + 1, ... of one vector; sign: +1 where
    // `at` is the later one. Those outside [least, most) are 0.
    INLINE vec between(long at, long first, float sign, long least, long most) const {
        vec gap = (splat(high[at]) - load(high + first)) + (splat(low[at]) - load(low + first));
        gap *= sign;
        ints place;
        for (long i = 0; i < W; ++i) place[i] = int32_t(first + i);
        const ints outside = (place < int32_t(least)) | (place >= int32_t(most));
        return outside ? vec{} : exponential(outside ? vec{} : gap);
    }
};

// Memory for one part of one head, taken piece by piece.
struct Room {
    char* at;
    template <class T>
    T* take(long n) {
        T* found = reinterpret_cast<T*>(at);
        at += (n * long(sizeof(T)) + 63) / 64 * 64;
        return found;
    }
};

// Rows of a head in a tensor [B, T, H, D].
struct Rows {
    float* first;
    long stride;
    Rows(const Tensor4& x, long b, long h, long t)
        : first(x.data + b * x.batch + h * x.head + t * x.time), stride(x.time) {}
    float* at(long t) const { return first + t * stride; }
};

struct Head {
    const Call& call;
    const Part& part;
    long K = padded(call.K), V = padded(call.V), C = std::min(call.C, part.length);
    long width = padded(C);
    Decay decay;

    Head(const Call& c, const Part& p) : call(c), part(p) {}
    // Which of all chunks of all heads begins at t.
    long chunk(long t) const {
        return (part.b * call.H + part.h) * call.chunks() + (part.start + t) / call.C;
    }
    Rows rows(const Tensor4& x) const { return Rows(x, part.b, part.h, part.start); }

    void take_decay(Room& room) {
        if (!call.g.data) return;
        // A vector is read from any place, so there is one behind the last.
        decay.high = room.take<float>(width + W);
        decay.low = room.take<float>(width + W);
        decay.since = room.take<float>(width);
        decay.until = room.take<float>(width);
        decay.from = room.take<int32_t>(width);
        decay.to = room.take<int32_t>(width);
        std::fill(decay.high, decay.high + width + W, 0.0f);
        std::fill(decay.low, decay.low + width + W, 0.0f);
    }
    void read_decay(long t, long n) {
        if (call.g.data) decay.read(rows(call.g).at(t), call.g.time, n);
    }
    // A state before the first chunk, or none. Its padding is zero.
    bool take_state(float* S, float* z, long width, const float* S0, const float* z0) const;
    // By how much the state fades at a token.
    float kept_at(long t) const {
        if (!call.g.data) return 1.0f;
        const float g = *rows(call.g).at(t);
        return g < RESET ? 0.0f : std::exp(g);
    }
    // Rows times what decay leaves of each: `since` or `until`.
    const float* faded(float* out, const float* x, long stride, const float* left, long n,
                       long columns) const {
        for (long r = 0; r < n; ++r)
            for (long c = 0; c < columns; c += W)
                store(out + r * columns + c, load(x + r * stride + c) * left[r]);
        return out;
    }
};

// z = keep z + the sum over rows of x, each times its number in `times` where there are any.
static void add_rows(float* z, const float* x, long width, long n, float keep, const float* times) {
    for (long c = 0; c < width; c += W) {
        vec total = keep == 0.0f ? vec{} : load(z + c) * keep;
        for (long r = 0; r < n; ++r)
            total += times ? load(x + r * width + c) * times[r] : load(x + r * width + c);
        store(z + c, total);
    }
}

// A state [K, V] of unpadded rows to padded ones, or the other way.
static void copy_rows(float* to, long to_width, const float* from, long from_width, long rows,
                      long columns) {
    for (long r = 0; r < rows; ++r) std::copy_n(from + r * from_width, columns, to + r * to_width);
}

bool Head::take_state(float* S, float* z, long width, const float* S0, const float* z0) const {
    std::fill_n(z, K, 0.0f);
    if (!S0) return false;
    if (width != call.V || K != call.K) std::fill_n(S, K * width, 0.0f);
    copy_rows(S, width, S0, call.V, call.K, call.V);
    std::copy_n(z0, call.K, z);
    return true;
}

// o, den and the state after a part of a head, in chunks.
static void forward_chunks(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V, C = head.C, width = head.width;
    Room room{memory};
    float* q = room.take<float>(C * K);
    float* k = room.take<float>(C * K);
    float* k_across = room.take<float>(K * width);
    float* v_padded = room.take<float>(C * V);
    float* k_left = room.take<float>(C * K);
    float* A = room.take<float>(MR * width);
    float* own = room.take<float>(K * V);
    float* z = room.take<float>(K);
    float* spare = room.take<float>(NR);
    head.take_decay(room);
    const Decay& decay = head.decay;
    const bool fades = call.g.data, in_place = part.S_after && V == call.V && K == call.K;
    float* S = in_place ? part.S_after : own;
    bool met = head.take_state(S, z, V, part.S, part.z);  // a state: at first there may be none
    const Rows qs = head.rows(call.q), ks = head.rows(call.k), vs = head.rows(call.v);
    const Rows os = head.rows(call.o);
    for (long t = 0; t < part.length; t += C) {
        const long n = std::min(C, part.length - t);
        pack(q, K, qs.at(t), qs.stride, n, call.K, call.map, call.scale);
        pack(k, K, ks.at(t), ks.stride, n, call.K, call.map, 1.0f);
        transpose(k_across, width, k, K, n, K);
        const float* v = vs.at(t);
        long v_width = vs.stride;
        if (V != call.V) {
            pack(v_padded, V, v, v_width, n, call.V, IDENTITY, 1.0f);
            v = v_padded, v_width = V;
        }
        head.read_decay(t, n);
        blocks(n, [&](auto count, long i0) {
            constexpr int M = decltype(count)::value;
            const long end = i0 + M;
            for (long j = 0; j < end; j += NR) {
                vec acc[M][VECTORS] = {};
                multiply<M>(acc, q + i0 * K, K, 1, k_across + j, width, K);
                for (int r = 0; r < M; ++r)
                    for (int c = 0; c < VECTORS; ++c) {
                        const long i = i0 + r, first = j + c * W;
                        vec x = acc[r][c];
                        if (fades) x *= decay.between(i, first, 1.0f, decay.from[i], i + 1);
                        store(A + r * width + first, x);
                    }
            }
            float divided[M];
            for (int r = 0; r < M; ++r) {
                float* row = A + r * width;
                const long i = i0 + r, last = (end + W - 1) / W * W;
                std::fill(row + i + 1, row + std::max(last, i + 1), 0.0f);
                divided[r] = 1.0f;
                if (!call.normalize) continue;
                vec total = vec{};
                for (long j = 0; j < last; j += W) total += load(row + j);
                const float past = met ? dot(q + i * K, z, K) : 0.0f;
                const float den = sum(total) + (fades ? decay.since[i] * past : past);
                call.den[part.row(call, t + i)] = den;
                divided[r] = 1.0f / (den + call.eps);
            }
            for (long c = 0; c < V; c += NR) {
                vec acc[M][VECTORS] = {};
                if (met) multiply<M>(acc, q + i0 * K, K, 1, S + c, V, K);
                if (met && fades) scale_rows<M>(acc, decay.since + i0);
                multiply<M>(acc, A, width, 1, v + c, v_width, end);
                for (int r = 0; r < M; ++r) {
                    float* at = os.at(t + i0 + r) + c;
                    const bool whole = c + NR <= call.V;
                    for (int s = 0; s < VECTORS; ++s)
                        store((whole ? at : spare) + s * W, acc[r][s] * divided[r]);
                    if (!whole) std::copy_n(spare, call.V - c, at);
                }
            }
        });
        const float* added = fades ? head.faded(k_left, k, K, decay.until, n, K) : k;
        const float keep = !met ? 0.0f : fades ? decay.whole : 1.0f;
        accumulate(S, V, K, V, added, K, v, v_width, n, keep);
        add_rows(z, added, K, n, keep, nullptr);
        met = true;
    }
    if (part.S_after && !in_place) copy_rows(part.S_after, call.V, S, V, call.K, call.V);
    if (part.z_after) std::copy_n(z, call.K, part.z_after);
}

// The gradient of numerator and denominator: dn [n, V padded], dd [n].
static void read_gradients(const Head& head, long t, long n, float* dn, float* dd) {
    const Call& call = head.call;
    const Rows os = head.rows(call.o), dos = head.rows(call.d_o);
    pack(dn, head.V, dos.at(t), dos.stride, n, call.V, IDENTITY, 1.0f);
    for (long i = 0; i < n; ++i) {
        dd[i] = 0.0f;
        if (!call.normalize) continue;
        const float r = 1.0f / (call.den[head.part.row(call, t + i)] + call.eps);
        const float *d_o = dos.at(t + i), *o = os.at(t + i);
        float* row = dn + i * head.V;
        vec total = vec{};
        long c = 0;
        for (; c + W <= call.V; c += W) {
            total += load(d_o + c) * load(o + c);
            store(row + c, load(row + c) * r);
        }
        float product = sum(total);
        for (; c < call.V; ++c) {
            product += d_o[c] * o[c];
            row[c] *= r;
        }
        dd[i] = -product * r;
    }
}

// What a part adds to the state, and what it leaves of the state before, as if that were zero. Or,
// backwards in time, to the gradient of the state: the same sum over q and dn.
static void local_sums(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V, C = head.C;
    Room room{memory};
    float* k = room.take<float>(C * K);
    float* v = room.take<float>(C * V);
    float* S = room.take<float>(K * V);
    float* z = room.take<float>(K);
    float* dd = room.take<float>(C);
    head.take_decay(room);
    const bool fades = call.g.data, back = part.backwards;
    std::fill_n(S, K * V, 0.0f);
    std::fill_n(z, K, 0.0f);
    double left = 1.0;
    const long N = (part.length + C - 1) / C;
    const Rows ks = head.rows(back ? call.q : call.k), vs = head.rows(call.v);
    for (long step = 0; step < N; ++step) {
        const long t = (back ? N - 1 - step : step) * C, n = std::min(C, part.length - t);
        pack(k, K, ks.at(t), ks.stride, n, call.K, call.map, back ? call.scale : 1.0f);
        if (back)
            read_gradients(head, t, n, v, dd);
        else
            pack(v, V, vs.at(t), vs.stride, n, call.V, IDENTITY, 1.0f);
        head.read_decay(t, n);
        if (fades) head.faded(k, k, K, back ? head.decay.since : head.decay.until, n, K);
        const float keep = fades ? head.decay.whole : 1.0f;
        accumulate(S, V, K, V, k, K, v, V, n, keep);
        if (!back || call.normalize) add_rows(z, k, K, n, keep, back ? dd : nullptr);
        left *= keep;
    }
    copy_rows(part.S_after, call.V, S, V, call.K, call.V);
    std::copy_n(z, call.K, part.z_after);
    *part.left = float(left);
}

// dq of a part, forwards in time, and q.dq through the state where decay's gradient asks for it.
static void backward_queries(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V, C = head.C, width = head.width;
    Room room{memory};
    float* q = room.take<float>(C * K);
    float* k = room.take<float>(C * K);
    float* v = room.take<float>(C * V);
    float* v_across = room.take<float>(V * width);
    float* k_left = room.take<float>(C * K);
    float* dn = room.take<float>(C * V);
    float* dd = room.take<float>(C);
    float* P = room.take<float>(MR * width);
    float* S = room.take<float>(V * K);  // transposed
    float* z = room.take<float>(K);
    float* out = room.take<float>(MR * K);
    float* past = room.take<float>(MR * K);
    head.take_decay(room);
    const Decay& decay = head.decay;
    const bool fades = call.g.data;
    bool met = part.S;
    std::fill_n(z, K, 0.0f);
    if (met) {
        std::fill_n(S, V * K, 0.0f);
        transpose(S, K, part.S, call.V, call.K, call.V);
        std::copy_n(part.z, call.K, z);
    }
    const Rows qs = head.rows(call.q), ks = head.rows(call.k), vs = head.rows(call.v);
    const Rows dqs = head.rows(call.dq);
    for (long t = 0; t < part.length; t += C) {
        const long n = std::min(C, part.length - t);
        pack(q, K, qs.at(t), qs.stride, n, call.K, call.map, call.scale);
        pack(k, K, ks.at(t), ks.stride, n, call.K, call.map, 1.0f);
        pack(v, V, vs.at(t), vs.stride, n, call.V, IDENTITY, 1.0f);
        transpose(v_across, width, v, V, n, V);
        read_gradients(head, t, n, dn, dd);
        head.read_decay(t, n);
        blocks(n, [&](auto count, long i0) {
            constexpr int M = decltype(count)::value;
            const long end = i0 + M;
            for (long j = 0; j < end; j += NR) {
                vec acc[M][VECTORS] = {};
                multiply<M>(acc, dn + i0 * V, V, 1, v_across + j, width, V);
                for (int r = 0; r < M; ++r)
                    for (int c = 0; c < VECTORS; ++c) {
                        const long i = i0 + r, first = j + c * W;
                        vec x = acc[r][c] + dd[i];
                        if (fades) x *= decay.between(i, first, 1.0f, decay.from[i], i + 1);
                        store(P + r * width + first, x);
                    }
            }
            for (int r = 0; r < M; ++r)
                std::fill(P + r * width + i0 + r + 1, P + r * width + end, 0.0f);
            for (long c = 0; c < K; c += NR) {
                vec acc[M][VECTORS] = {};
                if (met) multiply<M>(acc, dn + i0 * V, V, 1, S + c, K, V);
                if (met) add_row<M>(acc, z + c, dd + i0);
                if (met && fades) scale_rows<M>(acc, decay.since + i0);
                if (call.read) store_rows<M>(past + c, K, acc);
                multiply<M>(acc, P, width, 1, k + c, K, end);
                store_rows<M>(out + c, K, acc);
            }
            for (int r = 0; r < M; ++r) {
                const long i = t + i0 + r;
                if (call.read) call.read[part.row(call, i)] = dot(q + (i0 + r) * K, past + r * K, K);
                finish(dqs.at(i), out + r * K, qs.at(i), call.K, call.map, call.scale);
            }
        });
        if (call.states) {
            float* kept = call.states + head.chunk(t) * (V * K + K);
            std::fill_n(kept, met ? 0 : V * K + K, 0.0f);
            if (met) std::copy_n(z, K, std::copy_n(S, V * K, kept));
        }
        const float keep = !met ? 0.0f : fades ? decay.whole : 1.0f;
        const float* added = fades ? head.faded(k_left, k, K, decay.until, n, K) : k;
        accumulate(S, K, V, K, v, V, added, K, n, keep);
        add_rows(z, added, K, n, keep, nullptr);
        met = true;
    }
}

// dk, dv of a part and the gradient of the state before it, backwards in time.
static void backward_keys(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V, C = head.C, width = head.width;
    Room room{memory};
    float* q = room.take<float>(C * K);
    float* k = room.take<float>(C * K);
    float* v = room.take<float>(C * V);
    float* q_across = room.take<float>(K * width);
    float* dn_across = room.take<float>(V * width);
    float* q_left = room.take<float>(C * K);
    float* dn = room.take<float>(C * V);
    float* dd = room.take<float>(width);
    float* A = room.take<float>(MR * width);
    float* P = room.take<float>(MR * width);
    float* R = room.take<float>(K * V);
    float* R_across = room.take<float>(V * K);
    float* m = room.take<float>(K);
    float* out = room.take<float>(MR * K);
    float* past = room.take<float>(MR * K);
    float* X = room.take<float>(MR * width);
    float* crossing = room.take<float>(C);
    float* spare = room.take<float>(NR);
    head.take_decay(room);
    const Decay& decay = head.decay;
    const bool fades = call.g.data;
    std::fill_n(dd, width, 0.0f);
    bool met = head.take_state(R, m, V, part.R, part.m);
    const Rows qs = head.rows(call.q), ks = head.rows(call.k), vs = head.rows(call.v);
    const Rows dks = head.rows(call.dk), dvs = head.rows(call.dv);
    for (long t = (part.length - 1) / C * C; t >= 0; t -= C) {
        const long n = std::min(C, part.length - t);
        pack(q, K, qs.at(t), qs.stride, n, call.K, call.map, call.scale);
        pack(k, K, ks.at(t), ks.stride, n, call.K, call.map, 1.0f);
        pack(v, V, vs.at(t), vs.stride, n, call.V, IDENTITY, 1.0f);
        read_gradients(head, t, n, dn, dd);
        transpose(q_across, width, q, K, n, K);
        transpose(dn_across, width, dn, V, n, V);
        if (met) transpose(R_across, K, R, V, K, V);
        head.read_decay(t, n);
        std::fill_n(crossing, n, 0.0f);
        blocks(n, [&](auto count, long j0) {
            constexpr int M = decltype(count)::value;
            const long begin = j0 / NR * NR;
            for (long i = begin; i < n; i += NR) {
                vec a[M][VECTORS] = {}, p[M][VECTORS] = {};
                multiply<M>(a, k + j0 * K, K, 1, q_across + i, width, K);
                multiply<M>(p, v + j0 * V, V, 1, dn_across + i, width, V);
                for (int r = 0; r < M; ++r)
                    for (int c = 0; c < VECTORS; ++c) {
                        const long j = j0 + r, first = i + c * W;
                        vec w = splat(1.0f);
                        if (fades) w = decay.between(j, first, -1.0f, j, decay.to[j]);
                        const vec weight = a[r][c] * w, change = p[r][c] + load(dd + first);
                        store(A + r * width + first, weight);
                        store(P + r * width + first, change * w);
                        if (call.dg) store(X + r * width + first, weight * change);
                    }
            }
            for (int r = 0; r < M; ++r) {
                std::fill(A + r * width + begin, A + r * width + j0 + r, 0.0f);
                std::fill(P + r * width + begin, P + r * width + j0 + r, 0.0f);
            }
            for (long c = 0; c < V; c += NR) {
                vec acc[M][VECTORS] = {};
                if (met) multiply<M>(acc, k + j0 * K, K, 1, R + c, V, K);
                if (met && fades) scale_rows<M>(acc, decay.until + j0);
                multiply<M>(acc, A + j0, width, 1, dn + j0 * V + c, V, n - j0);
                for (int r = 0; r < M; ++r) {
                    float* at = dvs.at(t + j0 + r) + c;
                    const bool whole = c + NR <= call.V;
                    for (int s = 0; s < VECTORS; ++s)
                        store((whole ? at : spare) + s * W, acc[r][s]);
                    if (!whole) std::copy_n(spare, call.V - c, at);
                }
            }
            for (long c = 0; c < K; c += NR) {
                vec acc[M][VECTORS] = {};
                if (met) multiply<M>(acc, v + j0 * V, V, 1, R_across + c, K, V);
                if (met) add_row<M>(acc, m + c, nullptr);
                if (met && fades) scale_rows<M>(acc, decay.until + j0);
                if (call.dg) store_rows<M>(past + c, K, acc);
                multiply<M>(acc, P + j0, width, 1, q + j0 * K + c, K, n - j0);
                store_rows<M>(out + c, K, acc);
            }
            for (int r = 0; r < M; ++r) {
                const long j = t + j0 + r;
                if (call.dg) {
                    call.written[part.row(call, j)] = dot(k + (j0 + r) * K, past + r * K, K);
                    float later = 0.0f;
                    for (long i = n - 1; i > j0 + r; --i) crossing[i] += later += X[r * width + i];
                }
                finish(dks.at(j), out + r * K, ks.at(j), call.K, call.map, 1.0f);
            }
        });
        if (call.dg) {
            for (long i = 0; i < n; ++i) call.dg[part.row(call, t + i)] = crossing[i];
            const float* before = call.states + head.chunk(t) * (V * K + K);
            call.through[head.chunk(t)] =
                met ? decay.whole * (dot(before, R_across, V * K) + dot(before + V * K, m, K)) : 0.0f;
        }
        const float keep = !met ? 0.0f : fades ? decay.whole : 1.0f;
        const float* added = fades ? head.faded(q_left, q, K, decay.since, n, K) : q;
        accumulate(R, V, K, V, added, K, dn, V, n, keep);
        add_rows(m, added, K, n, keep, dd);
        met = true;
    }
    if (part.S_after) {
        copy_rows(part.S_after, call.V, R, V, call.K, call.V);
        std::copy_n(m, call.K, part.z_after);
    }
}

// One tick of a state [rows, columns]: S = keep S + write_rows write_columns^T, out = read_rows S.
INLINE void tick(float* S, long width, long rows, long columns, const float* write_rows,
                 const float* write_columns, const float* read_rows, float keep, float* out) {
    for (long c = 0; c < columns; c += NR) {
        vec written[VECTORS], total[VECTORS] = {};
        UNROLL
        for (int s = 0; s < VECTORS; ++s) written[s] = load(write_columns + c + s * W);
        float* row = S + c;
        for (long i = 0; i < rows; ++i, row += width) {
            const float write = write_rows[i], read = read_rows[i];
            UNROLL
            for (int s = 0; s < VECTORS; ++s) {
                const vec after = load(row + s * W) * keep + written[s] * write;
                store(row + s * W, after);
                total[s] += after * read;
            }
        }
        UNROLL
        for (int s = 0; s < VECTORS; ++s) store(out + c + s * W, total[s]);
    }
}

// Recurrent mode: o, den and the state after a part of a head, token by token.
static void forward_tokens(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V;
    Room room{memory};
    float* q = room.take<float>(K);
    float* k = room.take<float>(K);
    float* v = room.take<float>(V);
    float* o = room.take<float>(V);
    float* own = room.take<float>(K * V);
    float* z = room.take<float>(K);
    const bool in_place = part.S_after && V == call.V && K == call.K;
    float* S = in_place ? part.S_after : own;
    if (!head.take_state(S, z, V, part.S, part.z)) std::fill_n(S, call.K * V, 0.0f);
    const Rows qs = head.rows(call.q), ks = head.rows(call.k), vs = head.rows(call.v);
    const Rows os = head.rows(call.o);
    for (long t = 0; t < part.length; ++t) {
        pack(q, K, qs.at(t), 0, 1, call.K, call.map, call.scale);
        pack(k, K, ks.at(t), 0, 1, call.K, call.map, 1.0f);
        pack(v, V, vs.at(t), 0, 1, call.V, IDENTITY, 1.0f);
        const float keep = head.kept_at(t);
        add_rows(z, k, K, 1, keep, nullptr);
        tick(S, V, call.K, V, k, v, q, keep, o);
        float divided = 1.0f;
        if (call.normalize) {
            const float den = dot(q, z, K);
            call.den[part.row(call, t)] = den;
            divided = 1.0f / (den + call.eps);
        }
        float* to = os.at(t);
        for (long c = 0; c < call.V; ++c) to[c] = o[c] * divided;
    }
    if (!in_place && part.S_after) copy_rows(part.S_after, call.V, S, V, call.K, call.V);
    if (part.z_after) std::copy_n(z, call.K, part.z_after);
}

// dq of recurrent mode.
static void queries_by_token(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V;
    Room room{memory};
    float* q = room.take<float>(K);
    float* k = room.take<float>(K);
    float* v = room.take<float>(V);
    float* dn = room.take<float>(V);
    float* dd = room.take<float>(1);
    float* out = room.take<float>(K);
    float* S = room.take<float>(V * K);  // transposed
    float* z = room.take<float>(K);
    std::fill_n(S, V * K, 0.0f);
    std::fill_n(z, K, 0.0f);
    if (part.S) {
        transpose(S, K, part.S, call.V, call.K, call.V);
        std::copy_n(part.z, call.K, z);
    }
    const Rows qs = head.rows(call.q), ks = head.rows(call.k), vs = head.rows(call.v);
    const Rows dqs = head.rows(call.dq);
    for (long t = 0; t < part.length; ++t) {
        pack(q, K, qs.at(t), 0, 1, call.K, call.map, call.scale);
        pack(k, K, ks.at(t), 0, 1, call.K, call.map, 1.0f);
        pack(v, V, vs.at(t), 0, 1, call.V, IDENTITY, 1.0f);
        read_gradients(head, t, 1, dn, dd);
        const float keep = head.kept_at(t);
        add_rows(z, k, K, 1, keep, nullptr);
        tick(S, K, call.V, K, v, k, dn, keep, out);
        for (long c = 0; c < K; c += W) store(out + c, load(out + c) + load(z + c) * *dd);
        finish(dqs.at(t), out, qs.at(t), call.K, call.map, call.scale);
    }
}

// dk, dv of recurrent mode and the gradient of the state before it, backwards in time.
static void keys_by_token(const Call& call, const Part& part, char* memory) {
    Head head(call, part);
    const long K = head.K, V = head.V;
    Room room{memory};
    float* q = room.take<float>(K);
    float* k = room.take<float>(K);
    float* v = room.take<float>(V);
    float* dn = room.take<float>(V);
    float* dd = room.take<float>(1);
    float* out_k = room.take<float>(K);
    float* out_v = room.take<float>(V);
    float* R = room.take<float>(K * V);
    float* R_across = room.take<float>(V * K);
    float* m = room.take<float>(K);
    if (!head.take_state(R, m, V, part.R, part.m)) std::fill_n(R, K * V, 0.0f);
    transpose(R_across, K, R, V, K, V);
    const Rows qs = head.rows(call.q), ks = head.rows(call.k), vs = head.rows(call.v);
    const Rows dks = head.rows(call.dk), dvs = head.rows(call.dv);
    float keep = 1.0f;  // of the token after
    for (long t = part.length - 1; t >= 0; --t) {
        pack(q, K, qs.at(t), 0, 1, call.K, call.map, call.scale);
        pack(k, K, ks.at(t), 0, 1, call.K, call.map, 1.0f);
        pack(v, V, vs.at(t), 0, 1, call.V, IDENTITY, 1.0f);
        read_gradients(head, t, 1, dn, dd);
        add_rows(m, q, K, 1, keep, dd);
        tick(R, V, call.K, V, q, dn, k, keep, out_v);
        tick(R_across, K, call.V, K, dn, q, v, keep, out_k);
        for (long c = 0; c < K; c += W) store(out_k + c, load(out_k + c) + load(m + c));
        finish(dks.at(t), out_k, ks.at(t), call.K, call.map, 1.0f);
        std::copy_n(out_v, call.V, dvs.at(t));
        keep = head.kept_at(t);
    }
    if (!part.S_after) return;
    for (long r = 0; r < call.K; ++r) {
        for (long c = 0; c < call.V; ++c) part.S_after[r * call.V + c] = R[r * V + c] * keep;
        part.z_after[r] = m[r] * keep;
    }
}

static int64_t room(const Call& call) {
    const long K = padded(call.K), V = padded(call.V), C = std::min<long>(call.C, call.T);
    const long width = padded(C);
    const long tokens = 3 * (K + V) + 16, across = K + V + 4 * MR + 16;
    return 4 * (C * tokens + width * across + 3 * K * V + 4 * (K + V) + 4 * MR * (K + NR)) + 64 * 40;
}

static int64_t state(const Call& call) { return padded(call.K) * (padded(call.V) + 1); }

static const Body body = {NAME, forward_chunks, forward_tokens, local_sums,       backward_queries,
                          backward_keys, queries_by_token, keys_by_token, room, state};
