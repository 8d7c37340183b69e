//! Which of the allocator's settings were changed.

/// The settings that are not the allocator's defaults, as `name=value`.
pub(crate) fn changed(settings: &[(String, String)]) -> Vec<String> {
    settings
        .iter()
        .filter(|(name, value)| !is_default(name, value.trim()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Whether a setting is as it is when nobody sets it: off, empty, or without a limit, with one exception.
fn is_default(name: &str, value: &str) -> bool {
    match name {
        "pinned_num_register_threads" => value == "1",
        // For each power of two, into how many parts it is divided.
        "roundup_power2_divisions" => {
            value.split(',').all(|part| is_off(part.split_once(':').map_or(part, |(_, parts)| parts).trim()))
        }
        // No limit is the largest number that the release can write.
        "max_split_size" => value == "-1" || value.parse::<u64>().is_ok_and(|n| n >= i64::MAX as u64),
        _ => is_off(value),
    }
}

fn is_off(value: &str) -> bool {
    value.is_empty() || value.eq_ignore_ascii_case("false") || value.parse::<f64>() == Ok(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_changed_is_told() {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let defaults = [
            ("PYTORCH_CUDA_ALLOC_CONF", ""),
            ("max_split_size", "-1"),
            ("max_split_size", "18446744073709551615"),
            ("garbage_collection_threshold", "0"),
            ("garbage_collection_threshold", "0.0"),
            ("expandable_segments", "false"),
            ("pinned_num_register_threads", "1"),
            ("roundup_power2_divisions", "1:0,2:0,4:0"),
        ]
        .map(pair);
        assert_eq!(changed(&defaults), Vec::<String>::new());
        let others = [
            ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
            ("max_split_size", "33554432"),
            ("garbage_collection_threshold", "0.6"),
            ("expandable_segments", "true"),
            ("pinned_num_register_threads", "8"),
            ("roundup_power2_divisions", "1:0,2:8"),
        ]
        .map(pair);
        assert_eq!(changed(&others).len(), others.len());
    }
}
