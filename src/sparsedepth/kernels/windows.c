/* Robust quadratic surfaces of windows of a map, as sensors.windows fits them. NaN = missing.
 *
 * A surface has six terms: 1, x, y, x^2, x y, y^2. Its normal equations need fifteen moments of the weights and six of the
 * weighted values. They are added up along columns first. Rows are padded to a multiple of LANES by weights of zero.
 */
#include "kernels.h"
#include "lanes.h"

#define KEY int32_t
#define NAME(name) name##_32
#include "rank.h"
#undef KEY
#undef NAME
#define KEY int64_t
#define NAME(name) name##_64
#include "rank.h"
#undef KEY
#undef NAME

enum { TERMS = 6, ORDERS = 5, SUMS = 8 };
/* ORDERS: of the moments of weights along a column. SUMS: those, and three of the weighted values. */

static const int X_POWERS[TERMS] = {0, 1, 0, 2, 1, 0}, Y_POWERS[TERMS] = {0, 0, 1, 0, 1, 2};
static const double RIDGE = 1e-6;
/* Weight of the unweighted normal equations, which are added so that no system is singular. */

typedef union { float number; int32_t key; } Float;
typedef union { double number; int64_t key; } Double;

/* What the fit of one window works on, in arrays of the caller. */
typedef struct {
    int64_t side, width, n_sample;
    float *x, *y;                         /* places of columns and rows, from -1 to 1 */
    float *values, *known;                /* (side, width); known: 1 or 0 */
    int32_t *rows;                        /* of the sampled pixels, then their columns */
    float *level, *rise;                  /* of the surface along a row: level + rise * x + terms[3] * x^2 */
    float *columns;                       /* (SUMS, width) */
    float *sample_x, *sample_y, *sampled; /* of the valid sampled pixels */
    int32_t *sizes;                       /* of their residuals, as keys */
    int64_t *keys;                        /* of their values */
} Window;

static int64_t padded(int64_t side) { return (side + LANES - 1) / LANES * LANES; }

/* Count the numbers of 32 bits that a fit needs as scratch. */
KERNEL int64_t windows_scratch(int64_t side, int64_t n_sample) {
    return (2 * side + SUMS + 1) * padded(side) + 3 * side + 6 * n_sample;
}

/* Share the scratch out, and place columns and rows. */
static Window window_of(int64_t side, int64_t n_sample, const int64_t *sample, float *scratch, int64_t *keys) {
    Window w = {.side = side, .width = padded(side), .n_sample = n_sample, .keys = keys};
    w.values = scratch, w.known = w.values + side * w.width, w.columns = w.known + side * w.width;
    w.x = w.columns + SUMS * w.width, w.y = w.x + w.width, w.level = w.y + side, w.rise = w.level + side;
    w.sample_x = w.rise + side, w.sample_y = w.sample_x + n_sample, w.sampled = w.sample_y + n_sample;
    w.sizes = (int32_t *)(w.sampled + n_sample), w.rows = w.sizes + n_sample;
    for (int64_t at = 0; at < n_sample; at++) {
        w.rows[at] = (int32_t)(sample[at] / side);
        w.rows[n_sample + at] = (int32_t)(sample[at] % side);
    }
    for (int64_t at = 0; at < side * w.width; at++) w.values[at] = w.known[at] = 0;
    for (int64_t at = 0; at < w.width; at++) w.x[at] = at < side ? (float)(2 * at - side + 1) / (float)side : 0;
    for (int64_t at = 0; at < side; at++) w.y[at] = w.x[at];
    return w;
}

/* Order doubles as whole numbers, and back. */
static int64_t key_of(double number) {
    const int64_t key = ((Double){.number = number}).key;
    return key ^ (key >> 63 & INT64_MAX);
}

static double number_of(int64_t key) { return ((Double){.key = key ^ (key >> 63 & INT64_MAX)}).number; }

/* Compute level and spread of a window, both lower medians of sampled pixels; return how many of these are valid. */
static int64_t standards(const Window *w, int64_t pitch, const double *from, double *level, double *spread) {
    int64_t count = 0;
    for (int64_t at = 0; at < w->n_sample; at++) {
        const double value = from[w->rows[at] * pitch + w->rows[w->n_sample + at]];
        w->keys[count] = key_of(value);
        count += value - value == 0;
    }
    if (!count) return 0;
    *level = number_of(ranked_64(w->keys, count, (count - 1) / 2));
    for (int64_t at = 0; at < count; at++) {
        const double away = number_of(w->keys[at]) - *level;
        w->keys[at] = key_of(away < 0 ? -away : away);
    }
    *spread = number_of(ranked_64(w->keys, count, (count - 1) / 2));
    const double least_spread = 1e-9 * (*level < 0 ? -*level : *level) + 1e-300;
    if (*spread < least_spread) *spread = least_spread;
    return count;
}

/* Cut a window out of a map, its values as differences from the level over the spread. */
static void cut(const Window *w, int64_t pitch, const double *from, double level, double spread) {
    const double inverse = 1 / spread;
    for (int64_t row = 0; row < w->side; row++, from += pitch)
        for (int64_t at = 0; at < w->side; at++) {
            const int valid = from[at] - from[at] == 0;
            w->known[row * w->width + at] = (float)valid;
            w->values[row * w->width + at] = (float)(valid ? (from[at] - level) * inverse : 0);
        }
}

/* List the valid sampled pixels of a window; return their number. */
static int64_t list_sampled(const Window *w) {
    int64_t count = 0;
    for (int64_t at = 0; at < w->n_sample; at++) {
        const int64_t row = w->rows[at], column = w->rows[w->n_sample + at];
        w->sample_x[count] = w->x[column];
        w->sample_y[count] = w->y[row];
        w->sampled[count] = w->values[row * w->width + column];
        count += w->known[row * w->width + column] > 0;
    }
    return count;
}

/* Compute the lower median of the sizes of sampled residuals. */
static float median_size(const Window *w, int64_t count, const float *terms) {
    for (int64_t at = 0; at < count; at++) {
        const float x = w->sample_x[at], y = w->sample_y[at];
        const float level = terms[0] + terms[2] * y + terms[5] * (y * y), rise = terms[1] + terms[4] * y;
        const Float residual = {w->sampled[at] - (level + rise * x + terms[3] * (x * x))};
        w->sizes[at] = residual.key & INT32_MAX;
    }
    return ((Float){.key = ranked_32(w->sizes, count, (int32_t)(count - 1) / 2)}).number;
}

/* Compute the surface along rows. */
static void set_rows(const Window *w, const float *terms) {
    for (int64_t row = 0; row < w->side; row++) {
        const float y = w->y[row];
        w->level[row] = terms[0] + terms[2] * y + terms[5] * (y * y);
        w->rise[row] = terms[1] + terms[4] * y;
    }
}

static inline Lanes all(float number) { return number - (Lanes){0}; }

/* Set what is below zero to zero. */
static inline Lanes positive(Lanes numbers) { return (Lanes)((Flags)numbers & (Flags)(numbers > 0)); }

/* Add up weights and weighted values along columns, times powers of y: Tukey's weights, or one where `even`. */
static inline void add_columns(const Window *w, int even, float bend, float inverse) {
    for (int64_t column = 0; column < w->width; column += HELD) {
        const Lanes x = *(Lanes *)(w->x + column), bent = all(bend) * (x * x);
        Lanes sums[SUMS] = {{0}};
        for (int64_t row = 0; row < w->side; row++) {
            const int64_t at = row * w->width + column;
            const Lanes y = all(w->y[row]), value = *(Lanes *)(w->values + at), known = *(Lanes *)(w->known + at);
            Lanes weight = known;
            if (!even) {
                const Lanes residual = value - (all(w->level[row]) + all(w->rise[row]) * x + bent);
                const Lanes ratio = residual * all(inverse), rest = positive(all(1) - ratio * ratio);
                weight *= rest * rest;
            }
            Lanes term = weight, weighted = weight * value;
            for (int order = 0; order < ORDERS; order++, term *= y) sums[order] += term;
            for (int order = ORDERS; order < SUMS; order++, weighted *= y) sums[order] += weighted;
        }
        for (int sum = 0; sum < SUMS; sum++) *(Lanes *)(w->columns + sum * w->width + column) = sums[sum];
    }
}

/* Add up one sum of all columns, times powers of x below `orders`. */
static inline void add_up(const Window *w, int sum, int orders, double *moments) {
    Lanes parts[ORDERS][PARTS] = {{{0}}};
    for (int64_t column = 0; column < w->width; column += LANES)
        for (int part = 0; part < PARTS; part++) {
            const int64_t at = column + part * HELD;
            Lanes term = *(Lanes *)(w->columns + sum * w->width + at);
            for (int order = 0; order < orders; order++, term *= *(Lanes *)(w->x + at)) parts[order][part] += term;
        }
    for (int order = 0; order < orders; order++) moments[order] = sum_lanes((float *)parts[order]);
}

/* Solve a positive definite system by elimination; the matrix is lost. */
static void solve(double matrix[TERMS][TERMS], double *values) {
    for (int pivot = 0; pivot < TERMS; pivot++)
        for (int row = pivot + 1; row < TERMS; row++) {
            const double factor = matrix[row][pivot] / matrix[pivot][pivot];
            for (int at = pivot; at < TERMS; at++) matrix[row][at] -= factor * matrix[pivot][at];
            values[row] -= factor * values[pivot];
        }
    for (int row = TERMS - 1; row >= 0; row--) {
        for (int at = row + 1; at < TERMS; at++) values[row] -= matrix[row][at] * values[at];
        values[row] /= matrix[row][row];
    }
}

/* Solve the normal equations of the sums along columns. even: (ORDERS, ORDERS), moments of equal weights. */
static void solve_columns(const Window *w, double even[ORDERS][ORDERS], float *terms) {
    double moments[SUMS][ORDERS], normal[TERMS][TERMS], values[TERMS];
    for (int y = 0; y < SUMS; y++) add_up(w, y, y < ORDERS ? ORDERS - y : SUMS - y, moments[y]);
    for (int y = 0; y < ORDERS; y++)
        for (int x = 0; x + y < ORDERS; x++) moments[y][x] += RIDGE * even[y][x];
    for (int one = 0; one < TERMS; one++) {
        values[one] = moments[ORDERS + Y_POWERS[one]][X_POWERS[one]];
        for (int other = 0; other < TERMS; other++)
            normal[one][other] = moments[Y_POWERS[one] + Y_POWERS[other]][X_POWERS[one] + X_POWERS[other]];
    }
    solve(normal, values);
    for (int one = 0; one < TERMS; one++) terms[one] = (float)values[one];
}

/* Count inliers and valid pixels, and add up the squared residuals of inliers. */
static double square_inliers(const Window *w, float bend, float limit, int64_t *counts) {
    float squares[LANES] = {0}, inliers[LANES] = {0}, valid[LANES] = {0};
    for (int64_t row = 0; row < w->side; row++)
        for (int64_t column = 0; column < w->width; column += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const int64_t at = row * w->width + column + lane;
                const float x = w->x[column + lane], known = w->known[at];
                const float residual = w->values[at] - (w->level[row] + w->rise[row] * x + bend * (x * x));
                const float size = residual < 0 ? -residual : residual, inlier = size <= limit ? known : 0;
                squares[lane] += inlier > 0 ? size * size : 0;
                inliers[lane] += inlier;
                valid[lane] += known;
            }
    counts[0] = (int64_t)sum_lanes(inliers);
    counts[1] = (int64_t)sum_lanes(valid);
    return sum_lanes(squares);
}

/* Fit square windows of a map by surfaces with Tukey's biweight.
 *
 * map: its rows are `pitch` apart. places: of the first pixels of windows, (n,). sample: numbers of the pixels whose
 * medians are taken. to_std: from a median of sizes to a standard deviation. tukey, sigmas: where the biweight ends, and
 * where an inlier ends. scratch: see `windows_scratch`. keys: n_sample. Receive, for each window: level, NaN where nothing
 * is sampled, spread, and standard deviation of inliers (n, 3); the surface and the largest residual of an inlier, over the
 * spread (n, 7); counts of inliers and of valid pixels (n, 2).
 */
KERNEL void windows_fit(int64_t n, int64_t side, int64_t pitch, int64_t n_sample, const double *map, const int64_t *places,
                        const int64_t *sample, int64_t iterations, float to_std, float tukey, float sigmas, float *scratch,
                        int64_t *keys, double *standard, float *surface, int64_t *counts) {
    const Window w = window_of(side, n_sample, sample, scratch, keys);
    double even[ORDERS][ORDERS], along[ORDERS];
    for (int64_t at = 0; at < w.width; at++) w.columns[at] = at < side;
    add_up(&w, 0, ORDERS, along);
    for (int y = 0; y < ORDERS; y++)
        for (int x = 0; x < ORDERS; x++) even[y][x] = along[y] * along[x];
    for (int64_t window = 0; window < n; window++, standard += 3, surface += TERMS + 1, counts += 2) {
        const double *from = map + places[window];
        for (int term = 0; term <= TERMS; term++) surface[term] = 0;
        standard[0] = __builtin_nan(""), standard[1] = 1, standard[2] = 0;
        if (standards(&w, pitch, from, standard, standard + 1)) {
            cut(&w, pitch, from, standard[0], standard[1]);
            const int64_t sampled = list_sampled(&w);
            add_columns(&w, 1, 0, 0);
            for (int64_t round = 0; round < iterations; round++) {
                solve_columns(&w, even, surface);
                const float scale = most(to_std * median_size(&w, sampled, surface), 1e-12f);
                surface[TERMS] = sigmas * scale;
                set_rows(&w, surface);
                if (round + 1 < iterations) add_columns(&w, 0, surface[3], 1 / (tukey * scale));
            }
            const double squares = square_inliers(&w, surface[3], surface[TERMS], counts);
            const int64_t free = counts[0] > TERMS ? counts[0] - TERMS : 1;
            standard[2] = __builtin_sqrt(squares / (double)free) * standard[1];
        } else
            counts[0] = counts[1] = 0;
    }
}

/* Compute the residuals of fitted windows over their spread; see `windows_fit`.
 *
 * scratch: windows_scratch(side, 0). Receive: residual, 0 where missing, and inlier, (n, pixels).
 */
KERNEL void windows_residuals(int64_t n, int64_t side, int64_t pitch, const double *map, const int64_t *places,
                              const double *standard, const float *surface, float *scratch, float *residual,
                              uint8_t *inlier) {
    const Window w = window_of(side, 0, 0, scratch, 0);
    for (int64_t window = 0; window < n; window++, standard += 3, surface += TERMS + 1) {
        cut(&w, pitch, map + places[window], standard[0], standard[1]);
        set_rows(&w, surface);
        for (int64_t row = 0; row < side; row++)
            for (int64_t at = 0; at < side; at++, residual++, inlier++) {
                const float x = w.x[at], known = w.known[row * w.width + at], value = w.values[row * w.width + at];
                const float apart = value - (w.level[row] + w.rise[row] * x + surface[3] * (x * x));
                *residual = known > 0 ? apart : 0;
                *inlier = known > 0 && (apart < 0 ? -apart : apart) <= surface[TERMS];
            }
    }
}

/* Count the valid pixels of square windows at every `stride` rows and columns.
 *
 * columns: width numbers. Receive: counts, ((height - side) / stride + 1, (width - side) / stride + 1).
 */
KERNEL void windows_valid(int64_t height, int64_t width, int64_t side, int64_t stride, const double *map,
                          int32_t *columns, int64_t *counts) {
    for (int64_t top = 0; top + side <= height; top += stride) {
        for (int64_t at = 0; at < width; at++) columns[at] = 0;
        for (int64_t row = top; row < top + side; row++)
            for (int64_t at = 0; at < width; at++) columns[at] += map[row * width + at] - map[row * width + at] == 0;
        for (int64_t left = 0; left + side <= width; left += stride, counts++) {
            *counts = 0;
            for (int64_t at = left; at < left + side; at++) *counts += columns[at];
        }
    }
}

enum { LAGS = 4 };
/* Lags that are added up at the same time. */

static int64_t lags_up(int64_t lags) { return (lags + LAGS - 1) / LAGS * LAGS; }

/* Count the numbers that `windows_products` needs as scratch. */
KERNEL int64_t windows_products_scratch(int64_t side, int64_t lags) {
    return (side + lags_up(lags)) * (padded(side) + lags_up(lags)) + lags_up(lags);
}

/* Add up the products of the pixels of a picture that lie `step` to LAGS - 1 more steps behind each other. */
static void add_products(int64_t side, int64_t width, int64_t pitch, int64_t first, int64_t step, const float *picture,
                         float *products) {
    Lanes sums[LAGS][PARTS] = {{{0}}};
    for (int64_t row = 0; row < side; row++)
        for (int64_t column = 0; column < width; column += LANES)
            for (int part = 0; part < PARTS; part++) {
                const float *from = picture + row * pitch + column + part * HELD;
                for (int lag = 0; lag < LAGS; lag++)
                    sums[lag][part] += *(const Lanes *)from * *(const Lanes *)(from + (first + lag) * step);
            }
    for (int lag = 0; lag < LAGS; lag++) products[lag] = sum_lanes((float *)sums[lag]);
}

/* Add up the products of the pixels of each window at lags from zero, over the mean square of its inliers; count them.
 *
 * residual, inlier: (n, side, side); others than inliers count as zero. scratch: see `windows_products_scratch`. Receive:
 * sums and counts of pairs, (2, 2, lags): first along rows, then along columns.
 */
KERNEL void windows_products(int64_t n, int64_t side, int64_t lags, const float *residual, const uint8_t *inlier,
                             float *scratch, double *sums) {
    const int64_t width = padded(side), pitch = width + lags_up(lags), rows = side + lags_up(lags);
    float *picture = scratch, *products = scratch + rows * pitch;
    for (int64_t at = 0; at < 4 * lags; at++) sums[at] = 0;
    for (int64_t at = 0; at < rows * pitch; at++) picture[at] = 0;
    for (int64_t window = 0; window < n; window++, residual += side * side, inlier += side * side) {
        double power = 1, inliers = 0;
        for (int64_t at = 0; at < side * side; at++) inliers += inlier[at];
        for (int counting = 0; counting < 2; counting++) {
            for (int64_t row = 0; row < side; row++)
                for (int64_t at = 0; at < side; at++) {
                    const int64_t from = row * side + at;
                    picture[row * pitch + at] = !inlier[from] ? 0 : counting ? 1 : residual[from];
                }
            for (int way = 0; way < 2; way++)
                for (int64_t first = 0; first < lags; first += LAGS) {
                    add_products(side, width, pitch, first, way ? pitch : 1, picture, products);
                    if (!counting && !way && !first) power = products[0] / inliers;
                    if (!(power > 1e-300)) power = 1e-300;
                    for (int64_t lag = 0; lag < LAGS && first + lag < lags; lag++)
                        sums[(2 * counting + way) * lags + first + lag] += products[lag] / (counting ? 1 : power);
                }
        }
    }
}
