"""S4, S4D, S6 and Mamba: their published equations, three ways of computing, public numbers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lsa import unroll
from lsa.layers.mamba import Mamba
from lsa.layers.s4 import S4, dplr_legs, hippo_legs
from lsa.layers.s4d import S4D
from lsa.layers.state_space import MODES

D, N, T = 3, 8, 40
FIXTURES = Path(__file__).parents[1] / "fixtures"
STATE_SPACES = {
    "s4": lambda mode="fft": S4(D, d_state=N, mode=mode),
    "s4d-zoh": lambda mode="fft": S4D(D, d_state=N, mode=mode),
    "s4d-bilinear": lambda mode="fft": S4D(D, d_state=N, mode=mode, discretisation="bilinear"),
}
state_spaces = pytest.mark.parametrize("name", STATE_SPACES)


def built(name, mode="fft"):
    torch.manual_seed(3)
    return STATE_SPACES[name](mode).double().requires_grad_(False)


def full(layer, half):
    """Both halves of the conjugate pairs, for channel 0, in NumPy."""
    half = half[0].numpy()
    return np.concatenate([half, half.conj()])


def recurrence_in_numpy(layer, name, u):
    """Gu et al. (2022), eqs. 1-4, dense, channel 0: s = Ā s + B̄ u, y = C s + D u."""
    Lambda, dt, C = layer.lambda_dt_c()
    dt = dt[0].item()
    A, C = np.diag(full(layer, Lambda)), full(layer, C)
    B = np.ones(N, dtype=complex)
    if name == "s4":
        P, B = full(layer, layer.complex("P")), full(layer, layer.complex("B"))
        A = A - np.outer(P, P.conj())
    eye = np.eye(N)
    if name == "s4d-zoh":
        A_bar = np.diag(np.exp(dt * np.diag(A)))
        B_bar = np.linalg.inv(dt * A) @ (A_bar - eye) @ (dt * B)
    else:
        A_bar = np.linalg.inv(eye - dt / 2 * A) @ (eye + dt / 2 * A)
        B_bar = np.linalg.inv(eye - dt / 2 * A) @ (dt * B)
    s, y = np.zeros(N, dtype=complex), []
    for u_t in u:
        s = A_bar @ s + B_bar * u_t
        y.append(C @ s + layer.D[0].item() * u_t)
    y = np.array(y)
    assert abs(y.imag).max() < 1e-9
    return y.real


@state_spaces
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_the_published_recurrence(name, mode):
    u = torch.randn(1, T, D).double()
    layer = built(name, mode)
    expected = recurrence_in_numpy(layer, name, u[0, :, 0].numpy())
    allowed = 1e-8 if mode == "fft" else 1e-10
    np.testing.assert_allclose(layer.ssm(u)[0, :, 0].numpy(), expected, rtol=allowed, atol=allowed)


@pytest.mark.slow
@state_spaces
@pytest.mark.parametrize("L", [1, 2, 3, 64, 1001, 1024])
def test_the_kernel_is_what_an_impulse_leaves(name, L):
    """S4's comes from its generating function, at every root of unity, -1 included."""
    layer, recurrent = built(name), built(name, "recurrent")
    impulse = torch.zeros(1, L, D).double()
    impulse[:, 0] = 1
    expected = recurrent.ssm(impulse)[0].T - layer.D.unsqueeze(1) * impulse[0].T
    torch.testing.assert_close(layer.kernel(L), expected, rtol=1e-10, atol=1e-10)
    _, _, C = layer.lambda_dt_c()
    from_states = 2 * torch.einsum("dn,dln->dl", C, layer.reach(L)).real
    torch.testing.assert_close(from_states, expected, rtol=1e-10, atol=1e-10)


def test_s4s_kernel_keeps_its_digits_in_float32():
    layer = S4(D, d_state=64)
    exact = S4(D, d_state=64).double()
    exact.load_state_dict(layer.state_dict())
    for L in (1024, 4096):
        K, expected = layer.kernel(L), exact.kernel(L)
        assert (K - expected).norm() < 1e-3 * expected.norm()


def test_hippo_is_diagonal_plus_rank_one():
    """Gu et al. (2022), theorem 1: in the basis found, A = Λ - P P* has HiPPO's own kernel."""
    A, B, P = hippo_legs(N)
    normal = A + torch.outer(P, P)
    torch.testing.assert_close(normal @ normal.T, normal.T @ normal)
    torch.testing.assert_close(A[2, 1].item(), -(5**0.5) * 3**0.5)
    torch.testing.assert_close(torch.diag(A), -torch.arange(1.0, N + 1).double())
    Lambda, P_half, B_half = dplr_legs(N)
    Lambda, P_full, B_full = (torch.cat((x, x.conj())) for x in (Lambda, P_half, B_half))
    found = torch.diag(Lambda) - torch.outer(P_full, P_full.conj())
    for i in range(5):  # B* A^i B does not depend on the basis
        expected = B @ torch.linalg.matrix_power(A, i) @ B
        trace = B_full.conj() @ torch.linalg.matrix_power(found, i) @ B_full
        torch.testing.assert_close(trace, expected.to(trace.dtype), rtol=1e-9, atol=1e-9)


def test_s4_agrees_with_a_public_implementation():
    stored = {k: torch.from_numpy(v) for k, v in np.load(FIXTURES / "annotated_s4.npz").items()}
    # Its eigenvectors, and with them P, B and C, are fixed up to a phase that cancels.
    for mode in MODES:
        layer = S4(3, d_state=8, mode=mode).double().requires_grad_(False)
        layer.log_neg_re.copy_((-stored["Lambda"].real).log())
        layer.im.copy_(stored["Lambda"].imag)
        for name in "PBC":
            getattr(layer, name).copy_(torch.view_as_real(stored[name]))
        layer.log_dt.copy_(stored["step"].log().unsqueeze(1))
        layer.D.zero_()
        y = layer.ssm(stored["u"].T.unsqueeze(0))[0].T
        torch.testing.assert_close(y, stored["y"], rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(layer.kernel(31), stored["K"], rtol=1e-8, atol=1e-8)
    Lambda, _, _ = dplr_legs(8)
    torch.testing.assert_close(Lambda, stored["Lambda"][0], rtol=1e-8, atol=1e-8)


def test_mamba_agrees_with_a_public_implementation():
    stored = {k: torch.from_numpy(v) for k, v in np.load(FIXTURES / "mamba_minimal.npz").items()}
    x, y = stored.pop("x"), stored.pop("y")
    ours = {}
    for name, value in stored.items():
        of_ssm = name.startswith(("x_proj", "dt_proj", "A_log", "D"))
        ours[f"ssm.{name}" if of_ssm else name] = value
    layer = Mamba(6, d_state=4).double()
    layer.load_state_dict(ours)
    for face in (layer, unroll(layer.machine())):
        torch.testing.assert_close(face(x), y, rtol=1e-10, atol=1e-10)
