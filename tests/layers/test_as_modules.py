"""What PyTorch's users do with any module, for every layer: it works, or one line says why not."""

import copy
import inspect
import io
import pickle
from functools import partial

import pytest
import torch
from torch._subclasses import FakeTensorMode

from lsa import GPT, LAYERS, GPTConfig
from lsa.gpt import gpt2_state_dict
from tests.layers.layer_cases import CASES, D

layers = pytest.mark.parametrize("name", CASES)


def made(name):
    torch.manual_seed(0)
    return CASES[name]().eval(), torch.randn(2, 9, D)


@layers
@pytest.mark.parametrize("assign", [False, True])
def test_made_on_meta_and_loaded(name, assign):
    """Buffers that no checkpoint holds are what they were; memory that was never written is NaN."""
    layer, x = made(name)
    with torch.device("meta"):
        other = CASES[name]()
    if not assign:
        other.to_empty(device="cpu")
        with torch.no_grad():
            for one in other.parameters():
                one.fill_(torch.nan)
    other.load_state_dict(layer.state_dict(), assign=assign)
    assert torch.equal(other(x), layer(x))


def test_a_layer_shows_what_it_was_made_with():
    layer = LAYERS["window-state"](D, 2, window=3, log_decay=[-1.0, 0.0])
    shown = f"d_model={D}, n_heads=2, window=3, log_decay=[-1.0, 0.0]"
    assert shown in repr(layer)
    assert shown in repr(copy.deepcopy(layer))


def test_projections_have_biases_unless_they_are_declined():
    """As GPT-2's have: a layer takes the place of another."""
    options = [inspect.signature(layer).parameters for layer in LAYERS.values()]
    assert all(one["bias"].default is True for one in options if "bias" in one)


def test_in_16_bits_a_decay_keeps_its_digits():
    found = {name: getattr(CASES[name](), "log_decay", None) for name in CASES}
    decays = {name: decay for name, decay in found.items() if decay is not None}
    assert {"softmax-decay", "power-decay", "window-decay"} <= decays.keys()
    for name, decay in decays.items():
        assert torch.equal(made(name)[0].bfloat16().log_decay, decay), name


def gpt(attention="softmax"):
    torch.manual_seed(0)
    shape = {"vocab_size": 11, "n_positions": 16, "n_layer": 1, "n_head": 2, "d_model": 8}
    return GPT(GPTConfig(**shape, attention=attention)).eval(), torch.randint(11, (2, 7))


def saved(what):
    """Written and read by torch, with its defaults: weights alone, and what is known to be safe."""
    file = io.BytesIO()
    torch.save(what, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("attention", LAYERS)
def test_copied_pickled_saved_and_in_16_bits(attention):
    model, tokens = gpt(attention)
    checkpoint = saved({"model": model.state_dict(), "config": model.config})
    assert checkpoint["config"] == model.config
    read = GPT(checkpoint["config"])
    read.load_state_dict(checkpoint["model"])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), read):
        assert torch.equal(other(tokens), model(tokens))
    half = copy.deepcopy(model).bfloat16()(tokens)
    torch.testing.assert_close(half.float(), model(tokens), rtol=0, atol=0.02)


@pytest.mark.filterwarnings("ignore:torch.ao.quantization:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize("attention", LAYERS)
def test_quantised_by_torch(attention):
    """Whole texts and ticks alike: weights of nn.Linear are tensors no longer."""
    model, tokens = gpt(attention)
    quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear})
    assert any("quantized" in type(one).__module__ for one in quantised.modules())
    machine = quantised.machine()
    with torch.no_grad():
        wanted, found = model(tokens), quantised(tokens)
        state, y = machine.prefill(machine.initial_state, tokens[:, :5])
        _, last = machine.step(state, tokens[:, 5])
    for x in (found - wanted, y - wanted[:, :5], last - wanted[:, 5]):
        assert x.norm() <= 0.2 * wanted.norm()  # 8 bits, and 8 features


@pytest.mark.parametrize("attention", LAYERS)
def test_a_state_is_saved_and_read(attention):
    """The state after a prompt goes on alike after `torch.save` and `torch.load`."""
    model, tokens = gpt(attention)
    machine = model.machine()
    with torch.no_grad():
        state, _ = machine.prefill(machine.initial_state, tokens[:, :-1])
        _, wanted = machine.step(state, tokens[:, -1])
        assert torch.equal(machine.step(saved(state), tokens[:, -1])[1], wanted)


@pytest.mark.parametrize("attention", LAYERS)
def test_shapes_are_computed_on_meta(attention):
    model, tokens = gpt(attention)
    assert model.to("meta")(tokens.to("meta")).shape == (2, 7, 11)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if "taylor" in name or "power" in name])
def test_nothing_of_a_mode_is_kept(name):
    """Tensors of FakeTensorMode have no numbers, those of `functionalize` no meaning outside."""

    def read(layer, x):
        machine = layer.machine()
        state, y = machine.prefill(machine.initial_state, x[:, :-1])
        return torch.cat((layer(x), y, machine.step(state, x[:, -1])[1].unsqueeze(1)), 1)

    layer, x = made(name)
    with FakeTensorMode():
        shape = read(CASES[name](), torch.empty(x.shape)).shape
    with torch.no_grad():
        inside = torch.func.functionalize(partial(read, layer))(x)
        found = read(layer, x)
    assert type(found) is torch.Tensor and found.shape == shape
    torch.testing.assert_close(found, inside)


@layers
def test_made_where_float64_is_the_default(name):
    layer, x = made(name)
    torch.set_default_dtype(torch.float64)
    try:
        wide = CASES[name]()
    finally:
        torch.set_default_dtype(torch.float32)
    wide.load_state_dict(layer.state_dict())
    assert {p.dtype for p in wide.parameters()} <= {torch.float64}
    torch.testing.assert_close(wide(x.double()).float(), layer(x), rtol=1e-4, atol=1e-4)


def test_each_class_has_code_of_its_own_to_compile():
    """torch.compile stops after eight recompilations of one code object, whichever the class."""
    forwards = {layer.forward for layer in LAYERS.values()}
    assert len({one.__code__ for one in forwards}) == len(forwards) > 8


def test_weights_refuse_what_the_layer_refuses():
    for name in ("softmax", "linear", "taylor", "power"):
        layer, _ = made(name)
        for wrong in (torch.randn(5, D), torch.randn(1, 5, D + 1), torch.randn(1, 5, D).double()):
            with pytest.raises(ValueError, match="^x: expected "):
                layer.weights(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "taylor", "power"])
def test_a_tick_compiles_whole(name):
    layer, x = made(name)
    machine = layer.machine()
    tick = torch.compile(machine.step, backend="eager", fullgraph=True)
    with torch.no_grad():
        state, ys = machine.initial_state, []
        for x_t in x.unbind(1):
            state, y = tick(state, x_t)
            ys.append(y)
        torch.testing.assert_close(torch.stack(ys, 1), layer(x))


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["softmax", "linear", "taylor", "none", "conv", "power"])
def test_exported_for_every_length(attention):
    """The other layers are exported for one length only."""
    model, tokens = gpt(attention)
    lengths = {1: torch.export.Dim("T", min=2, max=16)}
    program = torch.export.export(model, (tokens,), dynamic_shapes=(lengths,)).module()
    for T in (2, 5, 7):
        torch.testing.assert_close(program(tokens[:, :T]), model(tokens[:, :T]))


@pytest.mark.filterwarnings("ignore")  # torch says that traces are deprecated
def test_a_layer_with_gradients_is_traced():
    layer, x = made("linear")
    traced = torch.jit.trace(layer, x)
    torch.testing.assert_close(traced(2 * x), layer(2 * x))


@pytest.mark.slow
def test_softmax_compiles_whole_for_a_second_length_and_then_for_all():
    model, tokens = gpt("softmax")
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend, fullgraph=True)
    for T in (7, 5, 6, 3):
        torch.testing.assert_close(compiled(tokens[:, :T]), model(tokens[:, :T]))
    assert len(graphs) == 2


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.", "_orig_mod.module."])
def test_weights_of_hugging_face_and_of_nanogpt(prefix):
    """Transposed and as they are: a square projection would not show a mistake."""
    model, tokens = gpt()
    weights = model.state_dict()
    ours = {f"transformer.{name}": weight for name, weight in weights.items()}
    ours |= {"lm_head.weight": weights["wte.weight"]}
    projections = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    theirs = {name: w.t() if name.endswith(projections) else w for name, w in ours.items()}
    for found in (ours, theirs):
        other, _ = gpt()
        other.initialise()
        other.load_state_dict(gpt2_state_dict({prefix + name: w for name, w in found.items()}))
        assert torch.equal(other(tokens), model(tokens))
