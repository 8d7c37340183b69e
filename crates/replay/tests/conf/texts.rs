//! What is said of texts.

use vramscope_replay::allocator::config::{Config, Release, Rules};

/// The error or the warnings, one a line.
fn said(text: &str, release: Release) -> String {
    match Config::parse(text, &Rules::of_release(release)) {
        Ok((_, warnings)) => warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        Err(error) => format!("{error}\nhint: {}", error.hint()),
    }
}

fn all(texts: &[&str], release: Release) -> String {
    let answers: Vec<String> =
        texts.iter().map(|text| format!("{text:?}\n{}", said(text, release))).collect();
    answers.join("\n")
}

#[test]
fn mistakes_are_named_with_what_to_do() {
    insta::assert_snapshot!(all(&[
        "max_split_size_mb:2",
        "garbage_collection_threshold:1.2",
        "foo:1",
        "expandable_segment:True",
        "max_split_size:128",
        "max_split_size_mb=128",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "expandable_segments:true",
        "expandable_segments:enabled",
        "max_split_size_mb:",
        "max_split_size_mb:big",
        "max_split_size_mb:99999999999999999999",
        "garbage_collection_threshold:0,8",
        "roundup_power2_divisions:3",
        "roundup_power2_divisions:[64:4,100:2]",
        "roundup_power2_divisions:[64:4",
        "roundup_power2_divisions:[64:3]",
        "roundup_bypass_threshold_mb:64",
        "large_segment_size_mb:10",
        "max_split_size_mb:32,large_segment_size_mb:40",
        "large_segment_size_mb:-1",
        "per_process_memory_fraction:1.5",
        "max_split_size_mb:128,,expandable_segments:True",
        "max_split_size_mb:128 expandable_segments:True",
        "pinned_num_register_threads:3",
        "backend:cudaMallocAsync",
        "backend:jemalloc",
        "größe:1",
    ], Release(2, 15)), @r#"
    "max_split_size_mb:2"
    at byte 18: `max_split_size_mb` must be at least 20 MiB (one large segment), not 2
    hint: write `max_split_size_mb:20` or more, or leave it out
    "garbage_collection_threshold:1.2"
    at byte 29: `garbage_collection_threshold` must be above 0 and below 1, not 1.2
    hint: write a share of the memory limit, as in `garbage_collection_threshold:0.8`
    "foo:1"
    at byte 0: `foo` is no setting of the allocator
    hint: settings are written as `name:value,name:value`; there are expandable_segments, max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions, max_non_split_rounding_mb, large_segment_size_mb, per_process_memory_fraction, throw_on_cudamalloc_oom
    "expandable_segment:True"
    at byte 0: `expandable_segment` is no setting of the allocator
    hint: did you mean `expandable_segments`?
    "max_split_size:128"
    at byte 0: `max_split_size` is no setting of the allocator
    hint: did you mean `max_split_size_mb`?
    "max_split_size_mb=128"
    at byte 0: `max_split_size_mb=128` is no setting of the allocator
    hint: write `max_split_size_mb:128`
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    at byte 0: `PYTORCH_CUDA_ALLOC_CONF=expandable_segme…` is no setting of the allocator
    hint: give only what stands behind the `=`
    "expandable_segments:true"
    at byte 20: `expandable_segments` must be `True` or `False`, not `true`
    hint: write `expandable_segments:True`
    "expandable_segments:enabled"
    at byte 20: `expandable_segments` must be `True` or `False`, not `enabled`
    hint: write `expandable_segments:True` or `expandable_segments:False`
    "max_split_size_mb:"
    at byte 18: `max_split_size_mb` has no value
    hint: write it as in `max_split_size_mb:128`
    "max_split_size_mb:big"
    at byte 18: `max_split_size_mb` takes numbers, not `big`
    hint: write it as in `max_split_size_mb:128`
    "max_split_size_mb:99999999999999999999"
    at byte 18: `99999999999999999999` is out of range for `max_split_size_mb`
    hint: write it as in `max_split_size_mb:128`
    "garbage_collection_threshold:0,8"
    at byte 29: `garbage_collection_threshold` must be above 0 and below 1, not 0
    hint: write a share of the memory limit, as in `garbage_collection_threshold:0.8`
    "roundup_power2_divisions:3"
    at byte 25: `roundup_power2_divisions` must be a power of two, not 3
    hint: write 1, 2, 4, 8, …, or leave it out
    "roundup_power2_divisions:[64:4,100:2]"
    at byte 31: `roundup_power2_divisions` must be given for powers of two (MiB), not 100
    hint: write 1, 2, 4, 8, … MiB, or `>` for the rest
    "roundup_power2_divisions:[64:4"
    at byte 30: the list of `roundup_power2_divisions` has no end
    hint: end the list with `]`
    "roundup_power2_divisions:[64:3]"
    at byte 29: `roundup_power2_divisions` must be a power of two or 0, not 3
    hint: write 1, 2, 4, 8, … behind each size
    "roundup_bypass_threshold_mb:64"
    at byte 0: `roundup_bypass_threshold_mb` is no setting of the allocator any more: only torch 1.13 knew it
    hint: leave it out; to round up to a size only, write a list such as `roundup_power2_divisions:[32:4,64:1,>:1]`
    "large_segment_size_mb:10"
    at byte 22: `large_segment_size_mb` must be above 10 MiB, not 10
    hint: write `large_segment_size_mb:11` or more
    "max_split_size_mb:32,large_segment_size_mb:40"
    at byte 18: `max_split_size_mb` must be at least 40 MiB (one large segment), not 32
    hint: write `max_split_size_mb:40` or more, or leave it out
    "large_segment_size_mb:-1"
    at byte 22: `large_segment_size_mb` must be a size that a device can have, not -1
    hint: write a size in MiB that a device can have
    "per_process_memory_fraction:1.5"
    at byte 28: `per_process_memory_fraction` must be from 0 to 1, not 1.5
    hint: write a share of the device's memory, as in `per_process_memory_fraction:0.9`
    "max_split_size_mb:128,,expandable_segments:True"
    at byte 22: `,` is no setting of the allocator
    hint: take it out: settings are written as `name:value,name:value`
    "max_split_size_mb:128 expandable_segments:True"
    at byte 41: `,` must stand behind the value of `max_split_size_mb`, not `:`
    hint: settings are written as `name:value,name:value`, and lists as `name:[size:divisions,size:divisions]`
    "pinned_num_register_threads:3"
    at byte 28: `pinned_num_register_threads` must be a power of two up to 128, not 3
    hint: write 1, 2, 4, 8, … or 128
    "backend:cudaMallocAsync"
    at byte 8: `backend:cudaMallocAsync` cannot be simulated: memory is the driver's then, of which a recording says nothing
    hint: leave `backend` out to simulate PyTorch's own allocator; what the driver makes of this program can only be measured
    "backend:jemalloc"
    at byte 8: there is no allocator backend `jemalloc`
    hint: leave `backend` out, or write `backend:native`
    "größe:1"
    at byte 0: `größe` is no setting of the allocator
    hint: settings are written as `name:value,name:value`; there are expandable_segments, max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions, max_non_split_rounding_mb, large_segment_size_mb, per_process_memory_fraction, throw_on_cudamalloc_oom
    "#);
}

#[test]
fn older_releases_refuse_more() {
    insta::assert_snapshot!(all(&[
        "max_split_size_mb:20",
        "max_split_size_mb,128",
        "max_split_size_mb:128;expandable_segments:True",
        "roundup_power2_divisions:[64:4;128:2]",
        "expandable_segments:True\n",
    ], Release(2, 9)), @r#"
    "max_split_size_mb:20"
    at byte 18: `max_split_size_mb` must be above 20 MiB (one large segment), not 20
    hint: write `max_split_size_mb:21` or more, or leave it out
    "max_split_size_mb,128"
    at byte 17: `:` must stand behind the name of `max_split_size_mb`, not `,`
    hint: settings are written as `name:value,name:value`, and lists as `name:[size:divisions,size:divisions]`
    "max_split_size_mb:128;expandable_segments:True"
    at byte 41: `,` must stand behind the value of `max_split_size_mb`, not `:`
    hint: settings are written as `name:value,name:value`, and lists as `name:[size:divisions,size:divisions]`
    "roundup_power2_divisions:[64:4;128:2]"
    at byte 34: `,` must stand in the list of `roundup_power2_divisions`, not `:`
    hint: settings are written as `name:value,name:value`, and lists as `name:[size:divisions,size:divisions]`
    "expandable_segments:True\n"
    at byte 20: `expandable_segments` must be `True` or `False`, not `True\n`
    hint: write `expandable_segments:True`
    "#);
    insta::assert_snapshot!(said("roundup_power2_divisions:[64:4,128:0]", Release(2, 3)), @r"
    at byte 35: `roundup_power2_divisions` must be a power of two, not 0
    hint: write 1, 2, 4, 8, … behind each size
    ");
}

#[test]
fn what_is_taken_may_be_worth_a_word() {
    insta::assert_snapshot!(all(&[
        "expandable_segments:True",
        "max_split_size_mb,128",
        "max_split_size_mb:128:expandable_segments:True",
        "max_split_size_mb:128MB",
        "max_split_size_mb:-1",
        "max_split_size_mb:64,max_split_size_mb:128",
        "large_segment_size_mb:13,expandable_segments:True",
        "large_segment_size_mb:13",
        "large_segment_size_mb:12,expandable_segments:True",
        "release_lock_on_cudamalloc:True",
        "pinned_num_register_threads:8",
        "graph_capture_record_stream_reuse:True",
        "expandable_segments_reserve:0.5",
    ], Release(2, 15)), @r#"
    "expandable_segments:True"

    "max_split_size_mb,128"
    `,` stands where `:` belongs (`max_split_size_mb`): torch 2.10 and later take it all the same, older releases refuse it
    "max_split_size_mb:128:expandable_segments:True"
    `:` stands where `,` belongs (`max_split_size_mb`): torch 2.10 and later take it all the same, older releases refuse it
    "max_split_size_mb:128MB"
    `max_split_size_mb:128MB` is read as `max_split_size_mb:128`
    "max_split_size_mb:-1"
    `max_split_size_mb:-1` is no limit: it is read as a size that no block has
    "max_split_size_mb:64,max_split_size_mb:128"
    `max_split_size_mb` is given more than once; what comes later counts
    "large_segment_size_mb:13,expandable_segments:True"
    `large_segment_size_mb:13` is no multiple of 2: with `expandable_segments:True` every large request fails with an error of the driver; write `large_segment_size_mb:14`
    "large_segment_size_mb:13"

    "large_segment_size_mb:12,expandable_segments:True"

    "release_lock_on_cudamalloc:True"
    `release_lock_on_cudamalloc` has no effect on what is simulated: it only changes when the allocator locks
    "pinned_num_register_threads:8"
    `pinned_num_register_threads` has no effect on what is simulated: it is about pinned host memory
    "graph_capture_record_stream_reuse:True"
    `graph_capture_record_stream_reuse` has no effect on what is simulated: it is about graph captures, which are taken as recorded
    "expandable_segments_reserve:0.5"
    `expandable_segments_reserve` has no effect on what is simulated: it is about addresses, which cost no memory
    "#);
    insta::assert_snapshot!(all(&[
        "large_segment_size_mb:40",
        "roundup_power2_divisions:[64:4,",
    ], Release(2, 9)), @r#"
    "large_segment_size_mb:40"
    `large_segment_size_mb` needs torch 2.11 or later, and an older release made the recording
    "roundup_power2_divisions:[64:4,"
    the list of `roundup_power2_divisions` has no end: torch 2.9 and earlier take it all the same, later releases refuse it
    "#);
}

#[test]
fn a_mistake_is_pointed_at() {
    for (text, at) in [
        ("max_split_size_mb:2", "2"),
        ("expandable_segments:True, max_split_size:128", "max_split_size"),
        ("größe:1", "größe"),
        ("expandable_segments : Tr ue,backend:ß", "ß"),
        ("max_split_size_mb", ""),
        ("roundup_power2_divisions:[64:4,100:2]", "100"),
        ("roundup_power2_divisions:[64:3]", "3"),
    ] {
        let error = Config::parse(text, &Rules::newest()).expect_err(text);
        assert_eq!(text.get(error.span.clone()), Some(at), "{error}");
        assert_eq!(error.span.end == text.len(), at.is_empty() || text.ends_with(at), "{error}");
    }
}
