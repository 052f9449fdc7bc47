// The page's side of the simulator: requests are run one after the other in a worker, and can be given up.
// An error that a visitor can do something about: a setting or a trace is wrong.
export class Refusal extends Error {}

export class Engine {
  // `source` is the worker's text, `packed` the program.
  constructor(source, packed) {
    this.address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.program = { packed };
    this.jobs = [];
    this.number = 0;
    this.worker = null;
  }

  // Runs a request. `onLine` gets each line as it comes; the promise has the last one. A job that was given up through
  // `signal` never settles: whoever gave it up does not wait for it.
  run(request, { files = {}, onLine = () => {}, signal = null } = {}) {
    return new Promise((resolve, reject) => {
      this.number += 1;
      const job = { number: this.number, request, files, onLine, resolve, reject, last: null };
      signal?.addEventListener("abort", () => this.giveUp(job), { once: true });
      this.jobs.push(job);
      if (this.jobs.length === 1) {
        this.start();
      }
    });
  }

  giveUp(job) {
    const at = this.jobs.indexOf(job);
    if (at < 0) {
      return;
    }
    this.jobs.splice(at, 1);
    if (at === 0) {
      // The program cannot be interrupted, so its worker goes.
      this.worker?.terminate();
      this.worker = null;
      if (this.jobs.length > 0) {
        this.start();
      }
    }
  }

  start() {
    const job = this.jobs[0];
    if (!this.worker) {
      this.worker = new Worker(this.address);
      this.worker.onmessage = ({ data }) => this.take(data);
      this.worker.onerror = (event) => this.take({ number: this.jobs[0]?.number, done: true, failed: event.message });
      this.worker.postMessage(this.program);
    }
    this.worker.postMessage({ number: job.number, request: job.request, files: job.files });
  }

  take({ program, number, text, done, failed }) {
    if (program) {
      // The next worker need not unpack it again.
      this.program = { program };
      return;
    }
    const job = this.jobs[0];
    if (!job || job.number !== number) {
      return;
    }
    if (text !== undefined) {
      for (const one of text.split("\n")) {
        job.last = JSON.parse(one);
        job.onLine(job.last);
      }
    }
    if (done) {
      this.jobs.shift();
      if (failed) {
        job.reject(new Error(`The simulator stopped: ${failed}`));
      } else if (job.last?.error) {
        job.reject(new Refusal(job.last.error));
      } else {
        job.resolve(job.last);
      }
      if (this.jobs.length > 0) {
        this.start();
      }
    }
  }
}
