"""Reading checkpoints safely, and the errors of files that are none."""

import pickle
import urllib.error

import mmengine.dist
import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer

from mmvit_ext.engine.checkpoint_file import read_checkpoint, trust_mmengine_checkpoints


def test_history_and_numpy_scalars_load(tmp_path):
    file = tmp_path / 'w.pth'
    history = HistoryBuffer([1.0, 2.0], [1, 1])
    meta = {'lr': np.float64(0.1), 'count': np.int64(3), 'list': np.array([1.5], np.float32)}
    torch.save({'state_dict': {'a': torch.ones(2)}, 'message_hub': history, 'meta': meta}, file)
    content = read_checkpoint(file)
    assert content['message_hub'].mean(2) == 1.5
    assert content['meta']['lr'] == 0.1 and content['meta']['list'][0] == 1.5


def test_plain_torch_load_reads_training_checkpoints_once_trusted(tmp_path):
    file = tmp_path / 'w.pth'
    torch.save({'h': HistoryBuffer([1.0], [1]), 'n': np.float64(2)}, file)
    trust_mmengine_checkpoints()
    try:
        assert torch.load(file, weights_only=True)['n'] == 2
    finally:
        torch.serialization.clear_safe_globals()


class Harmful:
    """An object that would run code on unpickling."""

    def __reduce__(self):
        return (mmengine.dist.get_rank, ())


def test_reading_a_file_leaves_others_trusted(tmp_path):
    file = tmp_path / 'a.pth'
    torch.save({'h': HistoryBuffer([1.0], [1])}, file)
    before = torch.serialization.get_safe_globals()
    try:
        trust_mmengine_checkpoints()
        read_checkpoint(file)
        assert isinstance(torch.load(file, weights_only=True)['h'], HistoryBuffer)
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def test_unsafe_content_is_explained_not_run(tmp_path):
    file = tmp_path / 'w.pth'
    torch.save({'state_dict': Harmful()}, file)
    with pytest.raises(ValueError, match='refuses to unpickle.*get_rank.*save its weights alone'):
        read_checkpoint(file)


class Getter:
    """What a file could ask of an unguarded getattr."""

    def __reduce__(self):
        return (getattr, (HistoryBuffer, '__init__'))


def test_getattr_is_limited_to_history_methods(tmp_path):
    file = tmp_path / 'w.pth'
    torch.save({'a': Getter()}, file)
    with pytest.raises(ValueError, match='getattr'):
        read_checkpoint(file)


def test_cut_off_file_gives_one_line(tmp_path):
    file = tmp_path / 'w.pth'
    torch.save({'a': torch.randn(1000)}, file)
    file.write_bytes(file.read_bytes()[:1500])
    with pytest.raises(ValueError, match='not a checkpoint, or cut off .1500 bytes') as error:
        read_checkpoint(file)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('content', [b'', b'<html>404</html>', b'\x89PNG\r\n\x1a\n' + b'0' * 99])
def test_other_files_are_named(tmp_path, content):
    file = tmp_path / 'w.pth'
    file.write_bytes(content)
    with pytest.raises(ValueError, match='w.pth: not a checkpoint') as error:
        read_checkpoint(file)
    assert '\n' not in str(error.value)


def test_pickle_that_is_no_dict(tmp_path):
    file = tmp_path / 'w.pth'
    torch.save([1, 2], file)
    with pytest.raises(ValueError, match='holds a list'):
        read_checkpoint(file)
    file.write_bytes(pickle.dumps({'a': 1}, protocol=4))
    with pytest.raises(ValueError, match='not a checkpoint'):
        read_checkpoint(file)


def test_missing_file_tells_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match='no such file .looked for /'):
        read_checkpoint(tmp_path / 'none.pth')


def test_address_out_of_reach_names_cache_and_option(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path))

    def refuse(*args, **kwargs):
        raise urllib.error.URLError('no route')

    monkeypatch.setattr(torch.hub, 'download_url_to_file', refuse)
    with pytest.raises(ConnectionError, match='https://x.invalid/w.pth.*no route.*checkpoints'):
        read_checkpoint('https://x.invalid/w.pth')


def test_cached_address_is_read_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path))
    (tmp_path / 'checkpoints').mkdir()
    torch.save({'a': torch.ones(1)}, tmp_path / 'checkpoints' / 'w.pth')
    assert read_checkpoint('https://x.invalid/w.pth')['a'] == 1


def test_unknown_name_of_a_catalogue():
    with pytest.raises(ValueError, match="torchvision://foo: the catalogue has no 'foo'"):
        read_checkpoint('torchvision://foo')
