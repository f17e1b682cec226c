// Linear attention for one instruction set: included once for each, inside a namespace of its own.
//
// Before it come NAME; BYTES, the width of a vector; ROWS and VECTORS, the shape of a block of
// registers; Call and Part (body.cpp). A product of matrices is a walk of such blocks: ROWS numbers
// of the left matrix are each multiplied with VECTORS vectors of the right one, so that a number
// loaded is used many times. All rows here are padded with zeros to whole blocks.
//
// Everything is one causal sum over chunks of C tokens, with weights w_ij <= 1 of decay:
//   out_i = sum over j <= i of w_ij (a_i.b_j + c_i d_j) y_j
//         = read_i (a_i S + c_i e) + M y      M_ij = w_ij (a_i.b_j + c_i d_j), j <= i, in the chunk
//   S'    = whole S + b^T write y,   e' = whole e + d^T write y,   z' = whole z + sum of write b
// With dn = do / den, dd = -(do.o) / den, and time running backwards for dk and dv:
//   o: a, b, y = q, k, v, over den_i = sum of M + q_i.z     dq: dn, v, k, with c = dd
//   dk: v, dn, q, with d = dd                               dv: k, q, dn

typedef float vec __attribute__((vector_size(BYTES)));
typedef float unaligned __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(BYTES)));
typedef uint32_t words __attribute__((vector_size(BYTES)));
typedef uint16_t halves __attribute__((vector_size(BYTES / 2)));
constexpr int64_t W = BYTES / 4, NR = W * VECTORS, MR = ROWS;

// The first n floats, and zeros behind them.
INLINE vec load(const float* p, int64_t n = W) {
    if (n >= W) return *reinterpret_cast<const unaligned*>(p);
    vec x = {};
    __builtin_memcpy(&x, p, 4 * n);
    return x;
}
INLINE void store(float* p, vec x, int64_t n = W) {
    if (n >= W) *reinterpret_cast<unaligned*>(p) = x;
    else __builtin_memcpy(p, &x, 4 * n);
}
INLINE vec splat(float x) { return vec{} + x; }
INLINE int64_t padded(int64_t n) { return (n + NR - 1) / NR * NR; }
// a and b interleaved, from element `first` on: a[first], b[first], a[first + 1], ...
template <int first, int... I>
INLINE vec zipped(vec a, vec b, std::integer_sequence<int, I...>) {
    return SHUFFLE(a, b, (first + I / 2 + I % 2 * int(W))...);
}
using Lanes = std::make_integer_sequence<int, W>;
// first, first + 1, ...
INLINE ints places(int64_t first) {
    ints x = {};
    UNROLL
    for (int i = 0; i < W; ++i) x[i] = i;
    return x + int32_t(first);
}
template <int64_t n = W / 2>
INLINE float sum(vec x) {
    if constexpr (n == 0) return x[0];
    else return sum<n / 2>(zipped<0>(x, x, Lanes{}) + zipped<W / 2>(x, x, Lanes{}));
}

// A row of a tensor: float32 or, if `half`, bfloat16, which is the upper half of float32.
struct Row {
    char* at;
    bool half = false;
    Row(const float* x) : at(reinterpret_cast<char*>(const_cast<float*>(x))) {}
    Row(const Tensor4& x, const Part& p, int64_t t) : at(x.data), half(x.half) {
        at += (p.b * x.batch + p.h * x.head + t * x.time) * (half ? 2 : 4);
    }
    // The vector from element c on; n elements are left.
    INLINE vec get(int64_t c, int64_t n) const {
        if (!half) return load(reinterpret_cast<float*>(at) + c, n);
        halves x = {};
        __builtin_memcpy(&x, at + 2 * c, 2 * std::min(n, W));
        return vec(__builtin_convertvector(x, words) << 16);
    }
    // Rounds to nearest, ties to even. NaN stays NaN.
    INLINE void put(int64_t c, vec x, int64_t n) const {
        if (!half) return store(reinterpret_cast<float*>(at) + c, x, n);
        words bits = words(x);
        bits += ((bits >> 16) & 1) + 0x7fff;
        bits = x == x ? bits : words{} + 0x7fc00000;
        const halves near = __builtin_convertvector(bits >> 16, halves);
        __builtin_memcpy(at + 2 * c, &near, 2 * std::min(n, W));
    }
    // Its first n elements will be wanted soon.
    INLINE void soon(int64_t n) const {
        for (int64_t i = 0; i < n * (half ? 2 : 4); i += 64) __builtin_prefetch(at + i, 0, 2);
    }
};
// f(c, left, map) for each vector of n floats. Where it is whole, left is a constant, as map is.
template <int M = RELU, class F>
INLINE void vectors(int64_t n, int map, const F& f) {
    if constexpr (M != IDENTITY)
        if (map != M) return vectors<M - 1>(n, map, f);
    const std::integral_constant<int, M> known{};
    int64_t c = 0;
    for (; c + W <= n; c += W) f(c, std::integral_constant<int64_t, W>{}, known);
    if (c < n) f(c, n - c, known);
}
INLINE float dot(Row a, Row b, int64_t n) {
    vec total = vec{};
    vectors(n, IDENTITY, [&](int64_t c, auto n, auto) { total += a.get(c, n) * b.get(c, n); });
    return sum(total);
}

// exp to about one unit in the last place; 0 below -87, near the smallest normal number.
INLINE vec exponential(vec x) {
    const vec shift = splat(12582912.0f);  // 1.5 * 2^23: the sum's last bits are a whole number
    vec bounded = x < splat(-87.0f) ? splat(-87.0f) : x;
    bounded = bounded > splat(88.72f) ? splat(88.72f) : bounded;
    const vec t = bounded * 1.44269504f + shift, n = t - shift;
    const vec r = bounded - n * 0.693359375f + n * 2.12194440e-4f;
    vec p = splat(1.9875691500e-4f);
    for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f,
                    5.0000001201e-1f})
        p = p * r + c;
    p = vec(ints(p * r * r + r + 1.0f) + (ints(t) << 23));  // times 2^n
    return x < splat(-87.0f) ? vec{} : x == x ? p : x;  // NaN stays NaN
}

// A feature map of x, or its derivative there.
INLINE vec phi(vec x, int map, bool derived = false) {
    const vec one = splat(1.0f);
    if (map == RELU) return derived ? (x > vec{} ? one : vec{}) : (x < vec{} ? vec{} : x);
    if (map == ELU_PLUS_ONE) return x > vec{} ? (derived ? one : x + one) : exponential(x);
    return derived ? one : x;
}

// One block: acc[r] += sum over p < n of a[r * row + p * step] times row p of b.
template <int M, int N>
INLINE void multiply(vec (&acc)[M][N], const float* a, int64_t row, int64_t step, const float* b,
                     int64_t width, int64_t n) {
    for (int64_t p = 0; p < n; ++p, a += step, b += width) {
        vec right[N];
        UNROLL
        for (int v = 0; v < N; ++v) right[v] = load(b + v * W);
        UNROLL
        for (int r = 0; r < M; ++r) {
            const float left = a[r * row];
            UNROLL
            for (int v = 0; v < N; ++v) acc[r][v] += right[v] * left;
        }
    }
}

// f of each vector of a block, of its row, and of its first column.
template <int M, int N, class F>
INLINE void each(vec (&acc)[M][N], F f) {
    UNROLL
    for (int r = 0; r < M; ++r) {
        UNROLL
        for (int v = 0; v < N; ++v) f(acc[r][v], r, v * int(W));
    }
}

struct Matrix {
    const float* at;
    int64_t row;
    const float* operator[](int64_t i) const { return at + i * row; }
};

// Calls f with the number of rows, a constant, for each block of at most ROWS rows of n.
template <int M = ROWS, class F>
INLINE void blocks(int64_t n, const F& f, int64_t at = 0) {
    if constexpr (M == ROWS)
        for (; at + M <= n; at += M) f(std::integral_constant<int, M>{}, at);
    else if (at + M == n) return f(std::integral_constant<int, M>{}, at);
    if constexpr (M > 1) blocks<M - 1>(n, f, at);
}

// out = keep * out + a^T b; a [n, rows], b and out of whole blocks of columns. Where keep is 0, out
// is not read.
static void accumulate(float* out, int64_t rows, int64_t width, Matrix a, Matrix b, int64_t n,
                       float keep) {
    blocks(rows, [&](auto count, int64_t r0) {
        constexpr int M = decltype(count)::value;
        for (int64_t c = 0; c < width; c += NR) {
            vec acc[M][VECTORS] = {};
            multiply(acc, a.at + r0, 1, a.row, b.at + c, b.row, n);
            each(acc, [&](vec x, int r, int v) {
                float* at = out + (r0 + r) * width + c + v;
                store(at, keep == 0.0f ? x : load(at) * keep + x);
            });
        }
    });
}

// out[c][r] = x[r][c], in squares of W. Interleaving the first half of the rows with the second
// moves the highest bit of a row's index to the column's lowest, and a column's to the row's lowest.
static void transpose(float* out, int64_t width, Matrix x, int64_t rows, int64_t columns) {
    for (int64_t r0 = 0; r0 < rows; r0 += W)
        for (int64_t c0 = 0; c0 < columns; c0 += W) {
            vec tile[W], next[W];
            UNROLL
            for (int64_t r = 0; r < W; ++r)
                tile[r] = r0 + r < rows ? load(x[r0 + r] + c0, columns - c0) : vec{};
            UNROLL
            for (int64_t n = 1; n < W; n *= 2) {
                UNROLL
                for (int64_t r = 0; r < W; ++r)
                    next[r] = r % 2 ? zipped<W / 2>(tile[r / 2], tile[(r + W) / 2], Lanes{})
                                    : zipped<0>(tile[r / 2], tile[(r + W) / 2], Lanes{});
                UNROLL
                for (int64_t r = 0; r < W; ++r) tile[r] = next[r];
            }
            for (int64_t c = 0; c < std::min(W, columns - c0); ++c)
                store(out + (c0 + c) * width + r0, tile[c]);
        }
}

// The weights of decay inside a chunk, in the order of processing. A g below RESET is a reset: the
// running sum of g starts again behind it, so that later sums keep their digits. A sum is stored as
// two floats, high + low, whose differences are as good as exact. Where a whole chunk decays little
// (`gentle`), a weight is a product of two exponentials; else each pair takes one of its own.
struct Decay {
    float *high, *low;
    float *read, *write;  // factors of the state before, at each token; of each token, at the end
    float* grown;         // exp(-sum)
    int32_t* from;        // the first token that no reset hides from this one
    float whole = 1.0f, sign = 1.0f;
    bool gentle = false;

    void take(const float* g, int64_t step, int64_t n, bool back) {
        double total = 0;
        int32_t first = int32_t(n), last = 0;  // resets
        for (int64_t i = 0; i < n; ++i) {
            total += g[i * step];
            if (g[i * step] < RESET) total = 0, last = int32_t(i), first = std::min(first, last);
            high[i] = float(total);
            low[i] = float(total - high[i]);
            from[i] = last;
        }
        for (int64_t i = 0; i < n; i += W) {
            const vec h = load(high + i), l = load(low + i);
            const vec rest = (splat(high[n - 1]) - h) + (splat(low[n - 1]) - l);
            store(grown + i, exponential(-h) * (1.0f - l));
            store(read + i, places(i) < first ? exponential(h) * (l + 1.0f) : vec{});
            store(write + i, places(i) < last ? vec{} : exponential(rest));
        }
        gentle = first == n && total > -60.0;
        whole = read[n - 1];
        sign = back ? -1.0f : 1.0f;
        if (!back) return;
        for (int64_t j = n - 1, end = n; j >= 0; --j) {
            from[j] = int32_t(n - end);
            if (g[j * step] < RESET) end = j;
        }
        std::swap(read, write);
        std::reverse(from, from + n);
        for (float* x : {high, low, read, write, grown}) std::reverse(x, x + n);
    }

    // Weights of the tokens first, first + 1, ... of one vector at token i.
    INLINE vec between(int64_t i, int64_t first) const {
        if (gentle)
            return sign > 0 ? load(grown + first) * read[i] : load(write + first) * grown[i];
        vec gap = (splat(high[i]) - load(high + first)) + (splat(low[i]) - load(low + first));
        const ints outside = (places(first) < from[i]) | (places(first) > int32_t(i));
        return outside ? vec{} : exponential(outside ? vec{} : gap * sign);
    }
};

// Hands out memory of a sum in whole lines. Where it is null, they are only counted.
struct Room {
    char* memory;
    int64_t bytes = 0;
    float* operator()(int64_t n) {
        char* found = memory ? memory + bytes : nullptr;
        bytes += (4 * n + 63) / 64 * 64;
        return reinterpret_cast<float*>(found);
    }
};

// One of the tensors of a sum, as rows of one head.
struct Rows {
    const Call& call;
    const Part& part;
    Name name;
    const Tensor4& x = call.x[name];
    bool mapped = name == Q || name == KEYS, wide = mapped || name == DQ || name == DK;
    int64_t columns = wide ? call.K : call.V, width = padded(columns);
    int map = mapped ? int(call.map) : IDENTITY;
    float times = name == Q ? call.scale : 1.0f;

    Row row(int64_t t) const { return {x, part, t}; }
    // Rows t, t + step, ... of the head, n of them, mapped and padded: copied to `room`, or in
    // place where nothing changes. Those of the gradient are dn, and fill dd.
    Matrix take(float* room, float* dd, int64_t t, int64_t step, int64_t n) const {
        const bool divides = name == GRADIENT && call.normalize;
        if (!x.half && !divides && map == IDENTITY && times == 1.0f && columns == width &&
            x.time == width)
            return {reinterpret_cast<float*>(row(t).at), step * width};
        float* out = room;
        for (int64_t r = 0; r < n; ++r, out += width) {
            const Row from = row(t + r * step);
            float scale = times;
            if (divides) {
                const int64_t i = t + r * step;
                scale = 1.0f / (call.den[call.row(part, i)] + call.eps);
                dd[r] = -scale * dot(from, {call.x[OUT], part, i}, columns);
            }
            vectors(columns, map, [&](int64_t c, auto left, auto map) {
                store(out + c, phi(from.get(c, left), map) * scale);
            });
            std::fill(out + columns, out + width, 0.0f);
        }
        return {room, width};
    }
};

// x = keep x + the sum of rows, each times a number. Few rows at a time are added to a sum of many:
// one by one, they would lose their last digits to it.
static void add_rows(float* x, Matrix rows, int64_t width, int64_t n, float keep,
                     const float* times) {
    for (int64_t c = 0; c < width; c += W) {
        vec total = keep == 0.0f ? vec{} : load(x + c) * keep, some = {};
        for (int64_t r = 0; r < n; ++r) {
            some += load(rows[r] + c) * times[r];
            if (r % 64 == 63) total += some, some = vec{};
        }
        store(x + c, total + some);
    }
}
static void copy_rows(float* to, int64_t to_width, const float* from, int64_t from_width,
                      int64_t rows, int64_t columns) {
    for (; rows > 0; --rows, from += from_width, to += to_width) std::copy_n(from, columns, to);
}

// dg of a chunk, whose row r is token t - r. exp(g_t) scales what each token i >= t reads of a token
// j < t. With both in the chunk this is summed here, from their products G; with j before the chunk
// it is in dg, at i; with i behind it in `inside`, at j; `through` has both outside. These are only
// added: differences lose digits.
static void decay_gradient(const Call& call, const Part& part, float* G, float* inside,
                           const float* ones, int64_t t, int64_t n, double through) {
    const int64_t width = padded(call.C);
    float* before = G + n * width;  // the rows j < t
    std::fill_n(before, width, 0.0f);
    for (int64_t r = n - 1; r >= 0; --r) {
        const float written = inside[r];
        inside[r] = dot(before, ones, r + 1) + float(through);
        through += written;
        add_rows(before, {G + r * width, 0}, (r + W - 1) / W * W, 1, 1.0f, ones);
    }
    double read = 0;
    for (int64_t r = 0; r < n; ++r) {
        float& dg = call.dg[call.row(part, t - r)];
        read += dg;
        const Row g = {call.g, part, t - r};
        dg = *reinterpret_cast<float*>(g.at) < RESET ? 0.0f : float(read) + inside[r];
    }
}

// A causal sum; before the part's first chunk only the state is advanced. Returns the bytes of
// memory that it takes; without memory it does no more.
static int64_t causal_sum(const Call& call, const Part& part, char* memory) {
    static const Name OF[][3] = {{Q, KEYS, VALUES}, {}, {GRADIENT, VALUES, KEYS},
                                 {VALUES, GRADIENT, Q}, {KEYS, Q, GRADIENT}};
    const Name kind = part.kind, *of = OF[kind - OUT];
    const bool back = kind == DK || kind == DV, across = kind == DQ || kind == DK;
    const Rows as{call, part, of[0]}, bs{call, part, of[1]}, ys{call, part, of[2]};
    const int64_t C = call.C, width = padded(C), K = as.width, Y = ys.width, N = call.chunks();
    const bool fades = call.g.data, probes = call.dg && across, pairs = call.dg && kind == DK;
    Room take{memory};
    float *a_room = take(C * K), *b_room = take(C * K), *b_across = take(K * width);
    float *y_room = take(C * Y), *y_left = take(C * Y), *A = take(MR * width);
    float *out = take(MR * Y), *past = take(MR * Y), *S = take(K * Y), *e = take(Y), *z = take(K);
    float *ones = take(width), *dd = take(width), *left = take(width);
    float *probe_room = take(probes * C * Y), *y_across = take(probes * Y * width);
    float *G = take(probes * (C + 1) * width), *inside = take(probes * width);
    Decay decay{take(width), take(width), take(width), take(width), take(width),
                reinterpret_cast<int32_t*>(take(width))};
    if (!memory) return take.bytes;
    const Rows to{call, part, kind}, raw{call, part, kind == DQ ? Q : kind == DK ? KEYS : VALUES};
    std::fill_n(ones, width, 1.0f), std::fill_n(dd, width, 0.0f);
    const float *c = kind == DQ ? dd : ones, *d = kind == DK ? dd : ones;
    const int map = across ? int(call.map) : int(IDENTITY);
    const int64_t head = part.b * call.H + part.h, KV = call.K * call.V;
    auto of_head = [&](float* x, int64_t n) { return x ? x + head * n : nullptr; };
    const float *S_0 = of_head(back ? call.dS_T : call.S, KV);
    const float *z_0 = of_head(back ? call.dz_T : call.z, call.K);
    const bool returns = part.end == N && !across;
    float *S_N = returns ? of_head(back ? call.dS : call.S_T, KV) : nullptr;
    float *z_N = returns ? of_head(back ? call.dz : call.z_T, call.K) : nullptr;
    if (kind == OUT && S_N && Y == call.V && K == call.K) S = S_N;
    bool met = S_0 || z_0;  // a state: at the beginning there may be none
    if (met || N == 0)
        std::fill_n(S, K * Y, 0.0f), std::fill_n(e, Y, 0.0f), std::fill_n(z, K, 0.0f);
    if (S_0 && across) transpose(S, Y, {S_0, call.V}, call.K, call.V);
    if (S_0 && !across) copy_rows(S, Y, S_0, call.V, call.K, call.V);
    if (z_0) std::copy_n(z_0, call.K, across ? e : z);
    for (int64_t chunk = 0; chunk < part.end; ++chunk) {
        const bool writes = chunk >= part.first;
        const int64_t start = (back ? N - 1 - chunk : chunk) * C, n = std::min(C, call.T - start);
        const int64_t t = back ? start + n - 1 : start, step = back ? -1 : 1;
        const Matrix b = bs.take(b_room, dd, t, step, n), y = ys.take(y_room, dd, t, step, n);
        const Matrix a = writes ? as.take(a_room, dd, t, step, n) : b;
        const Matrix probe = writes && probes ? raw.take(probe_room, dd, t, step, n) : y;
        if (fades)
            decay.take(reinterpret_cast<float*>(Row(call.g, part, start).at), call.g.time, n, back);
        if (writes) transpose(b_across, width, b, n, K);
        if (writes && pairs) transpose(y_across, width, y, n, Y);
        if (writes) blocks(n, [&](auto count, int64_t i0) {
            constexpr int M = decltype(count)::value;
            const int64_t end = i0 + M;
            // No processor prefetches beyond a page by itself, and a chunk of a head is some pages.
            for (int64_t i = t + (i0 + C) * step, r = 0; r < M; ++r, i += step) {
                if (i < 0 || i >= call.T) break;
                for (const Rows* x : {&as, &bs, &ys, &to, &raw}) x->row(i).soon(x->columns);
                if (kind != OUT) Row(call.x[OUT], part, i).soon(call.V);
            }
            auto weigh = [&](auto vectors, int64_t j) {
                constexpr int N = decltype(vectors)::value;
                vec acc[M][N] = {};
                multiply(acc, a[i0], a.row, 1, b_across + j, width, K);
                each(acc, [&](vec x, int r, int v) {
                    if (across) x += load(d + j + v) * c[i0 + r];
                    if (fades) x *= decay.between(i0 + r, j + v);
                    store(A + r * width + j + v, x);
                });
                if (!pairs) return;
                vec other[M][N] = {};
                multiply(other, probe[i0], probe.row, 1, y_across + j, width, Y);
                each(other, [&](vec x, int r, int v) {
                    store(G + (i0 + r) * width + j + v, load(A + r * width + j + v) * x);
                });
            };
            int64_t j = 0;
            for (; j + NR - W < end; j += NR) weigh(std::integral_constant<int, VECTORS>{}, j);
            for (; j < end; j += W) weigh(std::integral_constant<int, 1>{}, j);
            float divided[M];
            for (int r = 0; r < M; ++r) {
                const int64_t i = i0 + r, last = (end + W - 1) / W * W;
                float* row = A + r * width;
                std::fill(row + i + 1, row + last, 0.0f);
                divided[r] = 1.0f;
                if (kind != OUT || !call.normalize) continue;
                float den = met ? dot(a[i], z, K) * (fades ? decay.read[i] : 1.0f) : 0.0f;
                den += dot(row, ones, last);
                if (call.den) call.den[call.row(part, t + i * step)] = den;
                divided[r] = 1.0f / (den + call.eps);
            }
            for (int64_t at = 0; at < Y; at += NR) {
                vec acc[M][VECTORS] = {};
                auto keep_in = [&](float* rows) {
                    each(acc, [&](vec x, int r, int v) { store(rows + r * Y + at + v, x); });
                };
                if (met) {
                    multiply(acc, a[i0], a.row, 1, S + at, Y, K);
                    auto add_e = [&](vec& x, int r, int v) { x += load(e + at + v) * c[i0 + r]; };
                    if (across) each(acc, add_e);
                    if (fades) each(acc, [&](vec& x, int r, int) { x *= decay.read[i0 + r]; });
                }
                if (probes) keep_in(past);
                multiply(acc, A, width, 1, y.at + at, y.row, end);
                keep_in(out);
            }
            for (int r = 0; r < M; ++r) {
                const int64_t i = t + (i0 + r) * step;
                if (probes)
                    (pairs ? inside[i0 + r] : call.dg[call.row(part, i)]) =
                        dot(probe[i0 + r], past + r * Y, Y);
                const Row row = to.row(i), x = raw.row(i);
                const float times = divided[r] * (kind == DQ ? call.scale : 1.0f);
                vectors(to.columns, map, [&](int64_t at, auto left, auto map) {
                    const vec slope = phi(x.get(at, left), map, true);
                    row.put(at, load(out + r * Y + at) * slope * times, left);
                });
            }
        });
        const float keep = !met ? 0.0f : fades ? decay.whole : 1.0f;
        float* states = probes ? call.states + (head * N + start / C) * (K * Y + Y) : nullptr;
        if (writes && probes && !pairs) {
            std::fill_n(states, met ? 0 : K * Y + Y, 0.0f);
            if (met) std::copy_n(e, Y, std::copy_n(S, K * Y, states));
        }
        if (writes && pairs) decay_gradient(
            call, part, G, inside, ones, t, n,
            met ? keep * (dot(states, S, K * Y) + dot(states + K * Y, e, Y)) : 0.0f);
        if (chunk + 1 == part.end && !S_N && !z_N) break;
        const Matrix written = fades ? Matrix{y_left, Y} : y;
        for (int64_t r = 0; r < (fades ? n : 0); ++r)
            for (int64_t at = 0; at < Y; at += W)
                store(y_left + r * Y + at, load(y[r] + at) * decay.write[r]);
        accumulate(S, K, Y, b, written, n, keep);
        if (across) add_rows(e, written, Y, n, keep, d);
        for (int64_t r = 0; r < n; ++r)
            left[r] = (kind == DV ? dd[r] : 1.0f) * (fades ? decay.write[r] : 1.0f);
        if (!across) add_rows(z, b, K, n, keep, left);
        met = true;
    }
    if (S_N && S_N != S) copy_rows(S_N, call.V, S, Y, call.K, call.V);
    if (z_N) std::copy_n(z, call.K, z_N);
    return take.bytes;
}

static int64_t state(const Call& call) { return padded(call.K) * (padded(call.V) + 1); }

static const Body body = {NAME, causal_sum, state};
