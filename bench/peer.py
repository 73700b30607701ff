"""A peer in its own process and venv, which answers requests one at a time (its side: bench/peers/serve.py)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.common import REPOSITORY
from corpusmill.errors import MillError, NotFound

VENV = REPOSITORY / ".bench-venv"
SCRIPTS = Path(__file__).parent / "peers"


class Peer:
    """`with Peer("datatrove_chain", log) as peer: peer.ask({...})`; the process lives until the end of the block.

    Args:
        script: name of a script in bench/peers.
        log: file that gets what the peer prints.
        instead: folder in the peers' venv whose packages stand in for those that the peer pins.
        venv: of those in bench/peers-VENV.txt; by default that of bench/peers.txt.

    Raises:
        NotFound: the peers' venv was not made yet.
    """

    def __init__(self, script: str, log: Path, instead: str | None = None, venv: str = "") -> None:
        python = VENV / venv / "bin" / "python"
        if not python.is_file():
            raise NotFound("the peers are not installed", f"no {python}", "Run `make bench-setup`, or give --no-peer.")
        self.script, self.log = script, log
        self.command = [str(python), str(SCRIPTS / f"{script}.py")]
        self.environment = {**os.environ, "BENCH_PEER_PATH": str(VENV / instead) if instead else ""}

    def __enter__(self) -> Peer:
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self.environment,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.process.terminate()
        with self.process:  # closes the pipes, at which it ends, and waits for it
            pass

    def ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        """The peer's answer to one request.

        Raises:
            MillError: the peer failed; its own words are in the message.
        """
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": self.log.read_text(errors="replace")}
        if "error" in answer:
            raise MillError(f"peer {self.script} failed", answer["error"][-3000:], f"Its output is in {self.log}.")
        return answer
