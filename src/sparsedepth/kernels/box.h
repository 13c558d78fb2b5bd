/* Means in squares, for one type of numbers: REAL is the type, NAME(x) the name of a function for it. */

/* Return a number of a row, the row going on as at its edge, or with zeros. */
static inline double NAME(beyond)(const REAL *row, int64_t at, int64_t width, int64_t nearest) {
    if (at >= 0 && at < width) return row[at];
    return nearest ? row[at < 0 ? 0 : width - 1] : 0;
}

/* Add a row of a map to sums of columns, with a sign; beyond the border as above. */
static inline void NAME(add)(const REAL *map, int64_t row, int64_t height, int64_t width, int64_t nearest, double sign,
                             double *sums) {
    if (row < 0 || row >= height) {
        if (!nearest) return;
        row = row < 0 ? 0 : height - 1;
    }
    for (int64_t at = 0; at < width; at++) sums[at] += sign * map[row * width + at];
}

/* Average the values in a square about each pixel, first along columns, then along rows, by running sums.
 *
 * values, means: (n, height, width). side: of the square; an even one reaches farther up and to the left. nearest:
 * maps go on as at their edge; otherwise with zeros. scratch: width numbers of 64 bits. middle: width numbers.
 */
KERNEL void NAME(neighbours_box)(int64_t n, int64_t height, int64_t width, int64_t side, int64_t nearest,
                                 const REAL *values, double *scratch, REAL *middle, REAL *means) {
    const int64_t before = side / 2, behind = side - 1 - before;
    for (int64_t map = 0; map < n; map++, values += height * width, means += height * width) {
        for (int64_t at = 0; at < width; at++) scratch[at] = 0;
        for (int64_t row = -before; row < behind; row++) NAME(add)(values, row, height, width, nearest, 1, scratch);
        for (int64_t row = 0; row < height; row++) {
            REAL *out = means + row * width;
            double sum = 0;
            NAME(add)(values, row + behind, height, width, nearest, 1, scratch);
            for (int64_t at = 0; at < width; at++) middle[at] = (REAL)(scratch[at] / (double)side);
            NAME(add)(values, row - before, height, width, nearest, -1, scratch);
            for (int64_t at = -before; at < behind; at++) sum += NAME(beyond)(middle, at, width, nearest);
            for (int64_t at = 0; at < width; at++) {
                sum += NAME(beyond)(middle, at + behind, width, nearest);
                out[at] = (REAL)(sum / (double)side);
                sum -= NAME(beyond)(middle, at - before, width, nearest);
            }
        }
    }
}

/* Add a row of a map that goes on as at its edge to sums of columns and of their squares, with a sign. */
static inline void NAME(add_squares)(const REAL *map, int64_t row, int64_t height, int64_t width, double sign, double *sums,
                                     double *squares) {
    const REAL *values = map + (row < 0 ? 0 : row >= height ? height - 1 : row) * width;
    for (int64_t at = 0; at < width; at++) {
        const double value = values[at];
        sums[at] += sign * value;
        squares[at] += sign * (value * value);
    }
}

/* Return a number of a row of doubles that goes on as at its edge. */
static inline double NAME(held)(const double *row, int64_t at, int64_t width) {
    return row[at < 0 ? 0 : at >= width ? width - 1 : at];
}

/* Compute the variance of the values in a square about each pixel, of maps that go on as at their edge, by running sums.
 *
 * values, variances: (n, height, width). side: an even one reaches farther up and to the left. scratch: (2, width).
 */
KERNEL void NAME(neighbours_variance)(int64_t n, int64_t height, int64_t width, int64_t side, const REAL *values,
                                      double *scratch, REAL *variances) {
    const int64_t before = side / 2, behind = side - 1 - before;
    const double share = 1 / (double)(side * side);
    double *sums = scratch, *squares = scratch + width;
    for (int64_t map = 0; map < n; map++, values += height * width, variances += height * width) {
        for (int64_t at = 0; at < 2 * width; at++) scratch[at] = 0;
        for (int64_t row = -before; row < behind; row++)
            NAME(add_squares)(values, row, height, width, 1, sums, squares);
        for (int64_t row = 0; row < height; row++) {
            double sum = 0, square = 0;
            NAME(add_squares)(values, row + behind, height, width, 1, sums, squares);
            for (int64_t at = -before; at < behind; at++) {
                sum += NAME(held)(sums, at, width);
                square += NAME(held)(squares, at, width);
            }
            for (int64_t at = 0; at < width; at++) {
                sum += NAME(held)(sums, at + behind, width);
                square += NAME(held)(squares, at + behind, width);
                const double mean = sum * share, spread = square * share - mean * mean;
                variances[row * width + at] = (REAL)(spread > 0 ? spread : 0);
                sum -= NAME(held)(sums, at - before, width);
                square -= NAME(held)(squares, at - before, width);
            }
            NAME(add_squares)(values, row - before, height, width, -1, sums, squares);
        }
    }
}
