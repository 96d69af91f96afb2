/* Elementary functions without branches or calls, so that a compiler makes loops over vectors of them. Errors are about a unit in
   the last place of double precision. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is added to a number below 2**51 and subtracted again rounds it to a whole one, which its last bits then hold. */
#define WHOLE 6755399441055744.0
#define LOG2_E 1.4426950408889634
/* The first part of log(2) has so few digits that its product with a whole exponent is exact. */
#define LOG_2_HIGH 0.693147180369123816490
#define LOG_2_LOW 1.90821492927058770002e-10

static inline int64_t bits_of(double x) { int64_t bits; memcpy(&bits, &x, 8); return bits; }
static inline double of_bits(int64_t bits) { double x; memcpy(&x, &bits, 8); return x; }

/* 2**n for whole n from -1022 to 1023. */
static inline double power_of_2(double n) { return of_bits((bits_of(n + WHOLE) - bits_of(WHOLE) + 1023) << 52); }

/* (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2: the series, whose next term is below the rounding. */
static inline double exp_tail(double r) {
    double p = 1.0 / 87178291200.0;
    p = p * r + 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    return p * r + 0.5;
}

static inline double exp_of(double x) {
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double n = (x * LOG2_E + WHOLE) - WHOLE;
    double r = (x - n * LOG_2_HIGH) - n * LOG_2_LOW;
    double p = 1.0 + (r + r * r * exp_tail(r));
    /* In two steps, for results that are subnormal or infinite. */
    double half = (n * 0.5 + WHOLE) - WHOLE;
    return p * power_of_2(half) * power_of_2(n - half);
}

static inline double expm1_of(double x) {
    double y = x < -746.0 ? -746.0 : x;
    y = y > 709.0 ? 709.0 : y;
    double n = (y * LOG2_E + WHOLE) - WHOLE;
    n = n > 1023.0 ? 1023.0 : n;
    n = n < -64.0 ? -64.0 : n;
    y = y < -45.0 ? -45.0 : y;
    double r = (y - n * LOG_2_HIGH) - n * LOG_2_LOW;
    double scale = power_of_2(n);
    double value = scale * (r + r * r * exp_tail(r)) + (scale - 1.0);
    value = x > 709.0 ? exp_of(x) : value;
    return x == 0.0 ? x : value;
}

/* log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), and m from sqrt(1/2) to sqrt(2). */
static inline double log_of(double x) {
    double is_small = x < 2.2250738585072014e-308 ? 54.0 : 0.0;
    double y = is_small != 0.0 ? x * 18014398509481984.0 : x;
    int64_t bits = bits_of(y);
    int64_t above = bits - 0x3fe6a09e667f3bcdLL;
    /* The exponent without a conversion from whole numbers, which not every processor has for vectors. */
    double n = of_bits(((above >> 52) & 0xfff) + bits_of(WHOLE)) - WHOLE;
    n = n > 2047.0 ? n - 4096.0 : n;
    double m = of_bits(bits - (above & (int64_t)0xfff0000000000000ULL));
    double f = m - 1.0, s = f / (2.0 + f), t = s * s;
    double p = 0.14798198605116585;
    p = p * t + 0.15313837699209373;
    p = p * t + 0.18183572161618051;
    p = p * t + 0.22222198432149784;
    p = p * t + 0.28571428743662391;
    p = p * t + 0.39999999999409419;
    p = p * t + 0.6666666666666735;
    double half = 0.5 * f * f, e = n - is_small;
    double value = e * LOG_2_HIGH + (f - (half - (s * (half + p * t) + e * LOG_2_LOW)));
    value = x == 0.0 ? -INFINITY : value;
    value = x == INFINITY ? x : value;
    return x >= 0.0 ? value : NAN;
}

/* The rounding of 1 + x is added again. */
static inline double log1p_of(double x) {
    double u = 1.0 + x, left = u > 1.0e300 ? 0.0 : (x - (u - 1.0)) / u;
    double value = log_of(u) + (u > 0.0 ? left : 0.0);
    return fabs(x) < 1e-300 ? x : value;
}

static inline double sigmoid_of(double x) {
    double small = exp_of(-fabs(x));
    return (x < 0.0 ? small : 1.0) / (1.0 + small);
}

static inline double softplus_of(double x) { return (x < 0.0 ? 0.0 : x) + log1p_of(exp_of(-fabs(x))); }

static inline double tanh_of(double x) {
    double less = expm1_of(-2.0 * fabs(x)), value = -less / (2.0 + less);
    return x < 0.0 ? -value : value;
}

/* What the rounding of first - second - third leaves; that of what is infinite is 0. */
static inline double rounding_of(double first, double second, double third) {
    double high = first - second, part = high - first;
    double low = (first - (high - part)) - (second + part);
    double total = high - third;
    part = total - high;
    low += (high - (total - part)) - (third + part);
    return fabs(total) < INFINITY ? low : 0.0;
}

/* Sigmoid and softplus of a sum of which the second part is small. */
static inline double sigmoid_of_two(double high, double low) { return sigmoid_of(high) * (1.0 + sigmoid_of(-high) * low); }
static inline double softplus_of_two(double high, double low) { return softplus_of(high) + sigmoid_of(high) * low; }

/* Powers of numbers >= 0 by a logarithm lose no digit that single precision has. */
static inline double power_in_single(double x, double exponent) {
    double value = exp_of(exponent * log_of(x));
    return exponent == 0.0 ? 1.0 : value;
}

/* The largest number of a row, and where it is first; NaN is never the largest. */
static inline double top_of(const double *restrict x, int64_t n) {
    double height = -INFINITY;
    #pragma omp simd reduction(max:height)
    for (int64_t j = 0; j < n; j++) height = x[j] > height ? x[j] : height;
    return height;
}

static inline int64_t place_of(const double *restrict x, int64_t n, double height) {
    int64_t place = n;
    #pragma omp simd reduction(min:place)
    for (int64_t j = 0; j < n; j++) {
        const int64_t here = x[j] == height ? j : n;
        place = here < place ? here : place;
    }
    return place < n ? place : 0;
}

/* The k largest of a row, descending, which are replaced by -inf one after the other: by the maxima of blocks. */
#define BLOCK 32
static inline void split_largest(double *restrict x, int64_t n, int k, double *restrict tops, double *heights, int64_t *places) {
    const int64_t blocks = (n + BLOCK - 1) / BLOCK;
    for (int64_t b = 0; b + 1 < blocks; b++) tops[b] = top_of(x + b * BLOCK, BLOCK);
    tops[blocks - 1] = top_of(x + (blocks - 1) * BLOCK, n - (blocks - 1) * BLOCK);
    for (int i = 0; i < k; i++) {
        heights[i] = top_of(tops, blocks);
        const int64_t b = place_of(tops, blocks, heights[i]), size = b + 1 < blocks ? BLOCK : n - b * BLOCK;
        places[i] = b * BLOCK + place_of(x + b * BLOCK, size, heights[i]);
        x[places[i]] = -INFINITY;
        tops[b] = top_of(x + b * BLOCK, size);
    }
}
