"""torch.compile takes every backbone whole, as one graph."""

import pytest
import torch

import mmvit_ext.models as models
from mmvit_ext.testing import randomise

NETWORKS = [
    ('ShiftViT', {}),
    ('ReSwin', {'alpha_mode': 'block'}),
    ('AugSwin', {}),
    ('ReMViTv2', {'window_size': 8}),
    ('ReMViTv2', {'scores': 'factored'}),
    ('ReViT', {}),
    ('ReViT', {'scores': 'factored'}),
    ('AugViT', {}),
]


def compiled(model):
    """The compiled model, which fails at a break, and the list that its graphs are put on."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    return torch.compile(model, backend=backend, fullgraph=True, dynamic=False), graphs


@pytest.mark.slow
@pytest.mark.parametrize('name', ['ShiftViT', 'ReSwin', 'AugSwin', 'ReMViTv2', 'ReViT', 'AugViT'])
def test_forward_pass_is_one_graph(name):
    torch.manual_seed(0)
    model = randomise(getattr(models, name)('nano'))
    run, graphs = compiled(model)
    image = torch.randn(2, 3, 70, 93)
    with torch.no_grad():
        for ours, eager in zip(run(image), model(image), strict=True):
            torch.testing.assert_close(ours, eager, atol=1e-5, rtol=1e-5)
    assert len(graphs) == 1


@pytest.mark.slow
@pytest.mark.parametrize('name, settings', NETWORKS)
def test_training_step_is_one_graph(name, settings):
    torch.manual_seed(0)
    model = randomise(getattr(models, name)('nano', drop_path_rate=0.0, **settings)).train()
    run, graphs = compiled(model)
    image, found = torch.randn(2, 3, 70, 93), []
    for forward in (model, run):
        loss = sum(m.square().mean() for m in forward(image))
        found.append(torch.autograd.grad(loss, list(model.parameters())))
    for eager, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, eager, atol=1e-4, rtol=1e-3)
    assert len(graphs) == 1
