"""Worked examples of the allocator's rules: short scripts in the language of `drive.py` and what the rules say.

`expected` is the reserved memory in MiB after each step, None where nothing is claimed; `ooms` the steps that must fail.
Vectors without `expected` are questions.
"""
KIB, MIB = 1 << 10, 1 << 20
VECTORS = []


def mib(x):
    return int(x * MIB)


def vector(name, about, conf, steps, expected=None, ooms=(), **job):
    out = []
    for step in steps:
        if step[0] in "+-":
            out.append(step_of(step))
        else:
            out.append(step)
    VECTORS.append(dict(name=name, about=about, conf=conf, steps=out, expected=expected, ooms=list(ooms), **job))


def step_of(step):
    """"+a 30" asks for block a of 30 MiB, "+a 512B" for 512 bytes, "+a 30 1" on stream 1; "-a" frees it."""
    if step[0] == "-":
        return "free " + step[1:]
    name, size, *stream = step[1:].split()
    size = eval(size[:-1], {"M": MIB}) if size.endswith("B") else mib(float(size))
    return f"alloc {name} {size} {stream[0] if stream else 0}"


# --- small and large pools ---
vector("S1", "small pool", "", ["+a 1B", "+b 1", "+c 1", "+d M-512B"], [2, 2, 4, 4])
vector("S2", "1 MiB + 1 B is large", "", ["+a M+1B", "+b 9", "+c 9", "+d 2"], [20, 20, 20, 40])
vector("S3", "a rest of 1024 B is not split off: the second block is 10 MiB + 512 B", "", ["+a 10*M-512B", "+b 10*M-512B"], [20, 20])
vector("S4", "streams do not share", "", ["+a 30", "-a", "+b 30 7", "+c 30"], [30, 30, 60, 60])
vector("S5", "max_split_size and max_non_split_rounding", "max_split_size_mb:200", ["+a 300", "-a", "+b 100", "+c 285", "-c", "+d 280"], [300, 300, 400, 400, 400, 680])
vector("S6", "RELEASE_SOME under a limit", "max_split_size_mb:100", ["+a 120", "+b 120", "+c 120", "-a", "-b", "-c", "+d 220"], [120, 240, 360, 360, 360, 360, 340], limit_mib=500)
vector("S6b", "RELEASE_ALL under a limit", "", ["+a 120", "+b 120", "+c 120", "-a", "-b", "-c", "+d 220"], [120, 240, 360, 360, 360, 360, 220], limit_mib=500)
vector("S6_device", "RELEASE_SOME when the device is full", "max_split_size_mb:100", ["+a 120", "+b 120", "+c 120", "-a", "-b", "-c", "+d 220"], [120, 240, 360, 360, 360, 360, 340], leave_mib=500)
vector("S6b_device", "RELEASE_ALL when the device is full", "", ["+a 120", "+b 120", "+c 120", "-a", "-b", "-c", "+d 220", "+e 300"], [120, 240, 360, 360, 360, 360, 220, 220], ooms=[7], leave_mib=500)
vector("capacity_steps", "20 MiB blocks until the device is full", "", [f"+a{i} 20" for i in range(8)] + ["+s 1", "+t 2"], leave_mib=100)
vector("capacity_steps_expandable", "16 MiB blocks until the device is full", "expandable_segments:True", [f"+a{i} 16" for i in range(8)] + ["+s 1", "+t 2"], leave_mib=100)

# --- expandable segments ---
E = "expandable_segments:True"
vector("E1", "pages of 20 MiB", E, ["+a 16"] + [f"+b{i} 16" for i in range(7)], [20, 40, 60, 80, 80, 100, 120, 140])
for leave in (100, 104, 110, 121):
    vector(f"E2_device_{leave}", "all pages of a call or none when the device is full", E, ["+a 30", "+b 30", "+c 25", "+d 30"], leave_mib=leave)
vector("E14_device", "a hole is mapped first, then the end fails: the hole's pages stay until RELEASE_ALL", E, ["+a 20", "+h 20", "+f 20", "-h", "empty_cache", "-f", "+d 70", "+e 15"], leave_mib=101)
vector("capacity_small", "2 MiB segments until the device is full", "", [f"+a{i} 1" for i in range(50)], leave_mib=40)
vector("capacity_mixed", "what is left after 20 MiB does not fit", "", ["+a 20", "+b 18", "+c 16", "+d 14", "+e 12", "+f 10", "+g 1", "+h 1", "+i 1", "+j 1", "+k 1", "+l 1", "+m 1"], leave_mib=40)
vector("E2_limit", "the same under a limit", E, ["+a 30", "+b 30", "+c 25", "+d 30"], [40, 60, 100, 100], ooms=[3], limit_mib=100)
vector("E3", "only whole pages are unmapped", E, ["+a 10", "+b 30", "+c 10", "-b", "empty_cache"], [20, 40, 60, 60, 40])
vector("E4", "holes are mapped again first", E, ["+a 20", "+b 60", "+c 20", "-b", "empty_cache", "+d 30"], [20, 80, 100, 100, 40, 80])
vector("E5", "a segment for each stream", E, ["+a 5", "+b 5 7"], [20, 40])
vector("E6", "the limit is compared with the request", E, ["+a 22", "+b 30"], [40, 40], ooms=[1], limit_mib=65)
vector("E6a", "without a limit", E, ["+a 22", "+b 30"], [40, 60])
vector("E6b", "reserved above the limit", E, ["+a 22"], [40], limit_mib=25)
vector("E7", "pages of 12 MiB", E + ",large_segment_size_mb:12", [f"+a{i} 16" for i in range(4)], [24, 36, 48, 72])
for mb in (11, 13, 15, 30):
    vector(f"page_{mb}", f"pages of {mb} MiB", E + f",large_segment_size_mb:{mb}", [f"+a{i} 16" for i in range(3)] + ["+b 2", "-a1", "empty_cache"])
    vector(f"segment_{mb}", f"large segments of {mb} MiB", f"large_segment_size_mb:{mb}", ["+a 2", "+b 9", "+c 11", "+d 13", "-a", "empty_cache"])
vector("N7", "large segments of 64 MiB", "large_segment_size_mb:64", ["+a 2", "+b 11", "+c 70"], [64, 64, 134])
vector("E8", "eight 16 MiB, then four 32 MiB", E, [f"+a{i} 16" for i in range(8)] + [f"-a{i}" for i in range(8)] + [f"+b{i} 32" for i in range(4)], [20, 40, 60, 80, 80, 100, 120, 140] + [140] * 12)
vector("E9", "holes of 16 MiB do not serve 32 MiB", E, [f"+a{i} 16" for i in range(4)] + ["-a0", "-a2", "+b 32"], [20, 40, 60, 80, 80, 80, 100])
vector("N8", "the same, not expandable", "", [f"+a{i} 16" for i in range(8)] + [f"-a{i}" for i in range(8)] + [f"+b{i} 32" for i in range(4)], [16, 32, 48, 64, 80, 96, 112, 128] + [128] * 8 + [160, 192, 224, 256])
vector("N9", "32 MiB blocks are split for 16 MiB", "", [f"+b{i} 32" for i in range(4)] + [f"-b{i}" for i in range(4)] + [f"+a{i} 16" for i in range(8)], [32, 64, 96, 128] + [128] * 12)
for conf, name in ((E, "E10"), ("", "N10")):
    vector(name, "small requests do not use large blocks", conf, ["+a 2", "-a", "+b 0.5"], [20, 20, 22])
vector("E11", "max_split_size in expandable segments", E + ",max_split_size_mb:40", ["+a 100", "-a", "+b 30", "+c 30", "-b", "+d 45", "-c", "-d", "+e 70"])
vector("E12", "the tail counts as endless, an inner hole is preferred", E, ["+a 60", "+b 10", "+c 60", "+d 10", "-a", "-c", "-d", "+e 55", "+f 62", "+g 40"])
vector("E13", "small pool pages", E, ["+a 1", "+b 1", "+c 0.75", "-a", "+d 0.5", "-b", "-c", "-d", "empty_cache"])

# --- graph test: three live blocks at most ---
for size, reserved, after, expandable, expandable_after in (("512B", 2, 2, 2, 2), ("M", 4, 2, 4, 2), ("M+512", 20, 20, 20, 20), ("10*M-512", 40, 20, 40, 40), ("10*M+512", 36, 12, 40, 20)):
    size = size.removesuffix("B") + "B"
    rounds = [step for i in range(5) for step in (f"+t{i} {size}", f"+n{i} {size}", f"-t{i}", "-b" if i == 0 else f"-n{i - 1}")]
    plain = [f"+b {size}"] + rounds
    captured = ["graph_begin 0", f"+b {size} 9"] + [s + " 9" if s[0] == "+" else s for s in rounds] + ["graph_end"]
    tag = size[:-1].replace("*", "x").replace("+", "_plus_").replace("-", "_minus_")
    for kind, conf, want, left in (("", "", reserved, after), ("_expandable", E, expandable, expandable_after)):
        n = len(plain)
        vector(f"graph_test_{tag}{kind}_plain", "three live blocks in the default pool", conf, plain + ["empty_cache"], [None] * (n - 1) + [want, left])
        # capture_begin itself asks for two 512-byte blocks (state of the random generator) in the default pool: 2 MiB more.
        vector(f"graph_test_{tag}{kind}_captured", "three live blocks in a graph's pool", conf, captured + ["graph_drop 0", "empty_cache"], [None] * n + [want + 2, want + 2, None, left])

# --- settings that change while it runs ---
def switch(expandable, more):
    return f"conf expandable_segments:{expandable},{more}"

vector("max_split_expandable", "upstream's test_max_split_expandable", "",
       [switch(False, "max_split_size_mb:40"), "+a 40", switch(True, "max_split_size_mb:40"), "+b 40", switch(False, "max_split_size_mb:40"), "+c 40", "+d 40", "-a", "-b", "-c", "+e 120"],
       [0, 40, 40, 80, 80, 120, 120, 120, 120, 120, 120], ooms=[6], limit_mib=120)
vector("garbage_collect_expandable", "upstream's test_garbage_collect_expandable", "",
       [switch(False, "garbage_collection_threshold:0.5"), "+a 40", switch(True, "garbage_collection_threshold:0.5"), "+b 40", "-a", "-b", "+c 80"],
       [0, 40, 40, 80, 80, 80, 80], limit_mib=120)
vector("conf_empty", "an empty string does not switch expandable segments off", E, ["+a 30", "conf", "+b 25", "conf expandable_segments:False", "+c 25"], [40, 40, 60, 60, 86])
vector("conf_keeps", "what a new parse resets", "large_segment_size_mb:40,max_split_size_mb:50,max_non_split_rounding_mb:60,roundup_power2_divisions:4",
       ["+a 2", "conf", "+b 45", "+c 84", "-c", "+d 70", "+e 12"])
vector("split_old_segment", "with expandable segments on, a cudaMalloc block is split from 512 B up and ignores max_split_size", "", ["+a 80", "-a", "conf expandable_segments:True,max_split_size_mb:40", "+b 79.5", "-b", "+c 30", "+d 41"])
vector("split_new_segment", "with expandable segments off again, mapped blocks are passed over", E, ["+a 80", "-a", "conf expandable_segments:False", "+b 30", "conf expandable_segments:True", "+c 30"])
vector("fraction_at_run_time", "the limit moves while it runs", "", ["+a 100", "limit 151", "+b 60", "limit 201", "+c 60", "fraction 1.0", "+d 200"])

# --- rounding: in expandable segments every rest of 512 B is split off, so allocated memory is the sum of rounded sizes ---
SIZES = [1, 511, 512, 513, 1200, 2048, 2049, 4097, 8193, 65537, 1048575, 1048576, 1048577, 1100 * KIB, 2097151, 2097152, 2097153, 3145729, 5 * MIB + 1, 84 * MIB, 100 * MIB, 300 * MIB, 400 * MIB, 600 * MIB, 1100 * MIB]
for name, value in (("off", "1"), ("2", "2"), ("4", "4"), ("8", "8"), ("16", "16"), ("list_test", "[64:8,128:2,256:2,512:2,1024:1,>:1]"), ("list_docs", "[256:1,512:2,1024:4,>:8]"), ("list_gap", "[1:8,8:4,64:2]"), ("list_last", "[4:2,>:8]"), ("list_zero", "[2:0,4:8,>:0]")):
    vector(f"rounding_{name}", "rounded sizes", E + f",roundup_power2_divisions:{value}", [f"alloc a{i} {size} 0" for i, size in enumerate(SIZES)])
vector("rounding_84_default", "84 MiB with four divisions is 96 MiB", "roundup_power2_divisions:4", ["+a 84"], [96])

# --- garbage collection ---
GC = "garbage_collection_threshold:0.5"
STEPS = ["+a 200", "+b 300", "+c 100", "-a"] + ["+t 20", "-t"] * 4 + ["-b", "-c", "+u 50", "-u", "+d 350"]
vector("gc_ages", "ages 2, 2, 1: the two oldest go", GC, STEPS, [200, 500, 600] + [600] * 9 + [600] * 4 + [450], limit_mib=1000)
vector("gc_no_limit", "the threshold alone does nothing", GC, STEPS)
vector("gc_limit_by_conf", "a limit that the setting makes", GC + ",per_process_memory_fraction:0.00698", STEPS)
vector("gc_fraction_one", "fraction 1.0: is it a limit?", "garbage_collection_threshold:0.000001", ["+a 200", "+b 300", "-a", "-b", "+c 350"], fraction=1.0)
vector("gc_expandable_counted", "mapped blocks count but are not freed", "", ["conf expandable_segments:True," + GC, "+a 40", "+b 30", "conf expandable_segments:False," + GC, "+c 60", "+d 40", "-a", "-c", "-d", "+e 70", "+f 100"], limit_mib=221)
vector("gc_streams", "blocks of all streams go", GC, ["+a 100", "+b 100 1", "+c 100 2", "-a", "-b", "-c", "+d 130", "+e 130"], limit_mib=500)
vector("gc_small", "small segments stay", GC, [f"+s{i} 1" for i in range(20)] + [f"-s{i}" for i in range(20)] + ["+a 30", "-a", "+b 40"], limit_mib=61)

# --- the limit, RELEASE_SOME, RELEASE_ALL ---
vector("release_some_false", "what was released stays released when it was not enough", "max_split_size_mb:40", ["+a 60", "+b 30", "+c 100", "-a", "-b", "+d 150"], limit_mib=271)
vector("release_some_one", "the smallest sufficient block goes", "max_split_size_mb:40", ["+a 60", "+b 100", "+c 150", "-a", "-b", "-c", "+d 50", "+e 70", "+f 95"], limit_mib=331)
vector("release_some_small", "a small request releases a large block of its own pool only", "max_split_size_mb:40", ["+a 60", "-a", "+s 1", "+t 1"], limit_mib=61)
vector("release_all_streams", "all streams give back", "", ["+a 60 1", "+b 60 2", "-a", "-b", "+c 100"], limit_mib=131)
vector("release_all_pending", "pending frees are waited for", "", ["+a 60", "busy 1", "use a 1", "-a", "+b 60", "+c 60"], limit_mib=131)
vector("pending_poll", "pending frees are polled at the next request", "", ["+a 60", "busy 1", "use a 1", "-a", "+b 60", "sync", "+c 60"], [60, 60, 60, 60, 120, 120, 120])
vector("limit_exact", "reserved may equal the limit", "", ["+a 60", "+b 60", "+c 2"], [60, 120, 120], ooms=[2], limit_mib=120)
TWO = 2 * MIB
for tag, off in (("minus_0_4", -0.4), ("minus_0_6", -0.6), ("plus_0_4", 0.4)):
    vector(f"limit_round_{tag}", f"fraction x total is 120 MiB {off:+} bytes", "", ["+a 60", "+b 60"], limit_mib=120 + off / MIB)
vector("oom_frees_all", "a request that can never fit empties the cache first", "", ["+a 50", "+b 20", "-a", "+c 400", "+d 50"], limit_mib=131)

vector("release_some_split", "RELEASE_SOME on a block that was split before max_split_size was set: torch frees the middle of a segment", "", ["+a 100", "-a", "+b 30", "conf max_split_size_mb:40", "+c 45", "+d 45", "-b"], limit_mib=131)
vector("release_some_rounding", "a free block too large to be given is released for the request that could not have it", "max_split_size_mb:40", ["+a 100", "-a", "+b 50"], limit_mib=121)
vector("release_some_expandable", "mapped blocks are passed over", E + ",max_split_size_mb:40", ["+a 100", "-a", "+b 50"], limit_mib=121)
vector("oom_text_split", "the text when much is reserved but free", "", ["+a 60", "+b 30", "+c 30", "-a", "+d 1", "+e 10", "+f 80"], limit_mib=131)

# --- pools ---
vector("pool_separate", "a MemPool has segments of its own", "", ["+a 30", "-a", "pool_open 0", "+b 30", "-b", "pool_close", "+c 30", "empty_cache", "pool_drop 0", "empty_cache"])
vector("pool_oom", "inside the scope a failed request does not empty the cache", "", ["+a 60", "-a", "pool_open 0", "+b 60", "+c 60", "pool_close", "+d 100"], limit_mib=131)
vector("pool_poll", "inside the scope pending frees are not polled", "", ["+a 60", "busy 1", "use a 1", "-a", "sync", "pool_open 0", "+b 60", "pool_close", "+c 60"])
vector("pool_pending", "a block in use on another stream is freed inside the scope", "", ["+a 60", "busy 1", "use a 1", "pool_open 0", "-a", "sync", "+b 60", "pool_close", "+c 60", "+d 60"])
vector("pool_empty_cache", "empty_cache inside the scope", "", ["+a 60", "-a", "pool_open 0", "+b 60", "-b", "empty_cache", "pool_close", "empty_cache"])
vector("pool_expandable", "a MemPool with expandable segments", E, ["+a 30", "pool_open 0", "+b 30", "+s 1", "pool_close", "-b", "-s", "pool_drop 0", "empty_cache"])
vector("pool_use_on_oom", "a pool that helps out", "", ["pool_open 0 use_on_oom", "+a 60", "-a", "pool_close", "+b 60", "-b", "+c 50", "+d 50", "+e 50"], limit_mib=131)
vector("pool_use_on_oom_some", "a pool that helps out, with max_split_size: which comes first, the pool or RELEASE_SOME?", "max_split_size_mb:40", ["pool_open 0 use_on_oom", "+a 60", "-a", "pool_close", "+b 100", "-b", "+c 50", "+d 30"], limit_mib=171)
vector("pool_release_some", "inside the scope RELEASE_SOME looks only at the request's own pool", "max_split_size_mb:40", ["+a 60", "-a", "pool_open 0", "+b 60", "-b", "+c 100", "pool_close"], limit_mib=131)
vector("pool_gc", "inside the scope, garbage collection", "garbage_collection_threshold:0.5", ["+a 60", "-a", "pool_open 0", "+b 30", "-b", "+c 40", "+d 50", "pool_close", "+e 20"], limit_mib=161)
vector("pool_drop_live", "a pool is dropped while a block of it lives", "", ["pool_open 0", "+a 30", "+b 40", "pool_close", "pool_drop 0", "-b", "empty_cache", "+c 40", "-a", "empty_cache"])
vector("pool_stats_open", "empty_cache on another thread's pool scope does nothing for the default pool", "", ["+a 60", "-a", "pool_open 0", "empty_cache", "pool_close", "empty_cache"])
vector("pool_free_outside", "a block of the pool is freed after the scope and asked for again in it", "", ["pool_open 0", "+a 30", "pool_close", "-a", "+b 30", "pool_open 0", "+c 30", "pool_close"])
vector("pool_streams", "two streams in one pool", "", ["pool_open 0", "+a 30", "-a", "+b 30 1", "-b", "+c 30", "pool_close"])
vector("graph_empty_cache", "empty_cache during capture", "", ["+a 60", "-a", "graph_begin 0", "+b 30 9", "empty_cache", "graph_end", "empty_cache"])
vector("graph_default_free", "a block of the default pool is freed during capture and asked for after it", "", ["+a 60", "graph_begin 0", "-a", "+b 60 9", "graph_end", "+c 60"])
vector("graph_gc", "garbage collection during capture", "garbage_collection_threshold:0.5", ["+a 60", "-a", "graph_begin 0", "+b 40 9", "+c 40 9", "graph_end", "+d 20"], limit_mib=161)
vector("pool_no_split", "a pool that does not split", "", ["pool_open 0 no_split", "+a 60", "-a", "+b 20", "+s 1", "+t 1", "pool_close"])
vector("graph_pool_shared", "two graphs, one pool", "", ["graph_begin 0", "+a 30 9", "-a", "graph_end", "graph_begin 1 0", "+b 30 9", "-b", "graph_end", "graph_drop 0", "empty_cache", "graph_drop 1", "empty_cache"])
vector("graph_oom", "inside a capture a failed request does not empty the cache", "", ["+a 60", "-a", "graph_begin 0", "+b 60 9", "+c 60 9", "graph_end", "+d 100"], limit_mib=131)
for tag, conf in (("", ""), ("_reuse", "graph_capture_record_stream_reuse:True")):
    vector(f"graph_pending{tag}", "a block in use on another stream is freed during capture", conf, ["graph_begin 0", "+a 30 9", "use a 1", "-a", "+b 30 9", "graph_end", "+c 30"])

# --- ties between free blocks of one size ---
vector("tie_order_a", "made a, b, c; all free; two requests", "", ["+a 30", "+b 30", "+c 30", "-a", "-b", "-c", "+d 30", "+e 30"])
vector("tie_order_b", "the same, freed the other way", "", ["+a 30", "+b 30", "+c 30", "-c", "-b", "-a", "+d 30", "+e 30"])
vector("tie_order_c", "segments made after a hole was given back", "", ["+a 30", "+x 200", "+b 30", "-x", "empty_cache", "+c 30", "+y 30", "-a", "-b", "-c", "-y", "+d 30", "+e 30", "+f 30"])
vector("tie_expandable", "equal holes in one expandable segment and another stream's", E, ["+a 40", "+b 20", "+c 40", "+d 20", "-a", "-c", "+e 40", "+f 40"])
