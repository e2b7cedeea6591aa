"""Two runs, or two rows of a sweep, sentence by sentence.

In the manner of compare-mt (Neubig et al. 2019, arXiv:1903.07926), from the texts that
runs keep, by sacreBLEU's metrics.
"""
