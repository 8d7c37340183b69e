"""The rule by which the driver places cudaMalloc'd segments, checked against `../addresses.json`: `address_rule.py`.

Found by fitting, so it describes one driver (580.159.04), not a promise:

1. Segments lie in chunks. A chunk is a multiple of 32 MiB long, begins at a multiple of 32 MiB, and goes away with its last segment.
2. A request looks through the chunks, the newest first, and takes the first chunk with a hole that fits; in it the smallest such hole,
   the lowest of equal ones; it is placed at the hole's beginning.
3. If no chunk has room, a new one of the request's size, rounded up to 32 MiB, is mapped from the top downwards: at the end of the
   highest free range that holds it and 32 MiB less a page more (for the alignment). Mostly that is right below the last chunk.

Before the first request a few chunks of the driver's own exist. In a program that launched nothing they have room for 2 MiB (the newer
one, its end) and 24 MiB (96 MiB above). Kernels and libraries that load later leave more and larger ones; those are not known beforehand.
"""
import json
import os

MIB = 1 << 20
CHUNK, PAGE = 32 * MIB, 4096


class Driver:
    def __init__(self, top):
        self.top, self.chunks = top, []  # [start, size, {address: bytes}], oldest first

    def get(self, size):
        for start, length, blocks in reversed(self.chunks):
            holes, at = [], start
            for address, used in sorted(blocks.items()) + [(start + length, 0)]:
                if address - at >= size:
                    holes.append((address - at, at))
                at = address + used
            if holes:
                blocks[min(holes)[1]] = size
                return min(holes)[1]
        length = -(-size // CHUNK) * CHUNK
        start = self.below(length)
        self.chunks.append((start, length, {start: size}))
        return start

    def below(self, length):
        high = self.top
        for start, taken, _ in sorted((c[:2] + (None,) for c in self.chunks), reverse=True):
            if high - (start + taken) >= length + CHUNK - PAGE:
                break
            high = start
        return (high - length) // CHUNK * CHUNK

    def give(self, address):
        for chunk in self.chunks:
            if address in chunk[2]:
                del chunk[2][address]
                if not chunk[2]:
                    self.chunks.remove(chunk)
                return

    def put(self, address, size):
        """What was really done, where the rule says otherwise."""
        for start, length, blocks in self.chunks:
            if start <= address and address + size <= start + length:
                blocks[address] = size
                return
        self.chunks.append((address, -(-size // CHUNK) * CHUNK, {address: size}))


def check(rows, top):
    driver, right, all_ = Driver(top), 0, 0
    for what, mib, address in rows:
        if address >= top:  # in a chunk that was there before
            continue
        if what == "give":
            driver.give(address)
            continue
        all_ += 1
        said = driver.get(mib * MIB)
        right += said == address
        if said != address:
            driver.give(said)
            driver.put(address, mib * MIB)
    return right, all_


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "addresses.json")
    for name, runs in json.load(open(path)).items():
        if name == "reserve":
            continue
        for rows in runs:
            # Where the first chunk of the program's own can end is not known: of the candidates the one that explains most.
            first = rows[0][2] // CHUNK * CHUNK
            best = max(check(rows, first + n * CHUNK) for n in range(-20, 4))
            print(f"{name:18s} {best[0]} of {best[1]} segments placed as the rule says")


if __name__ == "__main__":
    main()
