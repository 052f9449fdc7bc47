// The part of WASI (preview 1) that the simulator uses: it reads a request from stdin, may open files that the page
// gives it, and writes lines to stdout. There is nothing else: no clock but one that stands still, no real files.

const SUCCESS = 0;
const BAD_FD = 8;
const INVALID = 28;
const NO_ENTRY = 44;
const NOT_SUPPORTED = 52;

const STDIN = 0;
const STDERR = 2;
const FOLDER = 3;
const FIRST_FILE = 4;

const CHARACTER_DEVICE = 2;
const DIRECTORY = 3;
const REGULAR_FILE = 4;

// Ends the program from within a call; `proc_exit` must not return.
class Exit extends Error {
  constructor(status) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

// A file, or stdin, that is read from its beginning.
class Source {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  read(into) {
    const part = this.bytes.subarray(this.at, this.at + into.length);
    into.set(part);
    this.at += part.length;
    return part.length;
  }
}

// One run of the program. `files` are its folder's, by name; `onText` takes what it writes to stdout.
class System {
  constructor(stdin, files, onText) {
    this.files = files;
    this.onText = onText;
    this.open = new Map([[STDIN, new Source(stdin)]]);
    this.next = FIRST_FILE;
    this.complaint = "";
    this.decoders = [null, new TextDecoder(), new TextDecoder()];
  }

  attach(memory) {
    this.memory = memory;
  }

  // Memory may have grown since the last call, which makes older views useless.
  view() {
    return new DataView(this.memory.buffer);
  }

  bytes(at, length) {
    return new Uint8Array(this.memory.buffer, at, length);
  }

  // Calls `each` with the bytes of every buffer of a list, until it returns false; returns the sum of its counts.
  buffers(list, count, each) {
    let sum = 0;
    for (let i = 0; i < count; i += 1) {
      const view = this.view();
      const buffer = this.bytes(view.getUint32(list + 8 * i, true), view.getUint32(list + 8 * i + 4, true));
      const done = each(buffer);
      sum += done;
      if (done < buffer.length) {
        break;
      }
    }
    return sum;
  }

  fd_read(fd, list, count, result) {
    const source = this.open.get(fd);
    if (!source) {
      return BAD_FD;
    }
    this.view().setUint32(
      result,
      this.buffers(list, count, (buffer) => source.read(buffer)),
      true,
    );
    return SUCCESS;
  }

  fd_write(fd, list, count, result) {
    if (fd <= STDIN || fd > STDERR) {
      return BAD_FD;
    }
    const sum = this.buffers(list, count, (buffer) => {
      const text = this.decoders[fd].decode(buffer, { stream: true });
      if (fd === STDERR) {
        this.complaint += text;
      } else {
        this.onText(text);
      }
      return buffer.length;
    });
    this.view().setUint32(result, sum, true);
    return SUCCESS;
  }

  fd_seek(fd, offset, whence, result) {
    const source = this.open.get(fd);
    if (!source || fd === STDIN) {
      return BAD_FD;
    }
    const from = [0, source.at, source.bytes.length][whence];
    const at = from + Number(offset);
    if (!(at >= 0)) {
      return INVALID;
    }
    source.at = Math.min(at, source.bytes.length);
    this.view().setBigUint64(result, BigInt(source.at), true);
    return SUCCESS;
  }

  fd_close(fd) {
    return this.open.delete(fd) ? SUCCESS : BAD_FD;
  }

  fd_fdstat_get(fd, result) {
    if (fd > FOLDER && !this.open.has(fd)) {
      return BAD_FD;
    }
    this.bytes(result, 24).fill(0);
    const view = this.view();
    view.setUint8(result, fd <= STDERR ? CHARACTER_DEVICE : fd === FOLDER ? DIRECTORY : REGULAR_FILE);
    view.setBigUint64(result + 8, 0xffffffffn, true);
    view.setBigUint64(result + 16, 0xffffffffn, true);
    return SUCCESS;
  }

  fd_filestat_get(fd, result) {
    const source = this.open.get(fd);
    if (!source) {
      return BAD_FD;
    }
    this.stat(result, REGULAR_FILE, source.bytes.length);
    return SUCCESS;
  }

  stat(result, type, size) {
    this.bytes(result, 64).fill(0);
    this.view().setUint8(result + 16, type);
    this.view().setBigUint64(result + 32, BigInt(size), true);
  }

  // The program's only folder is its current one.
  fd_prestat_get(fd, result) {
    if (fd !== FOLDER) {
      return BAD_FD;
    }
    this.view().setUint32(result, 0, true);
    this.view().setUint32(result + 4, 1, true);
    return SUCCESS;
  }

  fd_prestat_dir_name(fd, path, length) {
    if (fd !== FOLDER || length < 1) {
      return BAD_FD;
    }
    this.bytes(path, 1)[0] = ".".charCodeAt(0);
    return SUCCESS;
  }

  file(path, length) {
    const name = new TextDecoder().decode(this.bytes(path, length));
    return Object.hasOwn(this.files, name) ? this.files[name] : null;
  }

  path_open(folder, _lookup, path, length, _how, _rights, _inherited, _flags, result) {
    const bytes = folder === FOLDER ? this.file(path, length) : null;
    if (!bytes) {
      return NO_ENTRY;
    }
    this.open.set(this.next, new Source(bytes));
    this.view().setUint32(result, this.next, true);
    this.next += 1;
    return SUCCESS;
  }

  path_filestat_get(folder, _lookup, path, length, result) {
    const bytes = folder === FOLDER ? this.file(path, length) : null;
    if (!bytes) {
      return NO_ENTRY;
    }
    this.stat(result, REGULAR_FILE, bytes.length);
    return SUCCESS;
  }

  nothing(count, size) {
    this.view().setUint32(count, 0, true);
    this.view().setUint32(size, 0, true);
    return SUCCESS;
  }

  environ_sizes_get(count, size) {
    return this.nothing(count, size);
  }

  args_sizes_get(count, size) {
    return this.nothing(count, size);
  }

  environ_get() {
    return SUCCESS;
  }

  args_get() {
    return SUCCESS;
  }

  clock_time_get(_clock, _precision, result) {
    this.view().setBigUint64(result, 0n, true);
    return SUCCESS;
  }

  // Seeds hash tables, whose order decides nothing that is shown.
  random_get(at, length) {
    this.bytes(at, length).fill(1);
    return SUCCESS;
  }

  proc_exit(status) {
    throw new Exit(status);
  }
}

// Runs a program of this kind to its end. Throws when it fails, with what it wrote to stderr.
export function runWasi(module, stdin, files, onText) {
  const system = new System(stdin, files, onText);
  const calls = {};
  for (const { name } of WebAssembly.Module.imports(module)) {
    calls[name] = name in system ? (...args) => system[name](...args) : () => NOT_SUPPORTED;
  }
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: calls });
  system.attach(instance.exports.memory);
  try {
    instance.exports._start();
  } catch (failure) {
    if (!(failure instanceof Exit && failure.status === 0)) {
      throw new Error(system.complaint.trim() || String(failure));
    }
  }
}
