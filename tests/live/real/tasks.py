"""Workers that take tasks from a queue and mark a table in shared memory; each says what it moved.

usage: tasks.py TASKS BYTES HOLD

TASKS objects of about BYTES bytes go to two workers, who answer each. At the end every process
prints a line of JSON and rests with everything open until the file HOLD is there.
"""
import json
import multiprocessing
import os
import sys
import time
from multiprocessing.reduction import ForkingPickler
from multiprocessing.shared_memory import SharedMemory

WORKERS = 2
HEADER = 4  # bytes of the length that stands before each object in a pipe


class Ledger:
    """What this process put into queues, and took out of them."""

    def __init__(self, role):
        self.line = {"role": role, "pid": os.getpid(), "put": 0, "put_bytes": 0, "got": 0,
                     "got_bytes": 0}

    def add(self, what, thing):
        self.line[what] += 1
        self.line[f"{what}_bytes"] += HEADER + len(ForkingPickler.dumps(thing))

    def put(self, queue, thing):
        self.add("put", thing)
        queue.put(thing)

    def get(self, queue):
        thing = queue.get()
        self.add("got", thing)
        return thing

    def print(self, **more):
        os.write(1, (json.dumps({**self.line, **more}) + "\n").encode())


def work(tasks, answers, table_name, hold):
    table = SharedMemory(table_name)
    ledger = Ledger("worker")
    while task := ledger.get(tasks):
        number, content = task
        table.buf[number] = content[0]
        ledger.put(answers, (number, len(content)))
    # The thread that feeds the queue may still be at it.
    answers.close()
    answers.join_thread()
    ledger.print()
    while not os.path.exists(hold):
        time.sleep(0.05)
    table.close()


def give(tasks, answers, table, count, size):
    ledger = Ledger("parent")
    for number in range(count):
        ledger.put(tasks, (number, bytes([number % 250 + 1]) * size))
    for _ in range(WORKERS):
        ledger.put(tasks, None)
    for _ in range(count):
        number, length = ledger.get(answers)
        if length != size or table.buf[number] != number % 250 + 1:
            sys.exit(f"error: task {number} was not done")
    return ledger


def main():
    count, size, hold = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    fork = multiprocessing.get_context("fork")
    table = SharedMemory(create=True, size=count)
    # Whoever gives faster than they take would fill the memory.
    tasks, answers = fork.Queue(1000), fork.Queue()
    workers = [fork.Process(target=work, args=(tasks, answers, table.name, hold))
               for _ in range(WORKERS)]
    for w in workers:
        w.start()
    ledger = give(tasks, answers, table, count, size)
    ledger.print(table=table.name, table_bytes=count)
    for w in workers:
        w.join()
    table.close()
    table.unlink()


if __name__ == "__main__":
    main()
