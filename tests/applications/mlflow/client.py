"""Tracks runs, models and files by MLflow's own client."""

import json
import sys
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, Param

url = f"http://127.0.0.1:{sys.argv[1]}"
mlflow.set_tracking_uri(url)
client = MlflowClient(url)
answers = {}

experiment = client.create_experiment("shop")
run = client.create_run(experiment)
client.log_batch(
    run.info.run_id,
    metrics=[Metric("loss", 1 / (step + 1), 0, step) for step in range(500)],
    params=[Param(f"p{number}", str(number)) for number in range(50)],
)
Path("model.bin").write_bytes(bytes(range(256)) * 40_000)
client.log_artifact(run.info.run_id, "model.bin", "files")
client.log_text(run.info.run_id, "hello", "said.txt")
client.set_terminated(run.info.run_id)

again = client.get_run(run.info.run_id)
answers["run"] = [again.info.status, again.data.metrics["loss"], len(again.data.params)]
answers["history"] = len(client.get_metric_history(run.info.run_id, "loss"))
answers["artifacts"] = [
    [each.path, each.is_dir, each.file_size] for each in client.list_artifacts(run.info.run_id)
]
loaded = Path(client.download_artifacts(run.info.run_id, "files/model.bin"))
answers["download"] = loaded.read_bytes() == Path("model.bin").read_bytes()
answers["search"] = len(client.search_runs([experiment], "metrics.loss < 0.5"))
client.create_registered_model("shop-model")
version = client.create_model_version("shop-model", f"runs:/{run.info.run_id}/files", run.info.run_id)
client.set_registered_model_alias("shop-model", "champion", version.version)
answers["model"] = str(client.get_model_version_by_alias("shop-model", "champion").version)
try:
    client.get_run("0" * 32)
except mlflow.exceptions.MlflowException as error:
    answers["missing"] = error.error_code

print(json.dumps(answers))
