"""The style of the page: light and dark, wide and narrow."""

__all__ = ["STYLE"]

STYLE = """
:root{--font:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;--ink:#1c2733;--faint:#6b7a89;
--grid:#d5dde5;--paper:#fff;--card:#f6f8fa;--line:#dfe6ec;--accent:#b3261e;--holds:#1a7f42;--partly:#9a6700;
--fails:#b3261e;--untested:#6b7a89;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#e3e9ef;--faint:#8d9bab;--grid:#33404d;--paper:#12171d;--card:#1a2129;
--line:#2c3641;--accent:#ff8a80;--holds:#5fd38d;--partly:#e3b341;--fails:#ff8a80;--untested:#8d9bab}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 var(--font)}
main{max-width:1180px;margin:0 auto;padding:2.5rem 1.25rem 5rem}
h1{font-size:clamp(1.6rem,4.2vw,2.5rem);line-height:1.15;letter-spacing:-.02em;margin:0 0 1rem;max-width:24em}
h1 em{color:var(--accent);font-style:normal}
h2{font-size:1.5rem;letter-spacing:-.01em;margin:3.5rem 0 .4rem;padding-top:1rem;border-top:1px solid var(--line)}
h3{font-size:1.02rem;margin:0 0 .6rem}
p{margin:.4rem 0 1rem;max-width:46rem}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
code{font:.86em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--card);padding:.1em .35em;
border-radius:4px;overflow-wrap:anywhere}
nav{display:flex;flex-wrap:wrap;gap:.35rem 1.1rem;font-size:.92rem;margin:1.2rem 0 0}
ul.tally{display:flex;flex-wrap:wrap;gap:.6rem;list-style:none;padding:0;margin:1.2rem 0}
ul.tally li{border:1px solid var(--line);border-left:4px solid currentColor;border-radius:6px;padding:.35rem .8rem;
background:var(--card);font-size:.92rem}
ul.tally b{font-size:1.15rem;margin-right:.15rem}
ul.data{padding-left:1.1rem;font-size:.92rem;margin:.4rem 0}
.holds{color:var(--holds)}.partly{color:var(--partly)}.fails{color:var(--fails)}.untested{color:var(--untested)}
.note{color:var(--faint);font-size:.9rem}
figure{margin:1.4rem 0 2.2rem;padding:1.1rem;background:var(--card);border:1px solid var(--line);border-radius:10px}
.plot{overflow-x:auto}
.plot svg{display:block;width:100%;min-width:min(720px,100%);height:auto}
figcaption{font-size:.9rem;margin-top:.7rem}
figcaption p{max-width:60rem;margin:.3rem 0}
figcaption .paper{color:var(--faint)}
table{border-collapse:collapse;width:100%;font-size:.88rem;line-height:1.45}
th{text-align:left;font-weight:600;color:var(--faint);padding:.4rem .7rem;border-bottom:2px solid var(--line)}
td{vertical-align:top;padding:.55rem .7rem;border-bottom:1px solid var(--line)}
table.claims td.claim{width:24%;font-weight:550}
table.claims small{display:block;font-weight:400;color:var(--faint);margin-top:.15rem}
table.claims td.rule{width:27%;color:var(--faint)}
table.claims td.measured{font-variant-numeric:tabular-nums}
.verdict{display:inline-block;font-weight:650;border:1px solid currentColor;border-radius:99px;padding:.05rem .6rem;
white-space:nowrap;font-size:.82rem}
table.sessions td{font-size:.82rem;min-width:6rem}
@media (max-width:760px){.plot svg{min-width:620px}main{padding:1.5rem .9rem 3rem}figure{padding:.8rem .6rem}
table.claims thead{display:none}table.claims,table.claims tbody,table.claims tr,table.claims td{display:block}
table.claims tr{border:1px solid var(--line);border-radius:8px;margin:0 0 .8rem;padding:.6rem .7rem;
background:var(--card)}
table.claims td,table.claims td.claim,table.claims td.rule{width:auto;border:0;padding:.15rem 0}
table.claims td.rule::before{content:"tested by: "}
table.claims td.measured::before{content:"measured: ";color:var(--faint)}}
@media print{figure{break-inside:avoid}}
"""
