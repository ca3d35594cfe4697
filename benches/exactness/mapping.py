"""An event source mapping: batches of a stream's shards in order, each until it succeeds, with faults of its own."""

import queue
import random
import threading
import time
import zlib

from process import ANSWER_S, TIMEOUT_S, Process

BATCH = 10
# Of 100 deliveries: the process is killed in its middle, its response is lost, it is invoked twice at once, or it hangs
# at a write until its timeout, and goes on while the batch is delivered again.
KILLED, UNANSWERED, TWICE, HUNG = 10, 10, 10, 5
NO_FAULT = 100
# Between two attempts.
BACKOFF_S = 0.2


class Lane:
    """Handles one batch of its records after the other."""

    def __init__(self, start, draws, shard, n_records, ends, is_windowed, meter, stop):
        self.start, self.draws, self.shard, self.n_records, self.ends = start, draws, shard, n_records, ends
        self.is_windowed, self.meter, self.stop = is_windowed, meter, stop
        self.records, self.processes, self.state = queue.Queue(), [None, None], {}
        # Processes that hung, each with the thread of its invocation.
        self.hung = []
        # Writes of the last delivery without a fault of the mapping: a process is killed at a part of them.
        self.n_writes = n_records
        self.is_idle = True

    def process(self, which):
        if self.processes[which] is None or not self.processes[which].is_alive:
            self.close(which)
            self.processes[which] = self.start()
        return self.processes[which]

    def close(self, which):
        if self.processes[which]:
            self.processes[which].close()

    def run(self):
        pending, number, cut = [], 0, self.n_records
        while not self.stop.is_set():
            while len(pending) < self.n_records:
                try:
                    pending.append(self.records.get(timeout=0.02))
                    self.is_idle = False
                except queue.Empty:
                    break
            if not pending:
                self.is_idle = not any(thread.is_alive() for _, thread in self.hung)
                continue
            draw = random.Random(f"{self.draws}/{number}")
            fate, part, next_cut = draw.randrange(100), draw.random(), 1 + draw.randrange(self.n_records)
            batch = pending[:cut]
            is_repeated = self.delivered(batch, number, fate if self.draws else NO_FAULT, part)
            number += 1
            cut = next_cut if is_repeated else self.n_records
            if not is_repeated:
                del pending[: len(batch)]
        for which in (0, 1):
            self.close(which)
        for process, _ in self.hung:
            process.close()

    def delivered(self, batch, number, fate, part):
        """Delivers a batch until it has succeeded, or has met a fault. Returns whether all of it is to come again."""
        attempt = 0
        while batch and not self.stop.is_set():
            self.meter.add(n_deliveries=1)
            is_first, attempt = attempt == 0, attempt + 1
            is_killed = is_first and fate < KILLED
            is_unanswered = is_first and KILLED <= fate < KILLED + UNANSWERED
            is_twice = is_first and KILLED + UNANSWERED <= fate < KILLED + UNANSWERED + TWICE
            is_hung = is_first and 0 <= fate - KILLED - UNANSWERED - TWICE < HUNG
            draws = f"{self.draws}/{number}/{attempt}"
            if is_hung:
                self.hangs(self.event(batch), draws, 1 + int(part * self.n_writes))
                return True
            response = self.invoked(self.event(batch), draws, is_killed, is_twice, part)
            if is_killed or is_unanswered:
                self.meter.add(n_killed=int(is_killed), n_unanswered=int(is_unanswered))
                return True
            if response is not None and not is_twice and is_first:
                self.n_writes = max(1, self.processes[0].n_writes)
            rest = self.rest(batch, response)
            self.ends |= {record["dynamodb"]["SequenceNumber"]: time.time() for record in batch[: len(batch) - len(rest)]}
            batch = rest
            if batch:
                time.sleep(BACKOFF_S)
        return False

    def hangs(self, event, draws, before):
        """Waits until the function's timeout. Its invocation goes on when that of the next delivery begins."""
        process, self.processes[0] = self.process(0), None
        arguments = {"hang_before": before, "frees": self.last_hung}
        thread = threading.Thread(target=process.invoke, args=(event, draws), kwargs=arguments)
        thread.start()
        process.has_begun.wait(ANSWER_S)
        thread.join(TIMEOUT_S)
        self.meter.add(n_hung=1)
        self.hung.append((process, thread))

    @property
    def last_hung(self):
        return self.hung[-1][0] if self.hung else None

    def event(self, batch):
        event = {"Records": batch}
        if self.is_windowed:
            window = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:01:00Z"}
            event |= {"window": window, "state": self.state, "shardId": self.shard,
                      "isFinalInvokeForWindow": False, "isWindowTerminatedEarly": False}
        return event

    def invoked(self, event, draws, is_killed, is_twice, part):
        kill_after = 1 + int(part * self.n_writes) if is_killed else None
        process = self.process(0)
        if is_twice:
            self.meter.add(n_twice=1)
            other = threading.Thread(target=self.process(1).invoke, args=(event, f"{draws}/other"))
            other.start()
        response = process.invoke(event, draws, kill_after, frees=self.last_hung)
        if is_twice:
            other.join()
        return response

    def rest(self, batch, response):
        """Which records are to come again: those from the first failed one on, or all after an error."""
        if response is None:
            return batch
        failed = {failure["itemIdentifier"] for failure in response.get("batchItemFailures") or []}
        if not failed:
            self.state = response.get("state") or {}
        numbers = [record["dynamodb"]["SequenceNumber"] for record in batch]
        first = next((place for place, number in enumerate(numbers) if number in failed), len(batch) if not failed else 0)
        return batch[first:]


class Mapping:
    """A function that reads the stream in so many lanes. An item's records are all in one, as in a shard.

    Without `draws`, there are no faults, and its processes call the database directly.
    """

    def __init__(self, command, environment, database, passes, draws, n_lanes, n_records, is_windowed, meter, log):
        def start():
            return Process(command, environment, database, draws is not None, meter, log)

        self.passes, self.stop = passes, threading.Event()
        # When the delivery that handled a record ended, by sequence number.
        self.ends = {}
        self.lanes = [Lane(start, draws and f"{draws}/{lane}", f"shardId-{1573689847180 + lane:020}-864758bb", n_records,
                           self.ends, is_windowed, meter, self.stop) for lane in range(n_lanes)]
        self.threads = [threading.Thread(target=lane.run, daemon=True) for lane in self.lanes]
        for thread in self.threads:
            thread.start()

    def take(self, record):
        if self.passes(record):
            key = record["dynamodb"]["Keys"]["pk"]["S"].encode()
            self.lanes[zlib.crc32(key) % len(self.lanes)].records.put(record)

    @property
    def is_idle(self):
        return all(lane.is_idle and lane.records.empty() for lane in self.lanes)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
