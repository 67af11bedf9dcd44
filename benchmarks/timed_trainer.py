"""A trainer that trains and ranks when it is told to, timed: one side of `benchmarks.kge --against`.

Started as a file, in the folder of any checkout of this project since `benchmarks.kge` has been there; that checkout's
modules are what it measures. The settings come as one line of JSON on standard input, then one word a line: "train" is
one epoch, "rank" the whole test part at both ends. Each is answered by one line of JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    sys.path[0] = str(Path.cwd())  # in place of this file's folder
    told: dict[str, Any] = json.loads(sys.stdin.readline())

    import torch

    import secure_kg
    from benchmarks.kge import published_split
    from secure_kg.learning.config import TrainingConfig
    from secure_kg.learning.kge import KgeLearner

    if not Path(str(secure_kg.__file__)).resolve().is_relative_to(Path.cwd().resolve()):
        sys.exit("another checkout is installed and comes first")
    torch.set_num_threads(told["threads"])
    graph = published_split(told["dataset"])
    learner = KgeLearner(graph, TrainingConfig(**told["config"]), torch.device("cpu"), told["seed"], 1)
    answer({"triples": len(graph.train), "test": len(graph.test)})
    epoch = 0
    for line in sys.stdin:
        started, cpu_started = time.perf_counter(), time.process_time()
        if line.strip() == "train":
            found = {"loss": learner.train(epoch).loss}
            epoch += 1
        else:
            found = {"mrr": learner.rank("test", "both").metrics()["mrr"]}
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        answer({"seconds": seconds, "cpu_seconds": cpu_seconds, **found})


def answer(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
