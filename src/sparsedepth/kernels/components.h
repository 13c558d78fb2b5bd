/* Connected components, for one type of numbers: REAL is the type, NAME(x) the name of a function for it. */

/* Tell whether two pixels differ by no more than a step in every channel. */
static inline int NAME(alike)(const REAL *one, const REAL *other, int64_t channels, REAL step) {
    for (int64_t at = 0; at < channels; at++) {
        const REAL apart = one[at] - other[at];
        if (!((apart < 0 ? -apart : apart) <= step)) return 0;
    }
    return 1;
}

/* Number the sets of pixels that are connected by neighbours that are alike.
 *
 * values: (height, width, channels). within: pixels to number; the others are one background, as what is connected to
 * it. n_offsets: of the forward neighbours, `offsets` (rows, columns). parents: (height * width + 1,), scratch. numbers:
 * (height, width), from 1 on by the first pixel; 0 = background.
 */
KERNEL void NAME(components)(int64_t height, int64_t width, int64_t channels, const REAL *values, REAL step,
                             const uint8_t *within, int64_t n_offsets, const int64_t *offsets, int32_t *parents,
                             int32_t *numbers) {
    int32_t last = 0;
    for (int64_t node = 0; node <= height * width; node++) parents[node] = (int32_t)node;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++)
            for (int64_t at = 0; at < n_offsets; at++) {
                const int64_t down = row + offsets[2 * at], right = column + offsets[2 * at + 1];
                const int64_t here = row * width + column, there = down * width + right;
                if (down >= height || right < 0 || right >= width || !(within[here] | within[there])) continue;
                if (NAME(alike)(values + here * channels, values + there * channels, channels, step))
                    join(parents, within[here] ? (int32_t)here + 1 : 0, within[there] ? (int32_t)there + 1 : 0);
            }
    for (int64_t here = 0; here < height * width; here++) {
        const int32_t root = within[here] ? root_of(parents, (int32_t)here + 1) : 0;
        numbers[here] = !root ? 0 : root == here + 1 ? ++last : numbers[root - 1];
    }
}
