"""The timing of circulant products: what it reports, not how fast anything is."""

from mmvit_ext.analysis.circulant_timing import Timing, table, time_forms


def test_times_both_forms_forward_and_in_training():
    timing = time_forms(dim=8, tokens=4, paths=2, blocks=2, seconds=0.01)
    for times in (timing.forward, timing.training):
        assert set(times) == {'fourier', 'materialised'} and min(times.values()) > 0


def test_table_holds_milliseconds_and_ratios():
    times = {'materialised': 0.002, 'fourier': 0.001}
    line = table([Timing(96, times, times)]).splitlines()[-1]
    assert line == '| 96 | 2.00 | 1.00 | 0.50 | 2.00 | 1.00 | 0.50 |'
