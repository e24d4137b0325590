"""Names of models on the command line."""

import pytest

from mmvit_ext.analysis.benchmark.spec import Spec, near_matches, parse_spec
from mmvit_ext.errors import UsageError


def test_name_alone():
    text = 'timm:swin_tiny_patch4_window7_224'
    assert parse_spec(text) == Spec(text, 'timm', 'swin_tiny_patch4_window7_224', {})


def test_values_are_those_of_mmengine():
    text = 'mmpretrain:MViT:arch=tiny,out_scales=[0,1,2,3],sizes=(1,2.5),flag=false,cfg=None'
    arguments = {
        'arch': 'tiny',
        'out_scales': [0, 1, 2, 3],
        'sizes': (1, 2.5),
        'flag': False,
        'cfg': None,
    }
    assert parse_spec(text) == Spec(text, 'mmpretrain', 'MViT', arguments)


@pytest.mark.parametrize(
    'text', ['ReSwin', ':ReSwin', 'mmvit_ext:', 'timm:x:arch', 'timm:x:a=', 'timm:x:a=1,b=', '']
)
def test_other_texts_are_told(text):
    with pytest.raises(UsageError, match='SOURCE:NAME'):
        parse_spec(text)


def test_comma_without_a_key_behind_it_belongs_to_the_value():
    assert parse_spec('timm:x:a=1,b,c=2').arguments == {'a': [1, 'b'], 'c': 2}


def test_near_matches():
    names = ['ShiftViT', 'ReSwin', 'SwinTransformer', 'ReViT']
    assert near_matches('ShiftVit', names).startswith('did you mean ShiftViT')
    assert near_matches('swin', names) == 'did you mean ReSwin, SwinTransformer?'
    assert near_matches('xyz', names) == 'it has ReSwin, ReViT, ShiftViT, SwinTransformer, ...'
