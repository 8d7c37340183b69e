//! A curve in one line of text.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A spread below this share of the highest value is drawn as a flat line, for else noise would look like a trend.
const FLAT: f64 = 0.02;

/// A curve of at most `width` columns, from its lowest to its highest value. Where there are more values than columns,
/// each column shows the highest of its values.
pub(crate) fn sparkline(values: &[u64], width: usize) -> String {
    let n = values.len().min(width.max(1));
    let columns: Vec<u64> = (0..n)
        .filter_map(|i| values.get(i * values.len() / n..(i + 1) * values.len() / n))
        .filter_map(|bin| bin.iter().copied().max())
        .collect();
    let Some((low, high)) = range(&columns) else { return String::new() };
    let flat = (high - low) as f64 <= high as f64 * FLAT;
    let top = LEVELS.len() - 1;
    columns
        .into_iter()
        .filter_map(|value| {
            let part = if flat { 0.5 } else { (value - low) as f64 / (high - low) as f64 };
            LEVELS.get((part * top as f64).round() as usize).copied()
        })
        .collect()
}

/// The lowest and the highest value.
pub(crate) fn range(values: &[u64]) -> Option<(u64, u64)> {
    Some((*values.iter().min()?, *values.iter().max()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_keep_their_shape() {
        assert_eq!(sparkline(&[0, 1, 2, 3, 4, 5, 6, 7], 20), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&(0..800).collect::<Vec<_>>(), 8), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[1000, 1001, 1000, 1002], 8), "▅▅▅▅");
        assert_eq!(sparkline(&[0, 0, 9, 0], 2), "▁█");
        assert_eq!(sparkline(&[], 8), "");
        assert_eq!(sparkline(&[0, 0], 8), "▅▅");
    }
}
