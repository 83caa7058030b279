"""The TypeScript types: programs that are right compile, programs that are wrong do not."""

import shutil
import subprocess

import pytest
from javascript import ROOT

SCRIPTS = ROOT / "src" / "web" / "js"
pytestmark = pytest.mark.skipif(not shutil.which("tsc"), reason="no tsc (apt install node-typescript)")

PROGRAM = """
import { init, RushlightError, type Model, type Rushlight, type Tensor } from "./rushlight.js";
const rl: Rushlight = await init();
const model: Model = await rl.fetchModel("m.rl");
const { output } = model.run({ images: new Float32Array(3) });
const shape: number[] = output!.shape;
const net = rl.nn.sequential(rl.nn.linear(2, 8), rl.nn.tanh());
const optimizer = rl.optim.adamW(net.parameters(), { lr: 0.1, betas: [0.8, 0.9] });
const value: number = rl.tidy(() => {
  const loss = rl.nn.mseLoss(net.forward(rl.tensor([[1, 2]])), rl.zeros(1, 8));
  loss.backward();
  optimizer.step();
  return loss.item();
});
try {
  rl.loadModel(new Uint8Array(3));
} catch (e) {
  if (e instanceof RushlightError && e.kind === "runtime") console.log(shape, value);
}
class Mine extends rl.nn.Module {
  one = rl.nn.linear(1, 2);
  forward(x: Tensor) {
    return this.one.forward(x).relu();
  }
}
new Mine().parameters();
"""
WRONG = {
    'rl.tensor("text");': "not assignable",
    "rl.nn.linear(3);": "Expected 2-3 arguments",
    "rl.optim.adamW(net.parameters(), { rate: 1 });": "'rate' does not exist",
    'rl.zeros(2).requiresGrad("yes");': "not assignable",
}


def compile_program(folder, text):
    shutil.copy2(SCRIPTS / "rushlight.d.ts", folder)
    (folder / "program.mts").write_text(text)
    options = [
        "--noEmit",
        "--strict",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--moduleResolution",
        "nodenext",
    ]
    done = subprocess.run(["tsc", *options, "program.mts"], cwd=folder, capture_output=True, text=True)
    return done.stdout


def test_programs_compile(tmp_path):
    assert compile_program(tmp_path, PROGRAM) == ""


def test_mistakes_are_seen(tmp_path):
    lines = PROGRAM.count("\n")
    found = compile_program(tmp_path, PROGRAM + "\n".join(WRONG)).splitlines()
    errors = [line for line in found if line.startswith("program.mts(")]
    assert len(errors) == len(WRONG)
    for i, (error, reason) in enumerate(zip(errors, WRONG.values(), strict=True)):
        assert error.startswith(f"program.mts({lines + 1 + i},") and reason in "\n".join(found), error
