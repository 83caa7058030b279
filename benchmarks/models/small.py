"""A perceptron, a recommender, a pair of adversaries, a policy that learns to balance a pole."""

import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from . import Workload, adam, momentum, supervised


def mlp(sizes, precision):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    return supervised(model, momentum(model), (x,), lambda out: F.cross_entropy(out, y), precision)


class NCF(nn.Module):
    """Neural collaborative filtering: a product of factors beside a perceptron."""

    def __init__(self, users, items, width):
        super().__init__()
        self.user_factor, self.item_factor = nn.Embedding(users, width), nn.Embedding(items, width)
        self.user, self.item = nn.Embedding(users, 2 * width), nn.Embedding(items, 2 * width)
        layers = []
        for inputs in (4 * width, 2 * width, width):
            layers += [nn.Linear(inputs, max(inputs // 2, width)), nn.ReLU()]
        self.mlp, self.out = nn.Sequential(*layers), nn.Linear(2 * width, 1)

    def forward(self, user, item):
        factors = self.user_factor(user) * self.item_factor(item)
        mixed = self.mlp(torch.cat([self.user(user), self.item(item)], 1))
        return self.out(torch.cat([factors, mixed], 1)).squeeze(1)


def ncf(sizes, precision):
    users, items, batch = sizes(138493, 50), sizes(26744, 20), sizes(2048, 8)
    model = NCF(users, items, sizes(64, 4))
    inputs = torch.randint(0, users, (batch,)), torch.randint(0, items, (batch,))
    clicked = torch.randint(0, 2, (batch,)).float()
    loss = lambda out: F.binary_cross_entropy_with_logits(out.float(), clicked)
    return supervised(model, adam(model), inputs, loss, precision)


def generator(noise, width):
    return nn.Sequential(
        nn.ConvTranspose2d(noise, 4 * width, 4, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 3, 4, 2, 1),
        nn.Tanh(),
    )


def discriminator(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * width, 4 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(4 * width, 1, 4),
        nn.Flatten(0),
    )


def gan(sizes, precision):
    """DCGAN on images of 32 x 32: a step of the discriminator, then one of the generator."""
    batch, noise, width = sizes(32, 4), sizes(64, 8), sizes(32, 4)
    make, judge = generator(noise, width), discriminator(width)
    make_optimizer, judge_optimizer = (
        torch.optim.Adam(m.parameters(), 2e-4, (0.5, 0.999)) for m in (make, judge)
    )
    real, yes, no = torch.rand(batch, 3, 32, 32) * 2 - 1, torch.ones(batch), torch.zeros(batch)

    def verdict(images, truth):
        with precision():
            out = judge(images)
        return F.binary_cross_entropy_with_logits(out.float(), truth)

    def train():
        judge_optimizer.zero_grad()
        with precision():
            fake = make(torch.randn(batch, noise, 1, 1))
        loss = verdict(real, yes) + verdict(fake.detach(), no)
        loss.backward()
        judge_optimizer.step()
        make_optimizer.zero_grad()
        fooled = verdict(fake, yes)
        fooled.backward()
        make_optimizer.step()
        return loss.item(), fooled.item()

    def infer():
        with precision():
            return make(torch.randn(batch, noise, 1, 1))

    return Workload(make, train, infer)


class CartPole:
    """A pole on a cart, as a plain Python program."""

    gravity, pole, force, tick = 9.8, 0.5, 10.0, 0.02

    def reset(self):
        self.state = [random.uniform(-0.05, 0.05) for _ in range(4)]
        return self.state

    def step(self, right):
        place, speed, angle, turn = self.state
        push = self.force if right else -self.force
        sine, cosine = math.sin(angle), math.cos(angle)
        drive = (push + 0.05 * turn * turn * sine) / 1.1
        spin = (self.gravity * sine - cosine * drive) / (self.pole * (4 / 3 - 0.1 * cosine * cosine / 1.1))
        gain = drive - 0.05 * spin * cosine / 1.1
        tick = self.tick
        self.state = [place + tick * speed, speed + tick * gain, angle + tick * turn, turn + tick * spin]
        return self.state


def reinforcement(sizes, precision):
    """REINFORCE: a policy asked for one action at a time, episodes of 30, an update after each."""
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer, environment, steps = adam(policy), CartPole(), sizes(30, 3)

    def act(state):
        with precision():
            logits = policy(torch.tensor(state))
        return torch.distributions.Categorical(logits=logits.float())

    def train():
        state, chosen, rewards = environment.reset(), [], []
        for _ in range(steps):
            actions = act(state)
            action = actions.sample()
            chosen.append(actions.log_prob(action))
            state = environment.step(action.item())
            rewards.append(1.0 - abs(state[2]))
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.append(total)
        gains = torch.tensor(returns[::-1])
        gains = (gains - gains.mean()) / (gains.std() + 1e-6)
        loss = -(torch.stack(chosen) * gains).sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    def infer():
        state = environment.reset()
        for _ in range(steps):
            state = environment.step(act(state).probs.argmax().item())

    return Workload(policy, train, infer)
