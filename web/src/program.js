// The packed program: LZMA, as text in base 85. A page that is opened from a folder may not load files of it, so the
// program is a text of a script.
import { unpacked } from "./lzma.js";

// The digits are printable characters that need no escape in a script's string.
const FIRST_DIGIT = 35;
const BACKSLASH = 92;
const BLOCK_DIGITS = 5;
const BLOCK_BYTES = 4;

// Returns the digit of a character. The backslash is left out, so that characters beyond it are one too high.
function digit(code) {
  return code > BACKSLASH ? code - FIRST_DIGIT - 1 : code - FIRST_DIGIT;
}

// Returns the bytes of `size` that a text stands for: five digits, the most significant first, are four bytes.
function decoded(text, size) {
  const bytes = new Uint8Array(Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES);
  const view = new DataView(bytes.buffer);
  for (let block = 0; block * BLOCK_BYTES < size; block += 1) {
    let value = 0;
    for (let i = 0; i < BLOCK_DIGITS; i += 1) {
      value = value * 85 + digit(text.charCodeAt(block * BLOCK_DIGITS + i));
    }
    view.setUint32(block * BLOCK_BYTES, value);
  }
  return bytes.subarray(0, size);
}

// Returns the program's bytes: `packed` of them are a stream of which `size` bytes come.
export function unpack({ text, packed, size }) {
  return unpacked(decoded(text, packed), size);
}
