/* Extremes around each pixel, for one type of numbers: REAL is the type, NAME(x) the name of a function for it. */

/* Take the extremes of rows: of the first, or of what was found and the next one. NaN counts as neither. */
static inline void NAME(widen)(int64_t width, const REAL *row, REAL *restrict low, REAL *restrict high) {
    for (int64_t at = 0; at < width; at++) {
        low[at] = row[at] < low[at] ? row[at] : low[at];
        high[at] = row[at] > high[at] ? row[at] : high[at];
    }
}

/* Find the least and the greatest valid value in a square about each pixel; infinite where there is none.
 *
 * values: (n, height, width), NaN = missing. scratch: (2, width + 2 * radius). lowest, highest: (n, height, width).
 */
KERNEL void NAME(neighbours_range)(int64_t n, int64_t height, int64_t width, int64_t radius, const REAL *values,
                                   REAL *scratch, REAL *lowest, REAL *highest) {
    const int64_t pitch = width + 2 * radius;
    REAL *low = scratch, *high = scratch + pitch;
    for (int64_t at = 0; at < n * height * width; at++) {
        lowest[at] = (REAL)__builtin_inff();
        highest[at] = -(REAL)__builtin_inff();
    }
    for (int64_t map = 0; map < n; map++, values += height * width)
        for (int64_t row = 0; row < height; row++, lowest += width, highest += width) {
            for (int64_t at = 0; at < pitch; at++) {
                low[at] = (REAL)__builtin_inff();
                high[at] = -(REAL)__builtin_inff();
            }
            for (int64_t away = -radius; away <= radius; away++)
                if (row + away >= 0 && row + away < height)
                    NAME(widen)(width, values + (row + away) * width, low + radius, high + radius);
            for (int64_t away = 0; away <= 2 * radius; away++)
                for (int64_t at = 0; at < width; at++) {
                    lowest[at] = low[at + away] < lowest[at] ? low[at + away] : lowest[at];
                    highest[at] = high[at + away] > highest[at] ? high[at + away] : highest[at];
                }
        }
}
