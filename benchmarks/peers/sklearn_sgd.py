"""scikit-learn: stochastic gradient descent on its handwritten digits."""

import warnings

import sklearn
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from ..case import Case
from .shapes import Digits

version = sklearn.__version__
DIGITS = Digits()


def digits():
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    return (images[DIGITS.held_out :], labels[DIGITS.held_out :]), (
        images[: DIGITS.held_out],
        labels[: DIGITS.held_out],
    )


def perceptron(sizes):
    """A hidden layer, five epochs of batches of 32 with momentum."""
    (images, labels), _ = digits()

    def fit():
        model = MLPClassifier(
            (DIGITS.hidden,),
            solver="sgd",
            batch_size=DIGITS.batch,
            learning_rate_init=DIGITS.rate,
            momentum=0.9,
            nesterovs_momentum=False,
            max_iter=sizes(DIGITS.epochs, 1),
            tol=0,
            n_iter_no_change=1000,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(images, labels)

    return fit


def to_goal(sizes):
    """A linear classifier, epoch by epoch until 95% of the digits held out are right."""
    (images, labels), held_out = digits()

    def fit():
        model = SGDClassifier(loss="log_loss", random_state=0)
        for _ in range(sizes(100, 1)):
            model.partial_fit(images, labels, classes=range(10))
            if model.score(*held_out) >= DIGITS.goal:
                break
        return model

    return fit


def cases(sizes):
    yield Case("digits, perceptron/5 epochs", lambda: perceptron(sizes))
    yield Case("digits, linear/to 95% held out", lambda: to_goal(sizes))
