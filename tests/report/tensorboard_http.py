"""TensorBoard over a folder, asked over HTTP as a browser asks it, without a socket."""

import json

from tensorboard import default, program
from tensorboard.backend import application
from tensorboard.backend.event_processing.data_ingester import LocalDataIngester
from werkzeug.test import Client

STATUSES = ("UNKNOWN", "SUCCESS", "FAILURE", "RUNNING")


class Board:
    """What TensorBoard shows of a folder as it is now."""

    def __init__(self, folder):
        board = program.TensorBoard(default.get_plugins())
        given = f"--logdir={folder} --reload_interval=0 --reload_task=blocking"
        board.configure(["tensorboard", *given.split(), "--load_fast=false"])
        ingester = LocalDataIngester(board.flags)
        ingester.start()
        self._client = Client(
            application.TensorBoardWSGIApp(
                board.flags,
                default.get_static_plugins(),
                ingester.data_provider,
                deprecated_multiplexer=ingester.deprecated_multiplexer,
            )
        )

    def get(self, plugin, route, **query):
        """The answer of a plugin, from JSON."""
        response = self._client.get(
            f"/data/plugin/{plugin}/{route}", query_string=query
        )
        assert response.status_code == 200, response.text
        return response.json

    def raw(self, plugin, route):
        """The answer of a plugin, as bytes."""
        response = self._client.get(f"/data/plugin/{plugin}/{route}")
        assert response.status_code == 200
        return response.data

    def tags(self):
        """``{run: its scalar tags}``."""
        return {run: set(t) for run, t in self.get("scalars", "tags").items()}

    def scalars(self, run, tag):
        """[(step, value)] of a curve."""
        points = self.get("scalars", "scalars", run=run, tag=tag)
        return [(step, value) for _, step, value in points]

    def columns(self):
        """``{heading: column}`` of the HParams tab, and its metrics."""
        answer = self._hparams("experiment", {})
        found = {c["displayName"]: c for c in answer["hparamInfos"]}
        return found, [m["name"]["tag"] for m in answer["metricInfos"]]

    def sessions(self, sorted_by=None, order="ORDER_ASC"):
        """Runs of the HParams tab in order: (name, status, hparams, metrics)."""
        columns, metrics = self.columns()
        params = [{"hparam": c["name"]} for c in columns.values()]
        params += [{"metric": {"group": "", "tag": tag}} for tag in metrics]
        for param in params:
            named = param.get("hparam") or param["metric"]["tag"]
            param["order"] = order if named == sorted_by else "ORDER_UNSPECIFIED"
        request = {
            "allowedStatuses": [f"STATUS_{s}" for s in STATUSES],
            "colParams": params,
            "startIndex": 0,
            "sliceSize": 100,
        }
        found = []
        for group in self._hparams("session_groups", request)["sessionGroups"]:
            (session,) = group["sessions"]
            values = {v["name"]["tag"]: v["value"] for v in session["metricValues"]}
            status = session["status"].removeprefix("STATUS_")
            found.append((session["name"], status, group["hparams"], values))
        return found

    def _hparams(self, route, request):
        response = self._client.post(
            f"/data/plugin/hparams/{route}",
            data=json.dumps({"experimentName": "", **request}),
            content_type="application/json",
        )
        assert response.status_code == 200, response.text
        return json.loads(response.text)
