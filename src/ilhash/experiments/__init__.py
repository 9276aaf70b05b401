"""The paper's figures and tables on real data: one file each, its claims, and one page of all.

    scale       how large: smoke, small, paper             (_scales)
      |
    experiment  which cells it needs                       (one file each, named after what it shows)
      |
    cells       computed once, stored as they finish       (_cells, _tasks, _run, _store)
      |
    pictures    figures of stored cells                    (the same files, _style)
    claims      the paper's statements and their verdicts  (claims)
      |
    report      one self-contained HTML page               (_report)

Experiments that need the same model share its cell: bits are independent, so one long ILHt serves every number of bits.
"""
