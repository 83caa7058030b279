"""Reinforcement learning: policy gradients (Williams 1992) balance a pole on a cart.

The cart and its pole are those of Barto, Sutton and Anderson (1983), many of them at once as one tensor.
"""

from common import arguments, figure

import rushlight as torch
from rushlight import nn
from rushlight.distributions import Bernoulli

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, STEP = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
LONGEST = 200


def push(state, right):
    """The states (position, speed, angle, its speed) one step later."""
    x, v, angle, turn = state.unbind(1)
    force = (2 * right - 1) * FORCE
    total, moment = CART + POLE, POLE * HALF_LENGTH
    pressed = (force + moment * turn**2 * angle.sin()) / total
    bend = GRAVITY * angle.sin() - angle.cos() * pressed
    bend = bend / (HALF_LENGTH * (4 / 3 - POLE * angle.cos() ** 2 / total))
    speed_up = pressed - moment * bend * angle.cos() / total
    return state + STEP * torch.stack([v, speed_up, turn, bend], 1)


def play(policy, count):
    """Log-probabilities of the actions and whether the carts were still up, each (time, cart)."""
    state = (torch.rand(count, 4) - 0.5) * 0.1
    alive = torch.ones(count)
    logs, up = [], []
    for _ in range(LONGEST):
        choice = Bernoulli(logits=policy(state).squeeze(1))
        right = choice.sample()
        logs.append(choice.log_prob(right))
        up.append(alive)
        state = push(state, right)
        alive = alive * (state[:, 0].abs() < 2.4) * (state[:, 2].abs() < 0.2095)
        if not alive.any():
            break
    return torch.stack(logs), torch.stack(up)


def main():
    given = arguments(__doc__, steps=60)
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths = []
    for step in range(1, given.steps + 1):
        logs, up = play(policy, 32)
        to_come = up.flip(0).cumsum(0).flip(0)
        advantage = (to_come - to_come[up > 0].mean()) / (to_come[up > 0].std() + 1e-5)
        loss = -(logs * advantage * up).sum() / up.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lengths.append(up.sum(0).mean().item())
        if step % 10 == 0 or step == given.steps:
            print(f"step {step}: up for {lengths[-1]:.0f} of {LONGEST} steps")
    made, axes = figure()
    axes.plot(lengths)
    axes.set(xlabel="update", ylabel="steps until the pole falls")
    made.savefig(given.out / "cart_pole.png")


if __name__ == "__main__":
    main()
