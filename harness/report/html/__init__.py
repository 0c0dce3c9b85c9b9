"""One HTML file that opens offline: leaderboards, charts and every candidate's evidence, from CSVs and their samples.

Vega-Lite draws in the reader's browser: specifications are made by Altair, and vl-convert brings the libraries as one
script of 0.9 MB. Drawn there, a chart fits any width, shows its figures on touch, and costs a few kilobytes.

The order is data (`run_files`, `raw_samples`, `cases`), then what charts and tables show (`chart_rows`, `launches`,
`roofline`; `tables`), then `charts`, then the page (`page`, with its template, style and script beside it).
"""
