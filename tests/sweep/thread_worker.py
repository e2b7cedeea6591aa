"""A worker in a thread of the test, so that its runs are functions of the test."""

import json
import queue
import threading

from transformer_ablation.sweep import worker


class ThreadWorker:
    """The real loop and protocol of a worker, without a process."""

    def __init__(self, run_one, hear, read_record, mark_stopped):
        self.requests = queue.SimpleQueue()

        def serve():
            worker.serve(
                iter(self.requests.get, None),
                lambda message: hear(self, json.loads(json.dumps(message))),
                lambda: run_one,
                read_record=read_record,
                mark_stopped=mark_stopped,
            )
            hear(self, 0)

        self.thread = threading.Thread(target=serve)
        self.thread.start()

    def send(self, message):
        self.requests.put(json.dumps(message))

    def close(self):
        self.requests.put(None)

    def wait(self):
        self.thread.join(60)

    def kill(self):
        raise AssertionError("a thread cannot be killed")
