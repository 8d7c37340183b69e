"""Writes the random programs of `../random/scripts`: one text file each, one operation a line.

A program is a function of its seed alone: it does not know the settings under which it will be played, so every
setting sees the same requests. The language is in `drive.py`. Run it again and the files come out byte for byte the same.
"""
import os
import random

KIB, MIB = 1 << 10, 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
EDGES = [512, KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 10 * MIB, 12 * MIB, 16 * MIB, 20 * MIB, 32 * MIB, 40 * MIB, 64 * MIB, 128 * MIB]


def spread(rng, low, high):
    """A size between low and high, every power of two as likely as the next."""
    return int(low * (high / low) ** rng.random())


def small(rng):
    return spread(rng, 1, MIB)


def tiny(rng):
    return rng.choice([1, 511, 512, 513, 1023, 1024, 1025, 4 * KIB, spread(rng, 1, 64 * KIB)])


def edge(rng):
    return max(1, rng.choice(EDGES) + rng.choice([-513, -512, -1, 0, 0, 1, 511, 512, 513, rng.randrange(-MIB, MIB)]))


def middle(rng):
    return spread(rng, MIB + 1, 20 * MIB)


def big(rng):
    return spread(rng, 10 * MIB, 200 * MIB)


def around_max_split(rng):
    return rng.choice([32, 40, 64]) * MIB + rng.choice([-2, -1, 0, 0, 1, 2, 8, 19, 20, 21]) * MIB + rng.choice([-512, 0, 0, 512])


def repeated(rng):
    """Few different sizes, as a training loop asks for."""
    return rng.choice([4 * KIB, 300 * KIB, MIB, 3 * MIB, 3 * MIB + 512, 9 * MIB, 18 * MIB, 18 * MIB + 512, 50 * MIB, 96 * MIB])


class Script:
    """The operations so far and what would live if every request were served."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.live, self.sizes, self.next_id, self.peak = [], [], {}, 0, 0

    def op(self, *words):
        self.lines.append(" ".join(map(str, words)))

    def alloc(self, size, stream=0):
        self.op("alloc", self.next_id, size, stream)
        self.live.append(self.next_id)
        self.sizes[self.next_id] = size
        self.next_id += 1
        self.peak = max(self.peak, self.bytes())
        return self.next_id - 1

    def free(self, which):
        self.live.remove(which)
        self.op("free", which)

    def bytes(self):
        return sum(self.sizes[i] for i in self.live)

    def pick(self):
        """A block to free: the oldest, the newest or any."""
        return self.rng.choice([self.live[0], self.live[-1], self.rng.choice(self.live), self.rng.choice(self.live)])


def churn(script, steps, mixture, cap, streams=(0,), empty_every=0, drop_every=60, rise=0.62, uses=0.0):
    """Requests and frees: live bytes wander up to `cap`; now and then most of it goes at once."""
    rng, kinds, weights = script.rng, [m for m, _ in mixture], [w for _, w in mixture]
    target, window, start = cap, 0, len(script.lines)
    while len(script.lines) - start < steps:
        n = len(script.lines) - start
        if uses and not window and rng.random() < 0.06:
            script.op("busy", streams[-1])
            window = 14
        if window:
            window -= 1
            if window == 0:
                script.op("sync")
        if empty_every and rng.random() < 1 / empty_every:
            script.op("empty_cache")
        if drop_every and n and rng.random() < 1 / drop_every:
            target = rng.choice([0.3, 0.6, 0.8, 1.0, 1.0]) * cap
            for which in [i for i in script.live if rng.random() < 0.7]:
                script.free(which)
        if script.live and (script.bytes() > target or rng.random() > rise):
            which = script.pick()
            if window and uses and rng.random() < uses:
                script.op("use", which, streams[-1])
            script.free(which)
        else:
            size = rng.choices(kinds, weights)[0](rng)
            if script.bytes() + size <= cap:
                script.alloc(size, rng.choice(streams))
    if window:
        script.op("sync")


def grow(script, rounds, first, factor, extra):
    """Every round asks for somewhat more than the last: old segments never fit again."""
    rng, size = script.rng, first
    for _ in range(rounds):
        blocks = [script.alloc(int(size * rng.uniform(0.9, 1.1))) for _ in range(3)]
        for _ in range(4):
            script.alloc(extra(rng))
        rng.shuffle(blocks)
        for which in blocks:
            script.free(which)
        if len(script.live) > 24:
            for _ in range(8):
                script.free(rng.choice(script.live))
        size *= factor


def write(name, about, script, limit_share=1.06, settings=None):
    # An odd number of MiB: no sum of segments ever equals the limit, so its rounding cannot matter.
    limit = int(script.peak * limit_share / MIB) | 1
    head = [f"# {about}", f"# peak of the requested bytes: {script.peak}", f"# limit_mib {limit}"]
    if settings:
        head.append("# settings: " + " ".join(settings))
    with open(os.path.join(HERE, "..", "random", "scripts", name + ".txt"), "w") as out:
        out.write("\n".join(head + script.lines) + "\n")


def main():
    s = Script(1)
    churn(s, 520, [(tiny, 3), (small, 5), (edge, 0.3)], 48 * MIB, drop_every=90)
    write("small_churn", "many small blocks on one stream", s)

    s = Script(2)
    churn(s, 420, [(tiny, 2), (small, 3), (middle, 3), (big, 1.5)], 700 * MIB)
    write("mixed", "small, middle and large blocks on one stream", s, 1.0)

    s = Script(3)
    churn(s, 420, [(edge, 1)], 600 * MIB, drop_every=50)
    write("edges", "sizes at the borders of the pools, of rounding and of max_split_size", s)

    s = Script(4)
    churn(s, 260, [(big, 4), (middle, 2), (small, 1)], 1400 * MIB, drop_every=45, rise=0.7)
    write("large", "large blocks of many sizes under pressure", s, 1.03)

    s = Script(5)
    churn(s, 400, [(small, 2), (middle, 3), (big, 1), (edge, 1)], 800 * MIB, streams=(0, 1, 2))
    write("three_streams", "three streams, each with free blocks of its own", s, 1.15)

    s = Script(6)
    churn(s, 320, [(small, 2), (middle, 3), (big, 1)], 700 * MIB, streams=(0, 0, 1), uses=0.6)
    write("pending", "blocks that another, busy stream still uses when they are freed", s, 1.1)

    s = Script(7)
    churn(s, 300, [(middle, 3), (big, 1), (repeated, 2)], 600 * MIB, streams=(0, 1, 2), uses=0.5, empty_every=40)
    write("pending_empty", "pending frees, three streams and empty_cache, which waits for them", s, 1.05)

    s = Script(8)
    churn(s, 360, [(tiny, 1), (small, 1), (middle, 3), (big, 2), (edge, 1)], 700 * MIB, empty_every=12)
    write("empty_often", "empty_cache every dozen operations", s)

    s = Script(9)
    grow(s, 34, 12 * MIB, 1.07, small)
    write("growing", "every round asks for more than the last, small blocks survive", s, 1.25)

    s = Script(10)
    churn(s, 320, [(around_max_split, 5), (big, 1), (small, 1)], 1200 * MIB, drop_every=40, rise=0.66)
    write("around_max_split", "sizes around 32, 40 and 64 MiB", s, 1.05)

    s = Script(11)
    churn(s, 450, [(repeated, 1)], 900 * MIB, streams=(0, 0, 0, 1), drop_every=70)
    write("repeated", "few sizes, many times: ties between free blocks of one size", s, 1.0)

    s = Script(12)
    churn(s, 380, [(middle, 2), (big, 2), (edge, 1)], 900 * MIB, drop_every=25, rise=0.75)
    write("tight", "a limit below what would live: requests fail and are given up", s, 0.8)

    s = Script(13)
    churn(s, 80, [(small, 2), (middle, 2), (big, 1)], 300 * MIB)
    for turn in range(4):
        s.op("pool_open", turn % 2)
        churn(s, 50, [(small, 2), (middle, 2), (big, 1)], s.bytes() + 250 * MIB, drop_every=30)
        s.op("pool_close")
        churn(s, 40, [(small, 2), (middle, 2), (big, 1)], 600 * MIB, empty_every=25)
    for which in list(s.live):
        s.free(which)
    s.op("pool_drop", 0)
    s.alloc(30 * MIB)
    s.op("empty_cache")
    write("mem_pools", "torch.cuda.use_mem_pool around some of the requests", s, 1.3)

    s = Script(14)
    churn(s, 80, [(small, 2), (middle, 2), (big, 1)], 300 * MIB)
    for graph in range(2):
        s.op("graph_begin", graph)
        churn(s, 45, [(small, 2), (middle, 2), (big, 1)], s.bytes() + 250 * MIB, drop_every=30, streams=(9,))
        s.op("graph_end")
        churn(s, 40, [(small, 2), (middle, 2), (big, 1)], 600 * MIB)
        s.op("empty_cache")
    for which in list(s.live):
        s.free(which)
    s.op("graph_drop", 0)
    s.op("empty_cache")
    churn(s, 30, [(small, 2), (middle, 2), (big, 1)], 300 * MIB)
    write("graphs", "two CUDA graph captures with private pools", s, 1.4)

    mixture = [(small, 2), (middle, 3), (big, 2), (edge, 1)]
    s = Script(15)
    for conf in ["max_split_size_mb:40", "expandable_segments:True", "roundup_power2_divisions:4", "expandable_segments:False", "max_split_size_mb:64,max_non_split_rounding_mb:32", ""]:
        churn(s, 60, mixture, 500 * MIB, drop_every=40)
        s.op("conf", conf)
    churn(s, 60, mixture, 500 * MIB, drop_every=40)
    s.op("empty_cache")
    write("switches", "settings changed while it runs", s, 1.1, ["default", "expandable", "default_limit"])

    s = Script(16)
    for conf in ["garbage_collection_threshold:0.5", "expandable_segments:True,garbage_collection_threshold:0.5", "max_split_size_mb:32", "large_segment_size_mb:40", "expandable_segments:False,garbage_collection_threshold:0.8"]:
        churn(s, 60, mixture, 500 * MIB, drop_every=40)
        s.op("conf", conf)
    churn(s, 60, mixture, 500 * MIB, drop_every=40)
    write("switches_limit", "settings changed while it runs under a limit", s, 1.1, ["default_limit", "expandable_limit", "split64_limit"])

    for number in range(1, 15):
        s = Script(1000 + number)
        rng = s.rng
        kinds = rng.sample([tiny, small, edge, middle, big, around_max_split, repeated], rng.randrange(2, 6))
        churn(s, rng.randrange(250, 450), [(kind, rng.choice([1, 1, 2, 4])) for kind in kinds], rng.choice([300, 600, 900, 1500]) * MIB, streams=rng.choice([(0,), (0,), (0, 0, 1), (0, 1, 2)]),
              empty_every=rng.choice([0, 0, 0, 15, 60]), drop_every=rng.choice([25, 50, 90]), rise=rng.uniform(0.55, 0.75), uses=rng.choice([0, 0, 0, 0.5]))
        write(f"chance_{number:02}", "mixture, streams and pressure by chance", s, rng.uniform(0.85, 1.25))


if __name__ == "__main__":
    main()
