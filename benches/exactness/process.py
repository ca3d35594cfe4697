"""A handler's process, with Lambda's runtime API and the way to the database in front of it, where faults happen."""

import base64
import dataclasses
import http.client
import json
import os
import queue
import random
import signal
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Of database calls: the answer is lost after DynamoDB did it, or DynamoDB throttles it.
LOST_CALLS = 0.02
THROTTLED_CALLS = 0.02
# A function's timeout. Powertools waits for so long until another invocation may take a record over.
TIMEOUT_S = 2
# A process that answers this late has hung, and the bench with it.
ANSWER_S = 120

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}
METERED = WRITES | {"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"}
THROTTLE = json.dumps({
    "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message": "The level of configured provisioned throughput for the table was exceeded.",
}).encode()


@dataclasses.dataclass
class Meter:
    """What all processes of a design and workload did."""

    write_units: float = 0
    cpu_s: float = 0
    n_calls: int = 0
    n_lost: int = 0
    n_throttled: int = 0
    n_killed: int = 0
    n_twice: int = 0
    n_unanswered: int = 0
    n_hung: int = 0
    n_failed: int = 0
    n_deliveries: int = 0
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, repr=False)

    def add(self, **counts):
        with self.lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)


class Process:
    """One instance of a function. It handles one event at a time."""

    def __init__(self, command, environment, database, has_faults, meter, log):
        self.database, self.meter, self.events, self.answers = database, meter, queue.Queue(), queue.Queue()
        self.random, self.kill_after, self.n_writes, self.lock = random.Random(0), None, 0, threading.Lock()
        # It hangs before that write until the batch's next delivery has begun; and an invocation that it ends.
        self.hang_before, self.has_begun, self.may_go_on, self.frees = None, threading.Event(), threading.Event(), None
        # Processor time of its start: until it first asks for an event.
        self.start_cpu_s = None
        handler = type("Bound", (Api,), {"process": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        address = f"127.0.0.1:{self.server.server_address[1]}"
        environment = environment | {
            "AWS_LAMBDA_RUNTIME_API": address,
            "AWS_ENDPOINT_URL": f"http://{address}" if has_faults else database,
            "AWS_LAMBDA_FUNCTION_NAME": "handler",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        }
        self.child = subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def invoke(self, event, draws, kill_after=None, hang_before=None, frees=None):
        """The response, or None if the process is dead or reports an error. It dies after so many writes."""
        self.random, self.kill_after, self.n_writes = random.Random(draws), kill_after, 0
        self.hang_before, self.frees = hang_before, frees
        self.has_begun.clear()
        self.events.put(json.dumps(event, default=lambda binary: base64.b64encode(binary).decode()).encode())
        end = time.monotonic() + ANSWER_S
        while time.monotonic() < end:
            try:
                response = self.answers.get(timeout=0.5)
                break
            except queue.Empty:
                if self.child.poll() is not None:
                    response = None
                    break
        else:
            raise TimeoutError(f"no answer after {ANSWER_S} s")
        if kill_after is not None and self.child.poll() is None:
            self.kill()
            return None
        return response

    @property
    def is_alive(self):
        return self.child.poll() is None

    @property
    def cpu_s(self):
        """User and system time of its threads so far: the clock of `clock_getcpuclockid(3)`."""
        return time.clock_gettime(~self.child.pid << 3 | 2)

    def kill(self):
        """Ends the process now."""
        if self.start_cpu_s is not None:
            self.meter.add(cpu_s=self.cpu_s - self.start_cpu_s)
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.answers.put(None)

    def close(self):
        if self.is_alive:
            self.kill()
        self.server.shutdown()
        self.server.server_close()


class Api(BaseHTTPRequestHandler):
    """`/2018-06-01/…` is the runtime API, and `/` is DynamoDB."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True
    upstream = None

    def do_GET(self):
        if self.process.start_cpu_s is None:
            self.process.start_cpu_s = self.process.cpu_s
        event = self.process.events.get()
        self.process.has_begun.set()
        if self.process.frees:
            self.process.frees.may_go_on.set()
        self.answer(200, event, {
            "Lambda-Runtime-Aws-Request-Id": os.urandom(8).hex(),
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + TIMEOUT_S) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:handler",
        })

    def do_POST(self):
        length = self.headers.get("Content-Length")
        body = self.chunks() if length is None else self.rfile.read(int(length))
        if self.path.startswith("/2018-06-01/"):
            is_error = self.path.endswith("/error")
            if is_error:
                self.process.meter.add(n_failed=1)
            self.answer(202, b"{}", {})
            self.wfile.flush()
            self.process.answers.put(None if is_error else json.loads(body or b"null") or {})
        else:
            self.call(body)

    def chunks(self):
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def call(self, body):
        process, name = self.process, self.headers.get("X-Amz-Target", "").split(".")[-1]
        with process.lock:
            drawn = process.random.random()
        if name in METERED and drawn < THROTTLED_CALLS:
            process.meter.add(n_calls=1, n_throttled=1)
            self.answer(400, THROTTLE, {"Content-Type": "application/x-amz-json-1.0"})
            return
        if name in METERED:
            body = json.dumps(json.loads(body) | {"ReturnConsumedCapacity": "TOTAL"}).encode()
        if name in WRITES and process.n_writes + 1 == process.hang_before:
            process.may_go_on.wait(ANSWER_S)
        status, headers, answer = self.forward(body)
        if name in METERED:
            units = consumed(json.loads(answer)) if name in WRITES and status == 200 else 0
            process.meter.add(n_calls=1, write_units=units)
        if name in WRITES:
            with process.lock:
                process.n_writes += 1
                is_killed = process.kill_after is not None and process.n_writes == process.kill_after
            if is_killed:
                process.kill()
        if not process.is_alive or (name in METERED and THROTTLED_CALLS <= drawn < THROTTLED_CALLS + LOST_CALLS):
            process.meter.add(n_lost=int(process.is_alive))
            self.close_connection = True
            return
        self.answer(status, answer, headers)

    def forward(self, body):
        if self.upstream is None:
            url = urllib.parse.urlsplit(self.process.database)
            self.upstream = http.client.HTTPConnection(url.hostname, url.port)
        kept = {name: value for name, value in self.headers.items()
                if name.lower() not in ("content-length", "host", "transfer-encoding", "connection", "expect")}
        self.upstream.request("POST", "/", body, kept)
        response = self.upstream.getresponse()
        answer = response.read()
        kept = {name: value for name, value in response.getheaders()
                if name.lower().startswith(("x-amz", "content-type"))}
        return response.status, kept, answer

    def answer(self, status, body, headers):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self):
        try:
            super().handle()
        except OSError:
            # The process is dead, or the server is.
            pass
        finally:
            if self.upstream:
                self.upstream.close()

    def log_message(self, *_):
        pass


def consumed(answer):
    found = answer.get("ConsumedCapacity") or []
    return sum(each["CapacityUnits"] for each in (found if isinstance(found, list) else [found]))
