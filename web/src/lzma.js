// A decoder of LZMA, which packs the simulator a quarter smaller than gzip does, the only format that all browsers
// unpack themselves. The stream is raw: without header and end mark, with the usual lc = 3, lp = 0, pb = 2.

const LITERAL_CONTEXT = 3;
const POSITIONS = 4;
const STATES = 12;
// Probabilities have 11 bits and move by a 32nd.
const EVEN = 1024;
const WHOLE_BITS = 11;
const MOVE_BITS = 5;
const SHORTEST_MATCH = 2;

function probabilities(count) {
  return new Uint16Array(count).fill(EVEN);
}

// Decodes single bits: `code` is where the stream is within `range`. Both have 32 bits without a sign, which are quick
// only in an array of such numbers.
const RANGE = 0;
const CODE = 1;

class Bits {
  constructor(bytes) {
    this.bytes = bytes;
    this.now = Uint32Array.of(0xffffffff, new DataView(bytes.buffer, bytes.byteOffset).getUint32(1));
    this.at = 5;
  }

  fill() {
    const { now } = this;
    if (now[RANGE] < 0x1000000) {
      now[RANGE] <<= 8;
      now[CODE] = (now[CODE] << 8) | this.bytes[this.at];
      this.at += 1;
    }
  }

  next(from, i) {
    this.fill();
    const { now } = this;
    const p = from[i];
    const bound = Math.imul(now[RANGE] >>> WHOLE_BITS, p) >>> 0;
    if (now[CODE] < bound) {
      now[RANGE] = bound;
      from[i] = p + (((1 << WHOLE_BITS) - p) >> MOVE_BITS);
      return 0;
    }
    now[RANGE] -= bound;
    now[CODE] -= bound;
    from[i] = p - (p >> MOVE_BITS);
    return 1;
  }

  // Bits without probabilities.
  direct(count) {
    const { now } = this;
    let value = 0;
    for (let i = 0; i < count; i += 1) {
      this.fill();
      now[RANGE] >>>= 1;
      const bit = now[CODE] >= now[RANGE] ? 1 : 0;
      now[CODE] -= bit * now[RANGE];
      value = value * 2 + bit;
    }
    return value;
  }

  // The highest bit first; each has a probability for every value of those before it.
  tree(from, offset, count) {
    let value = 1;
    for (let i = 0; i < count; i += 1) {
      value = (value << 1) | this.next(from, offset + value);
    }
    return value - (1 << count);
  }

  // The lowest bit first.
  reversed(from, offset, count) {
    let [node, value] = [1, 0];
    for (let i = 0; i < count; i += 1) {
      const bit = this.next(from, offset + node);
      node = (node << 1) | bit;
      value |= bit << i;
    }
    return value;
  }
}

// The length of a match, without the shortest one.
class Length {
  constructor() {
    this.choice = probabilities(2);
    this.low = probabilities(POSITIONS << 3);
    this.middle = probabilities(POSITIONS << 3);
    this.high = probabilities(256);
  }

  next(bits, position) {
    if (!bits.next(this.choice, 0)) {
      return bits.tree(this.low, position << 3, 3);
    }
    if (!bits.next(this.choice, 1)) {
      return 8 + bits.tree(this.middle, position << 3, 3);
    }
    return 16 + bits.tree(this.high, 0, 8);
  }
}

class Distance {
  constructor() {
    this.slots = probabilities(4 << 6);
    this.low = probabilities(128);
    this.aligned = probabilities(16);
  }

  next(bits, length) {
    const slot = bits.tree(this.slots, Math.min(length, 3) << 6, 6);
    if (slot < 4) {
      return slot;
    }
    const count = (slot >> 1) - 1;
    const high = ((2 | (slot & 1)) << count) >>> 0;
    if (slot < 14) {
      return high + bits.reversed(this.low, high - slot, count);
    }
    return high + bits.direct(count - 4) * 16 + bits.reversed(this.aligned, 0, 4);
  }
}

// A byte; after a match, the byte that the match would have continued with says what is likely.
function literal(bits, from, before, expected) {
  const offset = 0x300 * (before >> (8 - LITERAL_CONTEXT));
  let value = 1;
  let likely = expected;
  while (likely !== null && value < 0x100) {
    const bit = (likely >> 7) & 1;
    likely = (likely << 1) & 0xff;
    const found = bits.next(from, offset + ((1 + bit) << 8) + value);
    value = (value << 1) | found;
    if (found !== bit) {
      likely = null;
    }
  }
  while (value < 0x100) {
    value = (value << 1) | bits.next(from, offset + value);
  }
  return value & 0xff;
}

// Returns the `size` bytes that a stream stands for.
export function unpacked(bytes, size) {
  const bits = new Bits(bytes);
  const out = new Uint8Array(size);
  const literals = probabilities(0x300 << LITERAL_CONTEXT);
  const [isMatch, isLong] = [probabilities(STATES * POSITIONS), probabilities(STATES * POSITIONS)];
  const [isOld, isFirst, isSecond, isThird] = Array.from({ length: 4 }, () => probabilities(STATES));
  const [lengths, oldLengths, distances] = [new Length(), new Length(), new Distance()];
  let old = [0, 0, 0, 0];
  let [state, at] = [0, 0];
  while (at < size) {
    const position = at % POSITIONS;
    const context = state * POSITIONS + position;
    if (!bits.next(isMatch, context)) {
      const expected = state >= 7 ? out[at - old[0] - 1] : null;
      out[at] = literal(bits, literals, at > 0 ? out[at - 1] : 0, expected);
      at += 1;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    const afterLiteral = state < 7;
    let length;
    if (!bits.next(isOld, state)) {
      length = SHORTEST_MATCH + lengths.next(bits, position);
      old = [distances.next(bits, length - SHORTEST_MATCH), old[0], old[1], old[2]];
      state = afterLiteral ? 7 : 10;
    } else {
      // The distance of one of the last four matches; of the last one, a single byte, too.
      const which = !bits.next(isFirst, state) ? 0 : !bits.next(isSecond, state) ? 1 : 2 + bits.next(isThird, state);
      if (which === 0 && !bits.next(isLong, context)) {
        length = 1;
        state = afterLiteral ? 9 : 11;
      } else {
        old = [old[which], ...old.filter((_, i) => i !== which)];
        length = SHORTEST_MATCH + oldLengths.next(bits, position);
        state = afterLiteral ? 8 : 11;
      }
    }
    for (const end = Math.min(at + length, size); at < end; at += 1) {
      out[at] = out[at - old[0] - 1];
    }
  }
  return out;
}
